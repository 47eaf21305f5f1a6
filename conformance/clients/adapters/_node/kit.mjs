// Write an adapter for a Node library: everything but the library. No dependencies, Node 18 or newer.
//
//   class MyAdapter extends AdapterBase {
//     facts = { adapter: "mine", library: "mylib", protocols: ["rabbitmq-stream"], roles: ["publisher"] }
//     ops = { connect: async ({ session, endpoints, options }, { timeoutMs }) => { ... } }
//   }
//   run(new MyAdapter())
//
// An op gets the members of `args` and a context, returns the `result` object, and throws a Failure or whatever
// the library threw. The protocol is described in ADAPTER.md of fakebrokers.

import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Socket } from "node:net"
import { takeCoverage } from "node:v8"

export const VERSION = 1
const INLINE_BYTES_MAX = 4096
const GOODBYE_MS = 1500
const DEFINITE_KINDS = new Set(["auth", "invalid", "refused", "unsupported"])

/** An op did not work out. `definite`: it surely had no effect; by default what the kind implies. */
export class Failure extends Error {
  constructor(kind, text = "", { code = null, definite = DEFINITE_KINDS.has(kind), type } = {}) {
    super(text)
    Object.assign(this, { kind, code, definite, type })
  }

  report() {
    const { kind, definite, code, message, type } = this
    return { kind, definite, code, text: message, ...(type === undefined ? {} : { type }) }
  }
}

/** Thrown inside the library's callback because the script asked for it. */
export class CallbackError extends Error {}

/** The bytes that a body stands for. */
export function bodyBytes(body) {
  if (body.text !== undefined) return Buffer.from(body.text, "utf8")
  if (body.b64 !== undefined) return Buffer.from(body.b64, "base64")
  if (body.gen === "zero") return Buffer.alloc(body.len)
  if (body.gen !== "rand") throw new Failure("invalid", "a body has text, b64 or gen zero|rand")
  const seedAndCounter = Buffer.alloc(16)
  seedAndCounter.writeBigUInt64BE(BigInt(body.seed))
  const blocks = []
  for (let n = 0; n * 32 < body.len; n++) {
    seedAndCounter.writeBigUInt64BE(BigInt(n), 8)
    blocks.push(createHash("sha256").update(seedAndCounter).digest())
  }
  return Buffer.concat(blocks).subarray(0, body.len)
}

/** The parts of a body: one, or those of a list. */
export function bodyParts(body) {
  return Array.isArray(body) ? body.map(bodyBytes) : [bodyBytes(body)]
}

/** A key or position of a request as bytes: text, or a body; null without one. */
export function keyBytes(key) {
  return key === undefined || key === null ? null : bodyBytes(typeof key === "string" ? { text: key } : key)
}

/** How bytes are reported: base64 up to 4096 bytes, above that digest and length. */
export function reportBody(data) {
  if (data.length <= INLINE_BYTES_MAX) return { b64: Buffer.from(data).toString("base64") }
  return { sha256: createHash("sha256").update(data).digest("hex"), len: data.length }
}

/** A key or position for the runner: text, or {b64} where it is none. */
export function reportKey(key) {
  const text = key.toString("utf8")
  return Buffer.from(text, "utf8").equals(key) ? text : { b64: key.toString("base64") }
}

/** An integer for JSON: a string of digits where a number would not be exact. */
export function number(value) {
  return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : String(value)
}

/** "127.0.0.1:5552" or "[::1]:5552" in two parts. */
export function hostPort(endpoint) {
  const at = endpoint.lastIndexOf(":")
  return { host: endpoint.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(endpoint.slice(at + 1)) }
}

/** `options.tls` in the words of node:tls, or undefined. */
export function tlsOptions({ tls } = {}) {
  if (!tls) return undefined
  return { ca: tls.ca_file && readFileSync(tls.ca_file, "utf8"), servername: tls.server_name }
}

/** Destroy every socket of this process without goodbye, whoever holds it. */
function dropSockets() {
  const standard = [process.stdin, process.stdout, process.stderr]
  for (const socket of process._getActiveHandles()) {
    if (!(socket instanceof Socket) || standard.includes(socket)) continue
    socket.removeAllListeners()
    socket.on("error", () => {})
    socket.destroy()
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** What the script wants done with the messages of one subscription (`on_message`). */
export class Subscription {
  #adapter
  #plan
  #ordinal = 0
  #buffer = []
  #filled = () => {}

  constructor(adapter, sub, target, onMessage) {
    this.sub = sub
    this.target = target
    this.handle = undefined // whatever the library has for the subscription
    this.native = new Map() // by ref: what the library needs to settle a message; kept unless `auto_settle` does that
    this.#adapter = adapter
    this.#plan = onMessage ?? {}
  }

  /** Report one message and do what the script wants; return its promise from the library's callback. */
  async deliver(body, { native, ...details } = {}) {
    const ref = this.#adapter.nextRef()
    const ordinal = ++this.#ordinal
    if (native !== undefined) this.native.set(ref, native)
    const shape = { headers: {}, redelivered: null, ts: null, position: null, meta: {}, ...details }
    const reported = Array.isArray(body) ? body.map(reportBody) : reportBody(body) // an array: several parts
    const message = { ref, sub: this.sub, target: this.target, body: reported, ...shape }
    if (this.#plan.mode === "event") this.#adapter.emit("message", message)
    else this.#buffer.push(message), this.#filled()
    const { sleep_on = [ordinal], block, raise_on = [] } = this.#plan
    const sleep_ms = sleep_on.includes(ordinal) ? (this.#plan.sleep_ms ?? 0) : 0
    let raised = true
    try {
      if (sleep_ms && block) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, sleep_ms)
      else if (sleep_ms) await sleep(sleep_ms)
      await this.#innerOps(ref)
      if (raise_on.includes(ordinal)) throw new CallbackError(`raise_on ${ordinal}`)
      this.#adapter.trip("message")
      raised = false
    } finally {
      if (sleep_ms || this.#plan.do?.length) this.#adapter.emit("returned", { sub: this.sub, ref, raised })
    }
  }

  /** What the library needs to settle a message, by its ref. */
  nativeOf(ref) {
    if (!this.native.has(ref)) throw new Failure("invalid", `no message ${ref} to settle`)
    return this.native.get(ref)
  }

  async #innerOps(ref) {
    const wanted = [...(this.#plan.do ?? [])]
    if (this.#plan.auto_settle === "ack") wanted.push({ op: "settle", args: { sub: this.sub, ref, how: "ack" } })
    for (const [index, inner] of wanted.entries()) {
      const answer = await this.#adapter.attempt(inner)
      this.#adapter.emit("done", { sub: this.sub, ref, index, op: inner.op, ...answer })
    }
    if (this.#plan.auto_settle === "ack") this.native.delete(ref)
  }

  /** Up to `max` buffered messages: at once if there are any, else as soon as one comes in `waitMs`. */
  async take(max, waitMs) {
    if (!this.#buffer.length) {
      await Promise.race([new Promise((resolve) => (this.#filled = resolve)), sleep(waitMs)])
    }
    return this.#buffer.splice(0, max)
  }
}

/** The adapter's side of the protocol. Subclass it, fill in `facts`, add to `ops`. */
export class AdapterBase {
  facts = {}
  ops = {}
  callbacks = ["message"] // the kinds of callback that call `trip`
  sessions = new Map() // by name, whatever the library has for a session
  subs = new Map()
  #armed = {}
  #lines = 0
  #refs = 0
  #started = performance.now()
  #cancels = new Map()

  /** Forget what the sessions hold, such as timers. Part of `reset`, which destroys the sockets itself. */
  async clear() {}

  /** The Failure for what the library threw. */
  classify(error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    const code = error?.code
    if (typeof code === "string" && /^(E[A-Z]+$|ERR_STREAM|ERR_SOCKET|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO)/.test(code)) {
      return new Failure("connection", text, { definite: code === "ECONNREFUSED" })
    }
    return new Failure("internal", text)
  }

  emit(event, fields) {
    this.#write({ event, ...fields })
  }

  /** Throw if `raise_next` armed this kind of callback; call it inside each callback of the library. */
  trip(callback) {
    if (!(this.#armed[callback] > 0)) return
    this.#armed[callback]--
    throw new CallbackError(`raise_next ${callback}`)
  }

  nextRef() {
    return `m${++this.#refs}`
  }

  session(name) {
    const found = this.sessions.get(name)
    if (!found) throw new Failure("closed", `no session "${name}"`, { definite: true })
    return found
  }

  subscription(sub) {
    const found = this.subs.get(sub)
    if (!found) throw new Failure("closed", `no subscription "${sub}"`, { definite: true })
    return found
  }

  /** Carry out one op; never throws. */
  async attempt({ op, args = {}, timeout_ms: timeoutMs, id }) {
    try {
      const method = this.#all()[op]
      if (!method) throw new Failure("unsupported", `no op "${op}"`)
      return { ok: true, result: (await method(args, { timeoutMs, id })) ?? {} }
    } catch (error) {
      const failure = error instanceof Failure ? error : this.#classified(error)
      return { ok: false, error: failure.report() }
    }
  }

  #classified(error) {
    try {
      return this.classify(error)
    } catch (bug) {
      return ownBug(bug)
    }
  }

  /** Start one request and answer it when it ends. A cancelled one is answered at once. */
  async receive(request) {
    const cancelled = new Promise((resolve) => this.#cancels.set(request.id, resolve))
    const answer = await Promise.race([this.attempt(request), cancelled])
    this.#cancels.delete(request.id)
    if (request.op === "hello" || request.op === "reset") takeCoverage() // nothing without NODE_V8_COVERAGE
    this.#write({ id: request.id, ...answer })
    if (request.op === "shutdown") process.exit(0)
  }

  #all() {
    const own = {
      hello: (args) => this.#hello(args),
      echo: ({ body }) => ({ body: reportBody(bodyBytes(body)) }),
      next: async ({ sub, max = 1, wait_ms = 0 }) => ({ messages: await this.subscription(sub).take(max, wait_ms) }),
      reset: (_, { id }) => this.#reset(id),
      shutdown: (_, { id }) => this.#reset(id),
      ...this.ops,
    }
    if (this.#words(this.facts.caps).includes("callback_raise")) own.raise_next = (args) => this.#raiseNext(args)
    return own
  }

  #words(text) {
    return (text ?? "").split(" ").filter(Boolean)
  }

  #hello({ version, protocol }) {
    const { protocols = [], caps, lacks, reconnects, ...facts } = this.facts
    if (version !== VERSION || !protocols.includes(protocol)) {
      throw new Failure("unsupported", `version ${VERSION} for ${protocols.join(", ")} only`)
    }
    return {
      version: VERSION,
      adapter_version: "1",
      language: "javascript",
      runtime: `node ${process.versions.node}`,
      roles: [],
      limits: {},
      settles: "none",
      restart: "never",
      formats: [],
      ...facts,
      protocols,
      ops: Object.keys(this.#all()).sort(),
      caps: {
        ...Object.fromEntries(["concurrent", ...this.#words(caps)].map((cap) => [cap, true])),
        ...Object.fromEntries(this.#words(lacks).map((word) => [word, false])), // "mol.call.node", say
        ...(reconnects ? { auto_reconnect: reconnects } : {}), // locator, producer, consumer
      },
    }
  }

  #raiseNext({ callback, times = 1 }) {
    const armed = this.callbacks.includes(callback)
    if (armed) this.#armed[callback] = times
    return { armed }
  }

  async #reset(own) {
    await this.clear()
    dropSockets()
    const answer = { ok: false, error: new Failure("cancelled").report() }
    for (const [id, cancel] of this.#cancels) if (id !== own) cancel(answer)
    this.sessions.clear()
    this.subs.clear()
    this.#armed = {}
  }

  #write(line) {
    const t = Math.round((performance.now() - this.#started) * 1000) / 1000
    process.stdout.write(asText({ n: ++this.#lines, t, ...line }) + "\n")
  }
}

/** Serve stdin and stdout until EOF or `shutdown`; the exit code is 0, or 3 for a bug of the adapter itself. */
export function run(adapter) {
  console.log = console.info = console.debug = console.error // what the library prints stays out of the lines
  let pieces = []
  process.stdin.on("data", (data) => {
    for (let end; (end = data.indexOf(10)) >= 0; data = data.subarray(end + 1)) {
      const line = Buffer.concat([...pieces, data.subarray(0, end)])
      pieces = []
      adapter.receive(parse(line))
    }
    if (data.length) pieces.push(data)
  })
  process.stdin.on("end", async () => {
    await Promise.race([adapter.attempt({ op: "reset" }), sleep(GOODBYE_MS)])
    process.exit(0)
  })
}

/** The runner counts this exit code neither for nor against the library. */
function ownBug(bug) {
  console.error(bug)
  process.exit(3)
}

function asText(line) {
  try {
    return JSON.stringify(line)
  } catch (bug) {
    return ownBug(bug) // a BigInt in a result, say: see `number`
  }
}

function parse(line) {
  try {
    return JSON.parse(line)
  } catch (error) {
    console.error(`not a request: ${error.message}`)
    process.exit(3)
  }
}
