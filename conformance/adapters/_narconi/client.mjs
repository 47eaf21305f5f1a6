// A client for Narconi, as somebody writes it who has read Narconi's document. It runs in browsers as it is, and in
// Node with the WebSocket of the package `ws`.
//
// Publishing: one WebSocket per queue; confirms come in the order of the messages. Consuming: one WebSocket per
// subscription. Nothing reconnects by itself, but the next publish opens a new WebSocket.

const CUSTOM = "x-msg-x-"
const DRAIN_QUIET_MS = 300 // after the end was asked for, deliveries that are on the way come within this time

/** An op did not work out: kind, text, and maybe the status of the wire. */
export class NarconiError extends Error {
  constructor(kind, text, { code = null, definite } = {}) {
    super(text)
    Object.assign(this, { kind, code, definite })
  }
}

const lost = (text) => new NarconiError("connection", text, { definite: false })
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

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

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)

function parsed(text) {
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
  return new NarconiError("refused", String(value.error ?? ""), { code: value.code })
}

/** The bytes of base64 text. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16))
}

/** A WebSocket that is open, or the error why it is not. */
function opened(WebSocket, url, protocol, listeners, ms) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, protocol)
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

class Publisher {
  waiting = []
  usable = false
  closing = false

  constructor(onEnd) {
    this.onEnd = onEnd
  }

  async open(WebSocket, url, ms) {
    this.socket = await opened(WebSocket, url, "publish", (socket) => {
      socket.addEventListener("message", ({ data }) => this.#message(socket, data))
      socket.addEventListener("close", ({ code }) => this.#ended(`the WebSocket ended with code ${code}`))
    }, ms)
    this.usable = this.socket.readyState === 1
    return this
  }

  /** Send metadata and body, wait for the confirm. */
  publish(body, headers) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      this.socket.send(JSON.stringify(headers))
      this.socket.send(body)
    })
  }

  #message(socket, data) {
    if (data.byteLength === 0 || data === "") return this.waiting.shift()?.resolve()
    const error = typeof data === "string" ? errorOf(data) : undefined
    this.usable = false // the server closes behind an error
    if (error === undefined) {
      const problem = new NarconiError("protocol", "neither a confirm nor an error", { definite: false })
      for (const { reject } of this.waiting.splice(0)) reject(problem)
      socket.close()
    } else if (this.waiting.length) this.waiting.shift().reject(error)
    else this.onEnd("error", error)
  }

  #ended(text) {
    const wasOpen = this.socket !== undefined
    this.usable = false
    for (const { reject } of this.waiting.splice(0)) reject(lost(text))
    if (wasOpen && !this.closing) this.onEnd("lost", text)
  }
}

class Consumer {
  openAcks = []
  #metadata
  #queue = Promise.resolve()
  #last = 0
  closing = false

  constructor(encoding, callback, onEnd) {
    Object.assign(this, { encoding, callback, onEnd })
  }

  async open(WebSocket, url, ms) {
    this.socket = await opened(WebSocket, url, "consume", (socket) => {
      socket.addEventListener("message", ({ data }) => this.#message(socket, data))
      socket.addEventListener("close", ({ code }) => {
        if (this.socket !== undefined && !this.closing) onEndOf(this, code)
      })
    }, ms)
    return this
  }

  #message(socket, data) {
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
    this.#queue = this.#queue.then(() => this.callback(message))
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
}

function onEndOf(consumer, code) {
  consumer.onEnd("lost", `the WebSocket ended with code ${code}`)
}

/** Close a WebSocket; resolves when it is gone. */
function closed(socket) {
  return new Promise((resolve) => {
    if (socket.readyState === 3) return resolve()
    socket.addEventListener("close", resolve)
    socket.close(1000)
  })
}

/** One project on one server. `onEnd("lost" | "error", text or error)` tells of WebSockets that end by themselves. */
export class Narconi {
  #root
  #publishers = new Map()
  #consumers = []
  closed = false

  constructor({ base, project, WebSocket, onEnd }) {
    Object.assign(this, { WebSocket, onEnd })
    this.#root = `${base}/v2/${encodeURIComponent(project)}/queues/`
  }

  get pending() {
    return [...this.#publishers.values()].reduce((sum, { made }) => sum + (made?.waiting.length ?? 0), 0)
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
    const signal = ms ? AbortSignal.timeout(ms) : undefined
    try {
      response = await fetch(url, { method, body, headers, signal, redirect: "manual", cache: "no-store" })
      bytes = new Uint8Array(await response.arrayBuffer())
    } catch (error) {
      if (signal?.aborted) throw new NarconiError("timeout", `not done after ${ms} ms`, { definite: false })
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
    return { body: bytes, headers, redelivered: flag && flag === "true", timestamp: time && Number(time), ackId: null }
  }

  // WebSocket

  #webSocketUrl(queue, query = "") {
    return this.#url(queue, `/messages${query}`).replace(/^http/, "ws")
  }

  /** The publishing WebSocket of a queue; the first message opens it, and the first behind its end. */
  async #publisher(queue, ms) {
    let found = this.#publishers.get(queue)
    if (!found || (found.made && !found.made.usable)) {
      found = {}
      this.#publishers.set(queue, found)
      found.opening = new Publisher(this.onEnd).open(this.WebSocket, this.#webSocketUrl(queue), ms)
      found.opening.then((made) => (found.made = made), () => this.#publishers.delete(queue))
    }
    return found.opening
  }

  /** Publish one message over the WebSocket; settles with its confirm. */
  async publish(queue, body, headers, ms) {
    this.#checkOpen()
    checkMetadata(headers)
    const confirmed = this.#publisher(queue, ms).then((publisher) => {
      if (!publisher.usable) throw new NarconiError("closed", "the WebSocket is closed", { definite: true })
      return publisher.publish(body, headers)
    })
    return within(ms, confirmed)
  }

  /** Consume over a WebSocket; the callback gets one message after the other. */
  async consume(queue, callback, { ack, limit, encoding } = {}, ms) {
    this.#checkOpen()
    const query = [ack && "ack=true", limit !== undefined && `limit=${limit}`, encoding && `encoding=${encoding}`]
    const text = query.filter(Boolean).join("&")
    const consumer = new Consumer(encoding, callback, this.onEnd)
    await consumer.open(this.WebSocket, this.#webSocketUrl(queue, text && `?${text}`), ms)
    this.#consumers.push(consumer)
    return consumer
  }

  /** End one subscription. */
  async endConsumer(consumer, drain) {
    if (drain && consumer.socket.readyState === 1) await consumer.drain()
    consumer.closing = true
    await closed(consumer.socket)
  }

  /** Wait for confirms for half of the time, then close everything. */
  async close(ms = 10_000) {
    const until = performance.now() + ms / 2
    while (this.pending && performance.now() < until) await sleep(10)
    this.closed = true
    const publishers = [...this.#publishers.values()].map(({ made }) => made).filter(Boolean)
    const all = [...publishers, ...this.#consumers]
    for (const one of all) one.closing = true
    const gone = Promise.all(all.map(({ socket }) => closed(socket)))
    await Promise.race([gone, sleep(Math.max(100, ms / 2 - 500))])
    for (const { waiting } of publishers) for (const { reject } of waiting.splice(0)) reject(lost("the session was closed"))
    for (const { socket } of all) socket.terminate?.() // what browsers cannot do
  }
}
