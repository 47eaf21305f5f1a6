// mqtt.js (https://www.npmjs.com/package/mqtt) behind the adapter protocol.
//
// A session is one client. The library subscribes again by itself after a loss. The connect of a session ends with the
// first attempt that fails, and takes no other. Publishes and subscriptions have no time-out in the library, so they have
// none here.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, bodyBytes, hostPort, run, tlsOptions } from "../_node/kit.mjs"

const require = createRequire(import.meta.url)
const mqtt = require("mqtt")

const LOGIN = new Set([4, 5])
const REFUSED = 128

/** Whether a topic fits a filter. */
function fits(filter, topic) {
  const [levels, names] = [filter.split("/"), topic.split("/")]
  if (topic.startsWith("$") && "+#".includes(levels[0])) return false
  for (const [at, level] of levels.entries()) {
    if (level === "#") return true
    if (at >= names.length || (level !== "+" && level !== names[at])) return false
  }
  return levels.length === names.length
}

class Session {
  subs = new Set()
  wasOpen = false

  constructor(adapter, name, options, listens) {
    this.adapter = adapter
    this.name = name
    this.listens = listens
    this.client = mqtt.connect(options)
    this.connected = new Promise((resolve, reject) => {
      this.client.once("connect", resolve)
      this.client.on("error", (error) => (this.wasOpen ? this.failed(error) : reject(error)))
      this.client.on("close", () => reject(new Failure("connection", "closed before CONNACK")))
    })
    this.client.on("connect", () => {
      this.report(this.wasOpen ? "reconnected" : "connected")
      this.isOpen = this.wasOpen = true
    })
    this.client.on("close", () => {
      if (this.isOpen && !this.isOver) this.report("connection_lost")
      this.isOpen = false
    })
    this.client.on("message", (topic, payload, { qos, retain, dup }) => {
      for (const one of this.subs) {
        if (fits(one.target, topic)) one.deliver(payload, { meta: { topic, qos, retain, dup }, redelivered: dup })
      }
    })
  }

  report(what) {
    if (!this.listens) return
    this.adapter.emit("session", { session: this.name, what, text: "", code: null })
    this.adapter.trip("session")
  }

  failed(error) {
    if (!this.listens) return
    this.adapter.emit("error", { session: this.name, where: "other", error: this.adapter.classify(error).report() })
  }

  async close() {
    this.isOver = true
    await this.client.endAsync()
  }

  drop() {
    this.isOver = true
    this.client.end(true)
  }
}

class Adapter extends AdapterBase {
  callbacks = ["message", "session"]

  facts = {
    adapter: "mqtt-node",
    library: "mqtt",
    library_version: require("mqtt/package.json").version,
    protocols: ["mqtt"],
    roles: ["publisher", "consumer"],
    contract: { others: false, repeats: true, waits: true },
    caps: "at_release auto_reconnect callback_sleep counter_seed lasting reentrant stop_in_callback tls will",
  }

  ops = {
    connect: async ({ session, endpoints, options = {} }, { timeoutMs }) => {
      const { host, port } = hostPort(endpoints[0])
      const { user: username, password, client_id: clientId, clean, keep_alive_s: keepalive, will } = options
      const given = { host, port, protocol: options.tls ? "mqtts" : "mqtt", username, password, clientId, clean, keepalive }
      if (timeoutMs !== undefined) given.connectTimeout = timeoutMs
      if (options.auto_reconnect === false) given.reconnectPeriod = 0
      if (will) given.will = { topic: will.target, payload: bodyBytes(will.body), qos: will.qos ?? 0, retain: will.retain ?? false }
      const made = new Session(this, session, { ...given, ...tlsOptions(options) }, options.listen ?? true)
      this.sessions.set(session, made)
      try {
        await made.connected
      } catch (error) {
        made.drop()
        throw error
      }
    },

    state: ({ session }) => ({ open: this.sessions.get(session)?.client.connected ?? false, pending: null }),

    close: ({ session }) => this.session(session).close(),

    publish: async ({ session, target, body, wait = true, qos = 1, retain = false }, { id }) => {
      const { client } = this.session(session)
      if (wait && !qos) throw new Failure("unsupported", "nothing acknowledges a message with QoS 0")
      const sending = client.publishAsync(target, bodyBytes(body), { qos, retain })
      const outcome = (outcome, key, code) => this.emit("outcome", { id, outcome, key, code })
      if (wait) return { outcome: "acked", key: (await sending)?.messageId ?? null, meta: {} }
      sending.then(
        (packet) => qos && outcome("acked", packet?.messageId ?? null, null),
        (error) => qos && outcome("unknown", null, this.classify(error).code),
      )
      return { outcome: "sent", key: null, meta: {} }
    },

    set_counter: ({ session, which, value }) => {
      if (which !== "publishing") throw new Failure("unsupported", `no counter ${which}`)
      this.session(session).client.messageIdProvider.nextId = Number(value)
    },

    subscribe: async ({ session, sub, target, options = {}, on_message }) => {
      const found = this.session(session)
      const subscription = new Subscription(this, sub, target, on_message)
      subscription.handle = found
      this.subs.set(sub, subscription)
      found.subs.add(subscription)
      try {
        await found.client.subscribeAsync(target, { qos: options.qos ?? 1 })
      } catch (error) {
        found.subs.delete(subscription)
        throw error
      }
    },

    unsubscribe: async ({ sub }) => {
      const subscription = this.subscription(sub)
      const { client, subs } = subscription.handle
      subs.delete(subscription)
      await client.unsubscribeAsync(subscription.target)
    },
  }

  async clear() {
    for (const session of this.sessions.values()) session.drop()
  }

  classify(error) {
    const text = `${error?.name}: ${error?.message}`
    const granted = error?.packet?.granted?.find((code) => code >= REFUSED)
    if (granted !== undefined) return new Failure("refused", text, { code: granted })
    if (/^Connection refused/.test(error?.message)) {
      return new Failure(LOGIN.has(error.code) ? "auth" : "refused", text, { code: error.code })
    }
    if (error?.message === "client disconnecting") return new Failure("closed", text, { definite: true })
    if (error?.message === "connack timeout" || error?.message === "Keepalive timeout") return new Failure("timeout", text)
    if (error?.message === "Connection closed") return new Failure("connection", text)
    if (/^Invalid topic/.test(error?.message)) return new Failure("invalid", text)
    const isOfParser = error?.constructor === Error && error.code === undefined // which has no class for them
    if (isOfParser || /^Protocol error/.test(error?.message)) return new Failure("protocol", text)
    return super.classify(error)
  }
}

run(new Adapter())
