// nats.js (https://www.npmjs.com/package/@nats-io/transport-node) behind the adapter protocol.
//
// A subscription is read with `for await`, as the library's documents have it; a drain has ended once that loop has. A
// publish is acknowledged by `flush`, which has no time-out in the library, and so has none here.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, bodyBytes, reportBody, run } from "../_node/kit.mjs"

const require = createRequire(import.meta.url)
const { connect } = require("@nats-io/transport-node")

const KINDS = {
  AuthorizationError: "auth",
  UserAuthenticationExpiredError: "auth",
  PermissionViolationError: "refused",
  ProtocolError: "refused", // any other -ERR
  InvalidArgumentError: "invalid",
  InvalidSubjectError: "invalid",
  ClosedConnectionError: "closed",
  DrainingConnectionError: "closed",
  TimeoutError: "timeout",
  ConnectionError: "connection",
}
const EVENTS = { disconnect: "connection_lost", reconnect: "reconnected", close: "disconnected" }

class Session {
  loops = new Set()

  constructor(adapter, name, client) {
    this.adapter = adapter
    this.name = name
    this.client = client
  }

  async listen() {
    for await (const status of this.client.status()) {
      if (this.isOver) continue
      if (status.type === "error") {
        this.adapter.emit("error", { session: this.name, where: "other", error: this.adapter.classify(status.error).report() })
      } else if (EVENTS[status.type]) {
        this.isOpen = status.type === "reconnect"
        this.adapter.emit("session", { session: this.name, what: EVENTS[status.type], text: "", code: null })
      }
    }
  }

  async close() {
    this.isOver = true
    await this.client.close()
  }

  async drain() {
    this.isOver = true
    await this.client.drain()
    await Promise.all(this.loops)
  }
}

class Adapter extends AdapterBase {
  facts = {
    adapter: "nats-node",
    library: "@nats-io/transport-node",
    library_version: require("@nats-io/transport-node/package.json").version,
    protocols: ["nats"],
    roles: ["publisher", "consumer", "requester"],
    contract: { others: false, waits: true },
    caps: "auto_reconnect callback_sleep endpoints keepalive max_messages queue_groups reentrant stop_in_callback token",
  }

  ops = {
    connect: async ({ session, endpoints, options = {} }, { timeoutMs }) => {
      const { user, password: pass, token, auto_reconnect: reconnect, ping_interval_s, max_pings: maxPingOut } = options
      const given = { servers: endpoints, noRandomize: true, timeout: timeoutMs, user, pass, token, reconnect, maxPingOut }
      if (ping_interval_s !== undefined) given.pingInterval = ping_interval_s * 1000
      const left = Object.entries(given).filter(([, value]) => value !== undefined)
      const made = new Session(this, session, await connect(Object.fromEntries(left)))
      made.isOpen = true
      this.sessions.set(session, made)
      if (options.listen ?? true) made.listen()
    },

    state: ({ session }) => {
      const found = this.sessions.get(session)
      return { open: Boolean(found?.isOpen && !found.isOver && !found.client.isClosed()), pending: null }
    },

    close: ({ session }) => this.session(session).close(),

    publish: async ({ session, target, body, wait = true }, { id }) => {
      const { client } = this.session(session)
      client.publish(target, bodyBytes(body))
      const sending = client.flush()
      if (wait) {
        await sending
        return { outcome: "acked", key: null, meta: {} }
      }
      const outcome = (word) => this.emit("outcome", { id, outcome: word, key: null, code: null })
      sending.then(() => outcome("acked"), () => outcome("unknown"))
      return { outcome: "sent", key: null, meta: {} }
    },

    flush: ({ session }) => this.session(session).client.flush(),

    subscribe: async ({ session, sub, target, options = {}, on_message }) => {
      const { client, loops } = this.session(session)
      const subscription = new Subscription(this, sub, target, on_message)
      this.subs.set(sub, subscription)
      const { queue, max } = options
      const made = client.subscribe(target, { ...(queue && { queue }), ...(max && { max }) })
      const read = async () => {
        for await (const message of made) await subscription.deliver(message.data, { meta: { subject: message.subject } })
      }
      const loop = read()
      loops.add(loop)
      loop.finally(() => loops.delete(loop))
      subscription.handle = { made, loop }
      try {
        await client.flush()
      } catch (error) {
        made.unsubscribe() // the application has no subscription, so the library shall not keep it
        throw error
      }
    },

    unsubscribe: async ({ sub, drain = false }) => {
      const { made, loop } = this.subscription(sub).handle
      if (!drain) return made.unsubscribe()
      await made.drain()
      await loop
    },

    "nats.request": async ({ session, target, body }, { timeoutMs = 10_000 }) => {
      const answer = await this.session(session).client.request(target, bodyBytes(body), { timeout: Math.max(1, timeoutMs) })
      return { body: reportBody(answer.data) }
    },

    "nats.drain": ({ session }) => this.session(session).drain(),
  }

  async clear() {
    for (const session of this.sessions.values()) session.close()
  }

  classify(error) {
    const text = `${error?.name}: ${error?.message}`
    if (error?.name === "RequestError") {
      if (error.isNoResponders()) return new Failure("refused", text, { code: 503 })
      return error.cause ? this.classify(error.cause) : new Failure("connection", text)
    }
    const kind = KINDS[error?.name]
    if (kind === "auth" || kind === "refused") return new Failure(kind, text, { code: error.message })
    if (kind === "connection") return new Failure(kind, text, { definite: error.message === "connection refused" })
    if (kind) return new Failure(kind, text)
    if (error?.name === "Error" && /^parse error/i.test(error.message)) return new Failure("protocol", text)
    return super.classify(error)
  }
}

run(new Adapter())
