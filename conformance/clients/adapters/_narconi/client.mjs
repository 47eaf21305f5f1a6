// A client for Narconi, as somebody writes it who has read Narconi's document. It runs in browsers as it is, and in
// Node with the WebSocket of the package `ws`.
//
// Publishing: one WebSocket per queue; confirms come in the order of the messages. Consuming: one WebSocket per
// subscription. Nothing reconnects by itself, but the next publish opens a new WebSocket.

import { Consumer, NarconiError, Publisher, closed, keepAlive, parsed, sleep } from "./sockets.mjs"

const CUSTOM = "x-msg-x-"

/** The promise, or a timeout error after `ms`. */
export async function within(ms, promise) {
  if (ms === undefined || ms === null) return promise
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new NarconiError("timeout", `not done after ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The server keeps a content type and names with the prefix; everything else it drops in silence. */
function checkMetadata(headers) {
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === "content-type") {
      if (typeof value !== "string") throw new NarconiError("invalid", "Content-Type has to be text")
    } else if (!name.toLowerCase().startsWith(CUSTOM)) {
      throw new NarconiError("invalid", `the name of metadata has to begin with ${CUSTOM}: ${name}`)
    }
  }
}

/** One project on one server. `onEnd("lost" | "error", text or error)` tells of WebSockets that end by themselves. */
export class Narconi {
  #root
  #publishers = new Map()
  #consumers = []
  #opening = new Set()
  #closing = new AbortController()
  closed = false

  constructor({ base, project, WebSocket, onEnd, keepaliveS }) {
    Object.assign(this, { WebSocket, onEnd, keepaliveS })
    this.#root = `${base}/v2/${encodeURIComponent(project)}/queues/`
  }

  get pending() {
    return [...this.#publishers.values()].reduce((sum, { made }) => sum + (made?.pending ?? 0), 0)
  }

  #url(queue, more = "") {
    return this.#root + encodeURIComponent(queue) + more
  }

  #checkOpen() {
    if (this.closed) throw new NarconiError("closed", "the session is closed", { definite: true })
  }

  // HTTP

  async #request(method, url, wanted, ms, { body, headers = {} } = {}) {
    this.#checkOpen()
    let response, bytes
    const overdue = ms ? AbortSignal.timeout(ms) : undefined
    const signal = overdue ? AbortSignal.any([overdue, this.#closing.signal]) : this.#closing.signal
    try {
      response = await fetch(url, { method, body, headers, signal, redirect: "manual", cache: "no-store" })
      bytes = new Uint8Array(await response.arrayBuffer())
    } catch (error) {
      if (this.closed) throw new NarconiError("closed", "the session was closed", { definite: false })
      if (overdue?.aborted) throw new NarconiError("timeout", `not done after ${ms} ms`, { definite: false })
      if (/header|ByteString|Headers/.test(error.message)) throw new NarconiError("invalid", error.message)
      const text = error.cause?.message ?? error.message
      throw new NarconiError("connection", text, { definite: error.cause?.code === "ECONNREFUSED" })
    }
    if (response.type === "opaqueredirect") throw new NarconiError("refused", "a redirect") // browsers hide its status
    if (wanted.includes(response.status)) return { response, bytes }
    const text = new TextDecoder().decode(bytes)
    const kind = response.status === 401 ? "auth" : "refused"
    throw new NarconiError(kind, String(parsed(text)?.message ?? text.slice(0, 200)), { code: response.status })
  }

  async ensureQueue(queue, ms) {
    await this.#request("PUT", this.#url(queue), [201], ms)
  }

  async deleteQueue(queue, ms) {
    await this.#request("DELETE", this.#url(queue), [204], ms)
  }

  /** Publish one message over HTTP. */
  async post(queue, body, headers, ms) {
    checkMetadata(headers)
    const texts = Object.entries(headers).map(([name, v]) => [name, typeof v === "string" ? v : JSON.stringify(v)])
    await this.#request("POST", this.#url(queue, "/messages"), [201], ms, { body, headers: texts })
  }

  /** Consume one message over HTTP, or null. */
  async take(queue, ms) {
    const { response, bytes } = await this.#request("DELETE", this.#url(queue, "/messages"), [200, 204], ms)
    if (response.status === 204) return null
    const headers = Object.fromEntries([...response.headers].filter(([name]) => name.startsWith(CUSTOM)))
    headers["Content-Type"] = response.headers.get("content-type")
    const flag = response.headers.get("x-msg-redelivered")
    const time = response.headers.get("x-msg-timestamp")
    const redelivered = flag === null ? null : flag === "true"
    const timestamp = /^\d+$/.test(time ?? "") ? Number(time) : null
    return { body: bytes, headers, redelivered, timestamp, ackId: null }
  }

  // WebSocket

  #dial = (url, protocol) => {
    const socket = new this.WebSocket(url, protocol)
    this.#opening.add(socket)
    for (const event of ["open", "close"]) socket.addEventListener(event, () => this.#opening.delete(socket))
    if (this.keepaliveS) keepAlive(socket, this.keepaliveS * 1000)
    return socket
  }

  #webSocketUrl(queue, query = "") {
    return this.#url(queue, `/messages${query}`).replace(/^http/, "ws")
  }

  /** The publishing WebSocket of a queue; the first message opens it, and the first behind its end. */
  async #publisher(queue, ms) {
    let found = this.#publishers.get(queue)
    if (!found || (found.made && !found.made.usable)) {
      found = {}
      this.#publishers.set(queue, found)
      found.opening = new Publisher(this.onEnd).open(this.#dial, this.#webSocketUrl(queue), ms)
      found.opening.then((made) => (found.made = made), () => this.#publishers.delete(queue))
    }
    return found.opening
  }

  /** Publish one message over the WebSocket; settles with its confirm. */
  async publish(queue, body, headers, ms) {
    this.#checkOpen()
    checkMetadata(headers)
    let carrier
    const confirmed = this.#publisher(queue, ms).then((publisher) => {
      if (!publisher.usable) throw new NarconiError("closed", "the WebSocket is closed", { definite: true })
      carrier = publisher
      return publisher.publish(body, headers)
    })
    try {
      return await within(ms, confirmed)
    } catch (error) {
      if (error.kind === "timeout") carrier?.giveUp()
      throw error
    }
  }

  /** Consume over a WebSocket; the callback gets one message after the other, each with its consumer. */
  async consume(queue, callback, { ack, limit, encoding } = {}, ms) {
    this.#checkOpen()
    const query = [ack && "ack=true", limit !== undefined && `limit=${limit}`, encoding && `encoding=${encoding}`]
    const text = query.filter(Boolean).join("&")
    const consumer = new Consumer(encoding, callback, this.onEnd)
    await consumer.open(this.#dial, this.#webSocketUrl(queue, text && `?${text}`), ms)
    this.#consumers.push(consumer)
    return consumer
  }

  /** End one subscription; in time, whatever the application and the server do. */
  async endConsumer(consumer, drain, ms) {
    try {
      await within(ms, consumer.end(drain))
    } catch (error) {
      consumer.giveUp()
      throw error
    }
  }

  /** Wait for confirms for half of the time, then close everything. */
  async close(ms = 10_000) {
    const until = performance.now() + ms / 2
    while (this.pending && performance.now() < until) await sleep(10)
    this.closed = true
    this.#closing.abort() // ends what is asked over HTTP
    const publishers = [...this.#publishers.values()].map(({ made }) => made).filter(Boolean)
    const all = [...publishers, ...this.#consumers]
    for (const one of all) one.closing = true
    for (const socket of this.#opening) socket.close()
    const gone = Promise.all(all.map(({ socket }) => closed(socket)))
    await Promise.race([gone, sleep(Math.max(100, ms / 2 - 500))])
    for (const publisher of publishers) publisher.reject("the session was closed")
    for (const { socket } of all) socket.terminate?.() // what browsers cannot do
  }
}
