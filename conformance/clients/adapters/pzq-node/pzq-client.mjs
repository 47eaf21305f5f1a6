// A small PZQ client on zeromq.js, written from the protocol document alone.
//
//   const producer = new Producer("tcp://127.0.0.1:11131")
//   await producer.produce(["hello"], { timeoutMs: 5000 })
//
//   const consumer = new Consumer("tcp://127.0.0.1:11132", async (message) => { await consumer.ack(message) })
//   await new Monitor("tcp://127.0.0.1:11133").figures({ timeoutMs: 1000 })

import { randomBytes } from "node:crypto"
import { Dealer, Request, Router } from "zeromq"

const LINGER_MS = 1000 // `close` lets what was sent leave for so long, in the background
const EMPTY = Buffer.alloc(0)

/** The broker refused a message. */
export class NotStored extends Error {
  constructor(status, texts) {
    super(texts.map(String).join("; ") || `status "${status}"`)
    this.status = String(status)
  }
}

/** Nothing came in time. A message may be stored all the same. */
export class NoAnswer extends Error {}

/** The socket was closed meanwhile, or before. */
export class Closed extends Error {}

/** A message that the document does not describe. */
export class ProtocolError extends Error {}

/** A message that cannot be sent. */
export class Invalid extends Error {}

const isEmpty = (part) => part.length === 0

/** A socket on which many may send at once; zeromq.js itself allows one at a time. */
class Line {
  #socket
  #last = Promise.resolve()

  constructor(Kind, endpoints) {
    this.#socket = new Kind({ linger: LINGER_MS })
    for (const each of endpoints) this.#socket.connect(each)
  }

  send(parts) {
    const sent = this.#last.then(() => {
      if (this.#socket.closed) throw new Closed("the socket is closed")
      return this.#socket.send(parts)
    })
    this.#last = sent.catch(() => {})
    return sent
  }

  async read(take) {
    for await (const parts of this.#socket) await take(parts)
  }

  get closed() {
    return this.#socket.closed
  }

  close() {
    if (!this.#socket.closed) this.#socket.close()
  }
}

/** Sends messages; any number may wait for their acknowledgement at the same time. */
export class Producer {
  #line
  #waiting = new Map()
  #prefix = randomBytes(6).toString("hex")
  #number = 0

  constructor(endpoint) {
    this.#line = new Line(Dealer, [endpoint])
    this.#line.read((parts) => this.#receive(parts)).catch(() => {})
  }

  get pending() {
    return this.#waiting.size
  }

  /** Settles with the id and the broker's texts as soon as the message is stored. */
  async produce(body, { id = Buffer.from(`${this.#prefix}-${++this.#number}`), timeoutMs } = {}) {
    if (this.#line.closed) throw new Closed("the producer is closed")
    if (!body.length) throw new Invalid("a message has one body part or more")
    const name = id.toString("latin1")
    if (this.#waiting.has(name)) throw new Invalid(`a message with the id ${name} waits for its acknowledgement`)
    let timer
    try {
      const [status, ...rest] = await new Promise((resolve, reject) => {
        this.#waiting.set(name, { resolve, reject })
        const late = () => reject(new NoAnswer(`no acknowledgement within ${timeoutMs} ms`))
        if (timeoutMs !== undefined) timer = setTimeout(late, timeoutMs)
        this.#line.send([id, EMPTY, ...body]).catch(reject)
      })
      const delimiter = rest.findIndex(isEmpty)
      if (delimiter < 0) throw new ProtocolError("an acknowledgement without delimiter")
      const texts = rest.slice(delimiter + 1)
      if (status.toString("latin1") !== "1") throw new NotStored(status, texts)
      return { id, texts }
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(name)
    }
  }

  #receive([id, ...rest]) {
    const call = this.#waiting.get(id.toString("latin1"))
    if (!call) return // late, or not ours
    if (rest.length) call.resolve(rest)
    else call.reject(new ProtocolError("an acknowledgement without a status"))
  }

  /** Never waits; what was not acknowledged ends with `Closed`. */
  close() {
    for (const { reject } of this.#waiting.values()) reject(new Closed("closed before the acknowledgement"))
    this.#line.close()
  }
}

/** Calls `onMessage` for one message after the other. Where that throws, the message goes back. */
export class Consumer {
  #line
  #onMessage
  #skipExpired
  #onError

  /** Several endpoints: `pzqId` of a message leads its acknowledgement back to the broker that sent it. */
  constructor(endpoints, onMessage, { skipExpired = false, onError = () => {} } = {}) {
    this.#onMessage = onMessage
    this.#skipExpired = skipExpired
    this.#onError = onError
    this.#line = new Line(Router, [endpoints].flat())
    this.#line.read((parts) => this.#receive(parts)).catch(() => {})
  }

  async #receive(parts) {
    let message
    try {
      message = read(parts)
      if (this.#skipExpired && isExpired(message)) return
      await this.#onMessage(message)
    } catch (error) {
      this.#onError(error)
      if (message) await this.reject(message)
    }
  }

  /** Processed: the broker deletes it. */
  ack({ pzqId, id }) {
    return this.#line.send([pzqId, id, "1"])
  }

  /** Not processed: the broker sends it again at once. */
  reject({ pzqId, id }) {
    return this.#line.send([pzqId, id, "0"])
  }

  close() {
    this.#line.close()
  }
}

/** Times are BigInt microseconds; null where the broker sent no number. */
function read(parts) {
  const delimiter = parts.findIndex((part, at) => at >= 2 && isEmpty(part))
  const body = parts.slice(delimiter + 1)
  if (delimiter < 4 || !body.length) throw new ProtocolError(`not a delivery: ${parts.length} parts`)
  const [pzqId, id, sent, timeout] = parts
  return { pzqId, id, sentUs: number(sent), timeoutUs: number(timeout), body }
}

function number(part) {
  return /^\d+$/.test(part.toString("latin1")) ? BigInt(part.toString()) : null
}

/** Whether the broker will send a message again, or has done so. */
export function isExpired({ sentUs, timeoutUs }) {
  return sentUs !== null && timeoutUs !== null && BigInt(Date.now()) * 1000n > sentUs + timeoutUs
}

/** Asks for the broker's figures, each time on a socket of its own: a question may stay unanswered. */
export class Monitor {
  #endpoint
  #asking = new Set()
  #closed = false

  constructor(endpoint) {
    this.#endpoint = endpoint
  }

  /** The broker's figures by name. */
  async figures({ timeoutMs = -1 } = {}) {
    if (this.#closed) throw new Closed("the monitor is closed")
    const socket = new Request({ linger: 0, receiveTimeout: timeoutMs })
    this.#asking.add(socket)
    socket.connect(this.#endpoint)
    try {
      await socket.send("MONITOR")
      const [text] = await socket.receive()
      return figures(text.toString())
    } catch (error) {
      if (this.#closed) throw new Closed("closed before the monitor answered")
      throw error.code === "EAGAIN" ? new NoAnswer(`the monitor did not answer within ${timeoutMs} ms`) : error
    } finally {
      this.#asking.delete(socket)
      if (!socket.closed) socket.close()
    }
  }

  /** Never waits; questions without an answer end with `Closed`. */
  close() {
    this.#closed = true
    for (const socket of this.#asking) socket.close()
  }
}

function figures(text) {
  const values = {}
  for (const line of text.split("\n")) {
    const [, key, value] = /^\s*([^:]*?)\s*:\s*(.*?)\s*$/s.exec(line) ?? []
    if (key) values[key] = /^\d+$/.test(value) && Number.isSafeInteger(Number(value)) ? Number(value) : value
  }
  if (!Object.keys(values).length) throw new ProtocolError(`not a monitor's reply: ${text.slice(0, 80)}`)
  return values
}
