// A small BlazingMQ client, in the way that the document about a Node SDK's session layer describes.
//
//   const session = new Session({ host, port, onMessage, onEvent })
//   await session.start(5000)
//   const queue = await session.openQueue("bmq://bmq.test.mem.priority/q", { read: true, write: true }, 5000)
//   await session.postAndWaitForAck(queue, Buffer.from("hello"), {}, 5000)
//   session.confirm(message)
//   await session.stop(5000)
//
// There is no reconnect: after CONNECTION_LOST everything that waits has failed, and a new session is needed.

import { connect } from "node:net"
import { BmqError, closed, invalid, lost, malformed, timedOut } from "./errors.mjs"
import { readContent, writeContent } from "./properties.mjs"
import { Splitter, Type, confirmEvent, controlEvent, event, putEvent, readAcks, readControl, readPushes } from "./wire.mjs"

const URI = /^bmq:\/\/[-a-zA-Z0-9._]+(\.~[-a-zA-Z0-9._]+)?\/[-a-zA-Z0-9_.]{1,64}(\?id=([-a-zA-Z0-9_.]+))?$/
const FEATURES = "PROTOCOL_ENCODING:JSON;MPS:MESSAGE_PROPERTIES_EX"
const CATEGORIES = {
  E_SUCCESS: 0,
  E_UNKNOWN: -1,
  E_TIMEOUT: -2,
  E_NOT_CONNECTED: -3,
  E_CANCELED: -4,
  E_NOT_SUPPORTED: -5,
  E_REFUSED: -6,
  E_INVALID_ARGUMENT: -7,
  E_NOT_READY: -8,
}
const STATUS = { 0: "SUCCESS", 1: "LIMIT_MESSAGES", 2: "LIMIT_BYTES", 3: "STORAGE_FAILURE", 6: "STORAGE_FAILURE", 7: "NOT_READY", 15: "NOT_READY" }
const CORRELATION_MAX = 0xffffff
const DEFAULTS = { maxUnconfirmedMessages: 1024, maxUnconfirmedBytes: 33554432, consumerPriority: 0 }

export class Session {
  #socket
  #splitter = new Splitter()
  #state = "created" // connecting, started, stopping, stopped
  #greeting // what waits for brokerResponse
  #requests = new Map() // by rId
  #acks = new Map() // by correlation id
  #queues = new Map() // by queue id
  #opening = new Set() // URIs
  #leaving = new Map() // by URI, where an open has failed: until its queue is given back
  #newStyle = false
  #lastRequest = 0
  #lastQueue = -1
  #lastSubscription = 0
  #deliveries = Promise.resolve()
  #monitor
  #heard = true
  #stopping

  constructor({ host, port, onMessage, onEvent = () => {} }) {
    Object.assign(this, { host, port, onMessage, correlation: 0 })
    this.onEvent = (what, error) => this.#tell(onEvent, what, error)
  }

  /** Call the application; what that throws goes no further. */
  #tell(onEvent, what, error) {
    try {
      onEvent(what, error)
    } catch (failure) {
      if (what !== "CALLBACK_ERROR") this.#tell(onEvent, "CALLBACK_ERROR", failure)
    }
  }

  get open() {
    return this.#state === "started"
  }

  get pending() {
    return [...this.#requests.values()].filter(({ isLate }) => !isLate).length + this.#acks.size
  }

  // life

  start(timeoutMs) {
    if (this.#state !== "created") throw invalid("a session starts once")
    this.#state = "connecting"
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(timedOut(`not started within ${timeoutMs} ms`)), timeoutMs)
      this.#greeting = {
        resolve: () => (clearTimeout(timer), resolve()),
        reject: (error) => (clearTimeout(timer), reject(error)),
      }
      this.#socket = connect({ host: this.host, port: this.port, noDelay: true })
      this.#socket.on("connect", () => this.#socket.write(controlEvent({ clientIdentity: identity() })))
      this.#socket.on("data", (data) => this.#receive(data))
      this.#socket.on("error", (error) => this.#fail(lost(error.message)))
      this.#socket.on("close", () => this.#fail(lost("the broker closed the connection")))
    })
  }

  /** Close every queue, say goodbye, close the socket. A second call waits for the first. */
  stop(timeoutMs = 5000) {
    this.#stopping ??= this.#stop(timeoutMs)
    return this.#stopping
  }

  async #stop(timeoutMs) {
    if (this.#state !== "started") {
      this.#fail(closed("the session was stopped", false))
      this.#state = "stopped"
      return
    }
    this.#state = "stopping"
    this.#rejectAll(closed("the session was stopped", false))
    const end = Date.now() + timeoutMs
    try {
      for (const queue of [...this.#queues.values()]) await this.#close(queue, end - Date.now())
      await this.#request({ disconnect: {} }, "disconnectResponse", end - Date.now())
    } finally {
      this.#state = "stopped"
      this.#end()
      this.#rejectAll(closed("the session was stopped", false))
    }
  }

  /** End the connection, and all that waits for it. */
  #fail(error) {
    const { resolve: _, reject } = this.#greeting ?? {}
    const wasOpen = this.#state === "started"
    this.#greeting = undefined
    if (this.#state !== "stopping") this.#state = "stopped"
    this.#end()
    this.#rejectAll(error.kind === "closed" ? error : lost(error.message))
    reject?.(error)
    if (wasOpen) this.onEvent("CONNECTION_LOST", error)
  }

  #end() {
    clearInterval(this.#monitor)
    this.#socket?.destroy()
  }

  #rejectAll(error) {
    for (const { reject } of [...this.#requests.values(), ...this.#acks.values()]) reject(error)
    this.#requests.clear()
    this.#acks.clear()
  }

  #needStarted() {
    if (this.#state !== "started") throw closed(`the session is ${this.#state}`)
  }

  // queues

  async openQueue(uri, { read = false, write = false, options = {} }, timeoutMs) {
    this.#needStarted()
    const [, , , appId] = URI.exec(uri) ?? []
    if (!URI.test(uri) || !(read || write)) throw invalid(`not a queue to open: ${uri}`)
    if (appId && write) throw invalid("a writer has no ?id=")
    const known = [...this.#queues.values()].some((queue) => queue.uri === uri)
    if (known || this.#opening.has(uri)) throw invalid(`${uri} is open`)
    const id = ++this.#lastQueue
    const handle = { uri: uri.split("?")[0], qId: id, flags: (read ? 2 : 0) | (write ? 12 : 0) }
    Object.assign(handle, { readCount: read ? 1 : 0, writeCount: write ? 1 : 0, adminCount: 0 })
    if (appId) handle.subIdInfo = { subId: 1, appId }
    const queue = { id, uri, read, write, handle, appId, subId: appId ? 1 : 0 }
    const end = Date.now() + timeoutMs
    this.#opening.add(uri)
    try {
      await this.#gone(uri, timeoutMs)
      await this.#request({ openQueue: { handleParameters: handle } }, "openQueueResponse", end - Date.now(), () => this.#giveBack(queue))
      this.#queues.set(id, queue)
      if (read) await this.#configure(queue, [options], end - Date.now())
    } catch (error) {
      if (this.#queues.delete(id) && this.open) {
        const leaving = this.#takeBack(queue)
        this.#leaving.set(uri, leaving)
        leaving.finally(() => this.#leaving.get(uri) === leaving && this.#leaving.delete(uri))
      }
      throw error
    } finally {
      this.#opening.delete(uri)
    }
    return queue
  }

  /** What was opened in vain before is closed first: the broker would take the second open for a second handle. */
  async #gone(uri, timeoutMs) {
    const leaving = this.#leaving.get(uri)
    if (!leaving) return
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(timedOut(`${uri} was not closed within ${timeoutMs} ms`)), timeoutMs)
    })
    await Promise.race([leaving, late]).finally(() => clearTimeout(timer))
  }

  configureQueue(queue, options, timeoutMs) {
    this.#needStarted()
    this.#check(queue, "read")
    return this.#configure(queue, [options], timeoutMs)
  }

  async closeQueue(queue, timeoutMs) {
    this.#needStarted()
    this.#check(queue)
    await this.#close(queue, timeoutMs)
  }

  #check(queue, right) {
    if (this.#queues.get(queue?.id) !== queue) throw closed("the queue is not open")
    if (right && !queue[right]) throw invalid(`the queue is not open for ${right}`)
  }

  async #close(queue, timeoutMs) {
    const end = Date.now() + timeoutMs
    try {
      if (queue.read) await this.#configure(queue, [], timeoutMs / 2)
    } catch (error) {
      if (error.kind !== "timeout") throw error // closing drops the consumer all the same
    }
    try {
      await this.#request({ closeQueue: { handleParameters: queue.handle, isFinal: true } }, "closeQueueResponse", end - Date.now())
    } finally {
      this.#queues.delete(queue.id)
    }
  }

  /** A queue that nobody waits for any more was opened after all. */
  #giveBack(queue) {
    const request = { closeQueue: { handleParameters: queue.handle, isFinal: true } }
    this.#request(request, "closeQueueResponse", 5000).catch(() => {})
  }

  /** A queue that may have been configured already: it is drained first, if that works. */
  async #takeBack(queue) {
    if (queue.read) await this.#configure(queue, [], 5000).catch(() => {})
    if (this.open) this.#giveBack(queue)
  }

  #configure(queue, consumers, timeoutMs) {
    const subscriptions = consumers.map((options) => ({
      sId: ++this.#lastSubscription,
      expression: { version: "E_UNDEFINED", text: "" },
      consumers: [{ ...DEFAULTS, ...options, consumerPriorityCount: 1 }],
    }))
    const streamParameters = { appId: queue.appId ?? "__default", subscriptions }
    return this.#request({ configureStream: { qId: queue.id, streamParameters } }, "configureStreamResponse", timeoutMs)
  }

  /** Send a request; `late` is called with an answer that comes after the time-out. */
  #request(choice, answer, timeoutMs, late) {
    const rId = ++this.#lastRequest
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#requests.delete(rId)
        if (late) this.#requests.set(rId, { answer, resolve: late, reject: () => {}, isLate: true })
        reject(timedOut(`no ${answer} within ${timeoutMs} ms`))
      }, Math.max(0, timeoutMs))
      const done = (act) => (value) => (clearTimeout(timer), act(value))
      this.#requests.set(rId, { answer, resolve: done(resolve), reject: done(reject) })
      this.#socket.write(controlEvent({ rId, ...choice }))
    })
  }

  // messages

  /** Send a message and do not ask what becomes of it. */
  post(queue, payload, { properties = {}, zlib = false } = {}) {
    this.#put(queue, payload, properties, zlib, 0)
  }

  /** Settles with the ACK. */
  postAndWaitForAck(queue, payload, { properties = {}, zlib = false }, timeoutMs) {
    const id = this.#nextCorrelation()
    this.#put(queue, payload, properties, zlib, id)
    return new Promise((resolve, reject) => {
      const late = () => (this.#acks.delete(id), reject(timedOut(`no ACK within ${timeoutMs} ms`)))
      const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs)
      const done = (act) => (value) => (clearTimeout(timer), act(value))
      this.#acks.set(id, { queueId: queue.id, resolve: done(resolve), reject: done(reject) })
    })
  }

  #nextCorrelation() {
    do this.correlation = (this.correlation % CORRELATION_MAX) + 1
    while (this.#acks.has(this.correlation))
    return this.correlation
  }

  #put(queue, payload, properties, zlib, correlationId) {
    this.#needStarted()
    this.#check(queue, "write")
    if (!payload.length) throw invalid("a message of 0 bytes")
    const content = writeContent(payload, properties, zlib, this.#newStyle)
    this.#socket.write(putEvent({ queueId: queue.id, correlationId, ...content }))
  }

  confirm({ queue, guid }) {
    this.#needStarted()
    this.#check(queue)
    this.#socket.write(confirmEvent(queue.id, guid, queue.subId))
  }

  // what comes

  #receive(data) {
    this.#heard = true
    try {
      for (const each of this.#splitter.push(data)) {
        this.#handle(each)
        if (this.#socket.destroyed) return
      }
    } catch (error) {
      if (this.open) this.onEvent("ERROR", error)
      this.#fail(error)
    }
  }

  #handle(each) {
    if (each.type === Type.HEARTBEAT_REQ) this.#socket.write(event(Type.HEARTBEAT_RSP))
    else if (this.#greeting) {
      if (each.type === Type.CONTROL) this.#greet(each)
    } else {
      try {
        if (each.type === Type.CONTROL) this.#answer(readControl(each))
        else if (each.type === Type.ACK) for (const ack of readAcks(each.body)) this.#acknowledge(ack)
        else if (each.type === Type.PUSH) for (const push of readPushes(each.body)) this.#deliver(push)
      } catch (error) {
        if (!(error instanceof BmqError)) throw error
        this.onEvent("ERROR", error) // the event is lost, the connection is not
      }
    }
  }

  #greet(each) {
    const { brokerResponse: response } = readControl(each)
    if (!response) throw malformed("the first message is no brokerResponse")
    const result = response.result ?? {}
    if (typeof result !== "object" || (result.category ?? "E_SUCCESS") !== "E_SUCCESS") throw refusal(result)
    const { resolve } = this.#greeting
    this.#greeting = undefined
    this.#newStyle = String(response.brokerIdentity?.features ?? "").includes("MPS:MESSAGE_PROPERTIES_EX")
    this.#state = "started"
    this.#watch(response.heartbeatIntervalMs ?? 3000, response.maxMissedHeartbeats ?? 10)
    resolve()
  }

  /** A silent broker is asked for a sign of life, and given up after `most` silent intervals more. */
  #watch(intervalMs, most) {
    if (!(intervalMs > 0) || !(most > 0)) return
    let missed = 0
    this.#monitor = setInterval(() => {
      if (this.#heard) missed = 0
      else if (missed++ >= most) return this.#fail(lost(`no sign of life within ${missed} intervals`))
      else this.#socket.write(event(Type.HEARTBEAT_REQ))
      this.#heard = false
    }, intervalMs)
    this.#monitor.unref()
  }

  #answer({ rId, ...choice }) {
    const waiting = this.#requests.get(rId)
    if (!waiting) return
    if (!choice.status && choice[waiting.answer] === undefined) throw malformed(`not a ${waiting.answer} for request ${rId}`)
    this.#requests.delete(rId)
    if (choice.status) waiting.reject(refusal(choice.status))
    else waiting.resolve(choice)
  }

  #acknowledge({ status, correlationId, guid, queueId }) {
    const name = STATUS[status] ?? "UNKNOWN"
    const waiting = this.#acks.get(correlationId)
    if (waiting?.queueId === queueId) {
      this.#acks.delete(correlationId)
      if (status === 0) waiting.resolve({ guid: Buffer.from(guid), correlationId })
      else waiting.reject(new BmqError("refused", name, { code: name, definite: true }))
    } else if (status !== 0) {
      this.onEvent("ERROR", new BmqError("refused", `a message that asked for no ACK: ${name}`, { code: name, definite: true }))
    }
  }

  #deliver(push) {
    const queue = this.#queues.get(push.queueId)
    if (!queue) return this.onEvent("ERROR", malformed(`a delivery for queue ${push.queueId}`))
    let content
    try {
      content = readContent(push)
    } catch (error) {
      return this.onEvent("ERROR", error instanceof BmqError ? error : malformed(error.message))
    }
    const message = { queue, guid: Buffer.from(push.guid), ...content }
    this.#deliveries = this.#deliveries.then(async () => {
      if (this.#state === "stopped") return // a callback may have taken longer than the stop
      try {
        await this.onMessage(message)
      } catch (error) {
        this.onEvent("CALLBACK_ERROR", error)
      }
    })
  }
}

function refusal({ category = "", code, message }) {
  const text = `${category} ${code ?? ""}: ${message ?? ""}`
  return new BmqError("refused", text, { code: CATEGORIES[category] ?? category, definite: true })
}

function identity() {
  return {
    protocolVersion: 1,
    sdkVersion: 10000,
    clientType: "E_TCPCLIENT",
    processName: "node",
    pid: process.pid,
    sessionId: 1,
    hostName: "localhost",
    features: FEATURES,
    clusterName: "",
    clusterNodeId: -1,
    sdkLanguage: "E_JAVA", // there is no word for Node
  }
}
