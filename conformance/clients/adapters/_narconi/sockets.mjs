// The two kinds of WebSocket of Narconi: one that publishes, one that consumes.

const WINDOW = 128 // messages that are sent and unconfirmed; further ones wait for their turn
const DRAIN_QUIET_MS = 300 // after the end was asked for, deliveries that are on the way come within this time

/** An op did not work out: kind, text, and maybe the status of the wire. */
export class NarconiError extends Error {
  constructor(kind, text, { code = null, definite } = {}) {
    super(text)
    Object.assign(this, { kind, code, definite })
  }
}

const lost = (text) => new NarconiError("connection", text, { definite: false })
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)

/** The JSON value in a text, or undefined. */
export function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error object in a message, or undefined. */
function errorOf(text) {
  const value = parsed(text)
  if (!isObject(value) || !Number.isInteger(value.code)) return undefined
  const code = Number.isSafeInteger(value.code) ? value.code : String(value.code)
  return new NarconiError("refused", String(value.error ?? ""), { code })
}

/** The bytes of base64 text. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16))
}

/** A WebSocket that is open, or the error why it is not. */
function opened(dial, url, protocol, listeners, ms) {
  return new Promise((resolve, reject) => {
    const socket = dial(url, protocol)
    socket.binaryType = "arraybuffer"
    let status = null
    let text = "the WebSocket could not be opened"
    let timer
    const failed = (kind, definite) => {
      clearTimeout(timer)
      reject(new NarconiError(kind, text, { code: status, definite }))
    }
    if (ms) {
      timer = setTimeout(() => {
        text = `not open after ${ms} ms`
        failed("timeout", false)
        socket.close()
      }, ms)
    }
    socket.on?.("unexpected-response", (request, response) => {
      status = response.statusCode // only `ws` tells it
      text = `the server refused with status ${status}`
      failed("refused", true)
      request.destroy()
    })
    socket.addEventListener("error", (event) => {
      if (event.message) text = event.message
    })
    socket.addEventListener("open", () => {
      clearTimeout(timer)
      resolve(socket)
    })
    socket.addEventListener("close", () => failed("connection", true))
    listeners(socket)
  })
}

export class Publisher {
  waiting = []
  unsent = []
  usable = false
  isOver = false
  closing = false

  constructor(onEnd) {
    this.onEnd = onEnd
  }

  get pending() {
    return this.waiting.length + this.unsent.length
  }

  async open(dial, url, ms) {
    this.socket = await opened(dial, url, "publish", (socket) => {
      socket.addEventListener("message", ({ data }) => this.#message(socket, data))
      socket.addEventListener("close", ({ code }) => this.#ended(`the WebSocket ended with code ${code}`))
    }, ms)
    this.usable = this.socket.readyState === 1
    return this
  }

  /** Send metadata and body, wait for the confirm. */
  publish(body, headers) {
    return new Promise((resolve, reject) => {
      this.unsent.push({ body, headers, resolve, reject })
      this.#send()
    })
  }

  #send() {
    while (this.unsent.length && this.waiting.length < WINDOW) {
      const { body, headers, resolve, reject } = this.unsent.shift()
      this.waiting.push({ resolve, reject })
      this.socket.send(JSON.stringify(headers))
      this.socket.send(body)
    }
  }

  #confirmed() {
    this.waiting.shift()?.resolve()
    if (this.usable) this.#send()
  }

  /** Nobody waits any more for a confirm: when it comes late it looks like that of the next message. */
  giveUp() {
    this.#ended("a confirm is overdue")
    this.closing = true
    ended(this.socket)
  }

  #message(socket, data) {
    if (this.isOver) return socket.close() // nothing comes behind an error but the end
    if ((data.byteLength === 0 || data === "") && this.waiting.length) return this.#confirmed()
    const error = typeof data === "string" ? errorOf(data) : undefined
    this.usable = false // the server closes behind an error
    this.isOver = true
    if (error === undefined) {
      const problem = new NarconiError("protocol", "neither a confirm nor an error", { definite: false })
      for (const { reject } of this.waiting.splice(0)) reject(problem)
      socket.close()
    } else if (this.waiting.length) this.waiting.shift().reject(error)
    else this.onEnd("error", error)
  }

  /** Nothing that was published here will be confirmed. */
  reject(text) {
    for (const { reject } of this.waiting.splice(0)) reject(lost(text))
    for (const { reject } of this.unsent.splice(0)) reject(new NarconiError("closed", text, { definite: true }))
  }

  #ended(text) {
    const wasOpen = this.socket !== undefined
    this.usable = false
    this.reject(text)
    if (wasOpen && !this.closing) this.onEnd("lost", text)
  }
}

export class Consumer {
  openAcks = []
  #metadata
  #begin
  #queue = new Promise((resolve) => (this.#begin = resolve)) // the first callback may acknowledge, so it needs a socket
  #last = 0
  isOver = false
  closing = false

  constructor(encoding, callback, onEnd) {
    Object.assign(this, { encoding: encoding?.toLowerCase(), callback, onEnd }) // any case will do
  }

  async open(dial, url, ms) {
    this.socket = await opened(dial, url, "consume", (socket) => {
      socket.addEventListener("message", ({ data }) => this.#message(socket, data))
      socket.addEventListener("close", ({ code }) => {
        if (this.socket !== undefined && !this.closing) onEndOf(this, code)
      })
    }, ms)
    this.#begin()
    return this
  }

  #message(socket, data) {
    if (this.isOver) return // what is a body, and what is metadata, cannot be told any more
    this.#last = performance.now()
    if (this.#metadata !== undefined) {
      const metadata = this.#metadata
      this.#metadata = undefined
      return this.#take(metadata, typeof data === "string" ? new TextEncoder().encode(data) : new Uint8Array(data))
    }
    const metadata = typeof data === "string" ? parsed(data) : undefined
    const error = typeof data === "string" ? errorOf(data) : undefined
    if (error !== undefined) return this.onEnd("error", error)
    if (!isObject(metadata)) {
      this.isOver = true
      this.onEnd("error", new NarconiError("protocol", "no metadata", { definite: false }))
      return socket.close()
    }
    if (!this.encoding) this.#metadata = metadata
    else this.#take(metadata, this.#decoded(metadata.message))
  }

  #decoded(text) {
    if (this.encoding === "base64") return fromBase64(text)
    return this.encoding === "hex" ? fromHex(text) : new TextEncoder().encode(text)
  }

  #take({ ackId, redelivered = null, timestamp = null, message: _, ...headers }, body) {
    if (ackId !== undefined) this.openAcks.push(ackId)
    const message = { body, headers, redelivered, timestamp, ackId: ackId ?? null }
    const failed = (error) => console.error("the callback failed:", error)
    this.#queue = this.#queue.then(() => (this.closing ? undefined : this.callback(message, this))).catch(failed)
  }

  /** Acknowledge one message, or all up to it; once. */
  ack(ackId, upTo = false) {
    if (this.socket.readyState !== 1) throw new NarconiError("closed", "the WebSocket is closed", { definite: true })
    const at = this.openAcks.indexOf(ackId)
    if (at < 0) throw new NarconiError("invalid", "this message waits for no acknowledgement")
    this.openAcks.splice(upTo ? 0 : at, upTo ? at + 1 : 1)
    this.socket.send(JSON.stringify({ [upTo ? "ackToId" : "ackId"]: ackId }))
  }

  /** The graceful end: ask for no more, wait until what came is processed and acknowledged. */
  async drain() {
    this.#last = performance.now()
    this.socket.send("")
    const waits = () => performance.now() < this.#last + DRAIN_QUIET_MS || this.openAcks.length
    while (waits() && this.socket.readyState === 1) await sleep(20)
    await this.#queue
  }

  /** Close, maybe by the graceful end. */
  async end(drain) {
    if (drain && this.socket.readyState === 1) await this.drain()
    this.closing = true
    await closed(this.socket)
  }

  /** What waits for its acknowledgement goes back to the queue. */
  giveUp() {
    this.closing = true
    ended(this.socket)
  }
}

/** Let go of a WebSocket; a page has to say goodbye. */
function ended(socket) {
  if (socket.terminate) socket.terminate()
  else socket.close()
}

/** Ping, and let go when a ping has no pong until the next one is due. Pages cannot ping. */
export function keepAlive(socket, ms) {
  let alive = true
  let timer
  socket.on("open", () => {
    timer = setInterval(() => {
      if (!alive) return socket.terminate()
      alive = false
      socket.ping()
    }, ms)
  })
  socket.on("pong", () => (alive = true))
  socket.on("close", () => clearInterval(timer))
}

function onEndOf(consumer, code) {
  consumer.onEnd("lost", `the WebSocket ended with code ${code}`)
}

/** Close a WebSocket; resolves when it is gone. */
export function closed(socket) {
  return new Promise((resolve) => {
    if (socket.readyState === 3) return resolve()
    socket.addEventListener("close", resolve)
    socket.close(1000)
  })
}
