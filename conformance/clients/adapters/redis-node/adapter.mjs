// ioredis (https://www.npmjs.com/package/ioredis) behind the adapter protocol.
//
// A session is one client for commands, one for subscriptions once something is subscribed to, and one for each pop
// that waits, as the library's documents advise. Commands have the time-out of the library's option, which is one for
// all; it is left out, as it is by default.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, bodyBytes, hostPort, number, reportBody, run, tlsOptions } from "../_node/kit.mjs"

const require = createRequire(import.meta.url)
const { Redis, Command } = require("ioredis")

const WAYS = {
  channel: ["subscribe", "unsubscribe", "messageBuffer"],
  pattern: ["psubscribe", "punsubscribe", "pmessageBuffer"],
  shard: ["ssubscribe", "sunsubscribe", "smessageBuffer"],
}
const BLOCKING = new Set(["BLPOP", "BRPOP", "BRPOPLPUSH", "BLMPOP", "BLMOVE"])
const DENIED = new Set(["NOAUTH", "WRONGPASS", "NOPERM"])

const wordsOf = (words) => words.map((word) => (typeof word === "string" ? word : bodyBytes(word)))
const codeOf = (error) => /^[A-Z]+(?= |$)/.exec(error.message)?.[0] ?? "ERR"
const valueOf = (answer) => {
  if (Buffer.isBuffer(answer)) return reportBody(answer)
  if (answer instanceof Error) return { error: codeOf(answer) }
  if (typeof answer === "string") return reportBody(Buffer.from(answer))
  if (typeof answer === "number" || typeof answer === "bigint") return number(answer)
  return Array.isArray(answer) ? answer.map(valueOf) : answer
}

class Session {
  subs = []
  popping = new Set()

  constructor(adapter, name, options) {
    this.adapter = adapter
    this.name = name
    this.commands = new Redis({ ...options, lazyConnect: true })
    this.watch(this.commands)
  }

  watch(client) {
    let ready = false
    client.on("ready", () => {
      if (client.wasReady) this.report("reconnected")
      ready = client.wasReady = true
    })
    client.on("close", () => {
      if (ready && !this.closed) this.report("connection_lost")
      ready = false
    })
    client.on("error", (error) => (this.lastError = error))
    client.on("end", () => !this.closed && client === this.commands && this.report("disconnected"))
  }

  report(what) {
    this.adapter.emit("session", { session: this.name, what, text: "" })
    this.adapter.trip("session")
  }

  listener() {
    if (!this.listening) {
      this.listening = this.commands.duplicate({ lazyConnect: false })
      this.watch(this.listening)
      const heard = (event, name, channel, payload) =>
        this.subs
          .filter((one) => one.event === event && one.target === name)
          .forEach((one) => one.subscription.deliver(payload, { meta: { channel: channel.toString() } }))
      this.listening.on("messageBuffer", (name, payload) => heard("messageBuffer", name.toString(), name, payload))
      this.listening.on("smessageBuffer", (name, payload) => heard("smessageBuffer", name.toString(), name, payload))
      this.listening.on("pmessageBuffer", (name, ...rest) => heard("pmessageBuffer", name.toString(), ...rest))
    }
    return this.listening
  }

  async pop(words) {
    const client = this.commands.duplicate({ lazyConnect: false })
    client.on("error", () => {})
    this.popping.add(client)
    try {
      return await client.callBuffer(...words)
    } finally {
      this.popping.delete(client)
      client.disconnect()
    }
  }

  close() {
    this.closed = true
    for (const client of [this.commands, this.listening, ...this.popping]) client?.disconnect()
  }
}

class Adapter extends AdapterBase {
  callbacks = ["message", "session"]

  facts = {
    adapter: "redis-node",
    library: "ioredis",
    library_version: require("ioredis/package.json").version,
    protocols: ["redis"],
    roles: ["publisher", "consumer", "caller"],
    contract: { many_connections: true, waits: true, repeats: true, drops_idle: true, own_deadline: true },
    caps: "auto_reconnect callback_sleep reentrant resp3 shards tls",
  }

  ops = {
    connect: async ({ session, endpoints, options = {} }) => {
      const { host, port } = hostPort(endpoints[0])
      const { resp = 2, user: username, password, auto_reconnect = true } = options
      const given = { host, port, username, password, protocol: resp, tls: tlsOptions(options) }
      if (!auto_reconnect) given.retryStrategy = null
      this.sessions.get(session)?.close()
      const made = new Session(this, session, given)
      this.sessions.set(session, made)
      try {
        await made.commands.connect()
      } catch (error) {
        made.close()
        throw error.message === "Connection is closed." && made.lastError ? made.lastError : error
      }
    },

    state: ({ session }) => {
      const found = this.sessions.get(session)
      return { open: Boolean(found && !found.closed && found.commands.status === "ready"), pending: null }
    },

    close: ({ session }) => this.session(session).close(),

    publish: async ({ session, target, body, wait = true }, { id: request }) => {
      const sending = this.session(session).commands.publish(target, bodyBytes(body))
      if (wait) return { outcome: "acked", key: null, meta: { receivers: await sending } }
      sending.then(
        () => this.emit("outcome", { id: request, outcome: "acked", key: null, code: null }),
        (error) => {
          const { definite, code } = this.classify(error)
          this.emit("outcome", { id: request, outcome: definite ? "nacked" : "unknown", key: null, code })
        },
      )
      return { outcome: "sent", key: null, meta: {} }
    },

    subscribe: async ({ session, sub, target, options = {}, on_message }) => {
      const found = this.session(session)
      const [begin, end, event] = WAYS[options.way ?? "channel"]
      const subscription = new Subscription(this, sub, target, on_message)
      subscription.handle = { found, end, row: { event, target, subscription } }
      this.subs.set(sub, subscription)
      found.subs.push(subscription.handle.row)
      await found.listener()[begin](target)
    },

    unsubscribe: async ({ sub }) => {
      const { found, end, row } = this.subscription(sub).handle
      found.subs = found.subs.filter((one) => one !== row)
      await found.listener()[end](row.target)
    },

    "redis.call": async ({ session, words }) => {
      const given = wordsOf(words)
      const found = this.session(session)
      const waits = BLOCKING.has(String(given[0]).toUpperCase())
      return { value: valueOf(await (waits ? found.pop(given) : found.commands.callBuffer(...given))) }
    },

    "redis.pipeline": async ({ session, commands }) => {
      const pipeline = this.session(session).commands.pipeline()
      for (const words of commands) pipeline.callBuffer(...wordsOf(words))
      const rows = await pipeline.exec()
      return { results: rows.map(([error, value]) => (error ? { error: codeOf(error) } : { value: valueOf(value) })) }
    },
  }

  async clear() {
    for (const session of this.sessions.values()) session.close()
  }

  classify(error) {
    const text = `${error?.name}: ${error?.message}`
    if (error?.name === "ReplyError") {
      const code = codeOf(error)
      return new Failure(DENIED.has(code) ? "auth" : "refused", text, { code })
    }
    if (error?.name === "ParserError" || /Unknown RESP type/.test(error?.message)) return new Failure("protocol", text)
    if (error?.message === "connect ETIMEDOUT" || error?.message === "Command timed out") return new Failure("timeout", text)
    const isLost = ["MaxRetriesPerRequestError", "AbortError"].includes(error?.name)
    if (isLost || /Connection is closed|Connection closed|isn't writeable/.test(error?.message)) return new Failure("connection", text)
    return super.classify(error)
  }
}

run(new Adapter())
