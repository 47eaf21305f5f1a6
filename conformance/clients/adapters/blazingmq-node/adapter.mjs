// A small client in Node (client.mjs) behind the adapter protocol.
//
// No registry has a Node library for BlazingMQ; client.mjs is what the document about one describes.

import { AdapterBase, Failure, Subscription, bodyBytes, hostPort, reportBody, run } from "../_node/kit.mjs"
import { Session } from "./client.mjs"
import { BmqError, closed } from "./errors.mjs"

const OPTIONS = {
  max_unconfirmed_messages: "maxUnconfirmedMessages",
  max_unconfirmed_bytes: "maxUnconfirmedBytes",
  consumer_priority: "consumerPriority",
}

const queueOptions = (options = {}) =>
  Object.fromEntries(Object.entries(OPTIONS).flatMap(([ours, theirs]) => (ours in options ? [[theirs, options[ours]]] : [])))

const given = ({ type, value }) => {
  if (type === "bool") return { type, value: value === "true" || value === true }
  return { type, value: type === "char" || type === "binary" ? bodyBytes(value) : value }
}

const shown = ({ type, value }) => ({ type, value: Buffer.isBuffer(value) ? reportBody(value) : String(value) })

const each = (table, act) => Object.fromEntries(Object.entries(table ?? {}).map(([key, value]) => [key, act(value)]))

const hex = (guid) => guid.toString("hex").toUpperCase()

class Adapter extends AdapterBase {
  facts = {
    adapter: "blazingmq-node",
    library: "blazingmq-node",
    library_version: "1",
    protocols: ["blazingmq"],
    roles: ["publisher", "consumer"],
    caps: "ack_timeout callback_raise callback_sleep compression.zlib counter_seed properties reentrant stats stop_in_callback",
    settles: "manual",
    contract: { others: false, reads_odd: true },
  }
  callbacks = ["message", "session"]

  ops = {
    connect: async ({ session, endpoints, options = {} }, { timeoutMs = 5000 }) => {
      const made = { queues: new Map(), subs: new Map(), early: new Map() }
      made.client = new Session({
        ...hostPort(endpoints[0]),
        onMessage: (message) => this.arrived(made, message),
        onEvent: (what, error) => options.listen !== false && this.told(session, what, error),
      })
      const there = this.sessions.get(session)
      if (there && (there.starting || there.client.open)) return there.client.start(timeoutMs)
      this.sessions.set(session, made)
      made.starting = true
      await made.client.start(timeoutMs).finally(() => (made.starting = false))
    },

    state: ({ session }) => {
      const found = this.sessions.get(session)?.client
      return { open: found?.open ?? false, pending: found?.pending ?? null }
    },

    close: ({ session }, { timeoutMs }) => this.session(session).client.stop(timeoutMs),

    "bmq.open_queue": async ({ session, target, uri, flags, options }, { timeoutMs }) => {
      const { client, queues } = this.session(session)
      const wish = { read: flags.includes("read"), write: flags.includes("write"), options: queueOptions(options) }
      queues.set(target, await client.openQueue(uri, wish, timeoutMs))
    },

    "bmq.configure_queue": async ({ session, target, options }, { timeoutMs }) => {
      await this.session(session).client.configureQueue(this.queue(session, target), queueOptions(options), timeoutMs)
    },

    "bmq.close_queue": async ({ session, target }, { timeoutMs }) => {
      await this.session(session).client.closeQueue(this.queue(session, target), timeoutMs)
    },

    publish: async ({ session, target, body, properties, compression, wait = true }, { timeoutMs }) => {
      const { client } = this.session(session)
      const queue = this.queue(session, target)
      const more = { properties: each(properties, given), zlib: compression === "zlib" }
      if (!wait) {
        client.post(queue, bodyBytes(body), more)
        return { outcome: "sent", key: null, meta: {} }
      }
      const { guid, correlationId } = await client.postAndWaitForAck(queue, bodyBytes(body), more, timeoutMs)
      return { outcome: "acked", key: null, meta: { guid: hex(guid), correlation: correlationId } }
    },

    subscribe: async ({ session, sub, target, on_message }) => {
      const made = this.session(session)
      const { uri } = this.queue(session, target)
      const subscription = new Subscription(this, sub, target, on_message)
      subscription.handle = { made, uri }
      this.subs.set(sub, subscription)
      made.subs.set(uri, subscription)
      const early = made.early.get(uri) ?? []
      made.early.delete(uri)
      for (const message of early) this.arrived(made, message).catch(() => {})
    },

    unsubscribe: ({ sub }) => {
      const { made, uri } = this.subscription(sub).handle
      made.subs.delete(uri)
    },

    settle: ({ sub, ref, how }) => {
      const { handle, native } = this.subscription(sub)
      if (how !== "ack") throw new Failure("unsupported", "BlazingMQ only has confirms")
      handle.made.client.confirm(native.get(ref))
    },

    set_counter: ({ session, which, value }) => {
      if (which !== "correlation") throw new Failure("unsupported", `no counter ${which}`)
      this.session(session).client.correlation = Number(value) - 1
    },

    stats: () => ({ pending: [...this.sessions.values()].reduce((sum, { client }) => sum + client.pending, 0) }),
  }

  queue(session, target) {
    const found = this.session(session).queues.get(target)
    if (!found) throw closed(`no queue ${target} was opened`)
    return found
  }

  async arrived(made, message) {
    const subscription = made.subs.get(message.queue.uri)
    if (!subscription) {
      made.early.set(message.queue.uri, [...(made.early.get(message.queue.uri) ?? []), message])
      return
    }
    const meta = { uri: message.queue.uri, properties: each(message.properties, shown) }
    await subscription.deliver(message.payload, { native: message, position: hex(message.guid), meta })
  }

  told(session, what, error) {
    if (what === "CONNECTION_LOST") this.emit("session", { session, what: "connection_lost", text: error.message })
    else {
      const where = what === "CALLBACK_ERROR" ? "callback" : "decode"
      this.emit("error", { session, where, error: this.classify(error).report() })
    }
    if (what === "CONNECTION_LOST") this.trip("session")
  }

  classify(error) {
    if (!(error instanceof BmqError)) return super.classify(error)
    const { kind, message, code, definite } = error
    return new Failure(kind, message, { code, definite })
  }
}

run(new Adapter())
