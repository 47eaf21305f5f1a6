// pzq-client.mjs, the small client beside this file, behind the adapter protocol.
//
// PZQ has no maintained client library; this is what a user of its document would write.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, bodyBytes, number, reportBody, reportKey, run } from "../_node/kit.mjs"
import { Closed, Consumer, Invalid, Monitor, NoAnswer, NotStored, Producer, ProtocolError, isExpired } from "./pzq-client.mjs"

const parts = (body) => (Array.isArray(body) ? body : [body]).map(bodyBytes)
const keyBytes = (key) => (key == null ? undefined : bodyBytes(typeof key === "string" ? { text: key } : key))

const trueClock = Date.now

class Session {
  consumers = []
  closed = false

  constructor(endpoints) {
    this.endpoints = endpoints
    this.producer = new Producer(endpoints.receive)
    this.monitor = new Monitor(endpoints.monitor)
  }

  close() {
    this.closed = true
    for (const each of [this.producer, this.monitor, ...this.consumers]) each.close()
  }
}

class Adapter extends AdapterBase {
  facts = {
    adapter: "pzq-node",
    library: "zeromq",
    library_version: createRequire(import.meta.url)("zeromq/package.json").version,
    protocols: ["pzq"],
    roles: ["publisher", "consumer", "monitor"],
    settles: "manual",
    contract: { others: false },
    caps: "ack_timeout auto_reconnect callback_raise callback_sleep caller_key clock_offset endpoints filter_expired reentrant",
  }

  ops = {
    connect: ({ session, endpoints }) => {
      this.sessions.set(session, new Session(endpoints))
    },

    state: ({ session }) => {
      const found = this.sessions.get(session)
      return { open: Boolean(found && !found.closed), pending: found?.producer.pending ?? null }
    },

    close: ({ session }) => this.session(session).close(),

    set_clock: ({ offset_ms }) => {
      Date.now = () => trueClock() + offset_ms
    },

    publish: async ({ session, body, key, wait = true }, { timeoutMs, id: request }) => {
      const sending = this.session(session).producer.produce(parts(body), { id: keyBytes(key), timeoutMs })
      if (wait) {
        const { id, texts } = await sending
        return { outcome: "acked", key: reportKey(id), meta: { texts: texts.map(String) } }
      }
      sending.then(
        ({ id }) => this.emit("outcome", { id: request, outcome: "acked", key: reportKey(id), code: null }),
        (error) => {
          const { definite, code } = this.classify(error)
          this.emit("outcome", { id: request, outcome: definite ? "nacked" : "unknown", key: null, code })
        },
      )
      return { outcome: "sent", key: null, meta: {} }
    },

    subscribe: ({ session, sub, target, options = {}, on_message }) => {
      const found = this.session(session)
      const subscription = new Subscription(this, sub, target, on_message)
      const deliver = (message) =>
        subscription.deliver(message.body, {
          native: message,
          position: reportKey(message.id),
          meta: {
            pzq_id: reportBody(message.pzqId).b64,
            sent_us: message.sentUs === null ? null : number(message.sentUs),
            timeout_us: message.timeoutUs === null ? null : number(message.timeoutUs),
            expired: isExpired(message),
          },
        })
      const onError = (error) => {
        const where = error instanceof ProtocolError ? "decode" : "callback"
        this.emit("error", { sub, where, error: this.classify(error).report() })
      }
      subscription.handle = new Consumer(found.endpoints.send, deliver, {
        skipExpired: Boolean(options.filter_expired),
        onError,
      })
      this.subs.set(sub, subscription)
      found.consumers.push(subscription.handle)
    },

    settle: async ({ sub, ref, how = "ack" }) => {
      const { native, handle } = this.subscription(sub)
      const message = native.get(ref)
      if (!message || !["ack", "nack"].includes(how)) throw new Failure("invalid", `nothing to ${how}`)
      await (how === "ack" ? handle.ack(message) : handle.reject(message))
    },

    unsubscribe: ({ sub }) => this.subscription(sub).handle.close(),

    "pzq.monitor": async ({ session }, { timeoutMs }) => ({
      values: await this.session(session).monitor.figures({ timeoutMs }),
    }),
  }

  async clear() {
    Date.now = trueClock
    for (const session of this.sessions.values()) session.close()
  }

  classify(error) {
    if (error instanceof NotStored) return new Failure("refused", error.message, { code: error.status })
    if (error instanceof NoAnswer) return new Failure("timeout", error.message)
    if (error instanceof Closed) return new Failure("closed", error.message)
    if (error instanceof ProtocolError) return new Failure("protocol", error.message)
    if (error instanceof Invalid) return new Failure("invalid", error.message)
    return super.classify(error)
  }
}

run(new Adapter())
