// A small client on Node's fetch and the package ws (https://www.npmjs.com/package/ws) behind the adapter protocol.
//
// Narconi has no client library; ../_narconi/client.mjs is what a user makes of Narconi's document.

import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { AdapterBase, Failure, Subscription, bodyBytes, reportBody, run } from "../_node/kit.mjs"
import { Narconi } from "../_narconi/client.mjs"
import { NarconiError } from "../_narconi/sockets.mjs"

const require = createRequire(import.meta.url)
const WebSocket = require("ws")
// Beside its main file: some versions do not let it be required.
const manifest = JSON.parse(readFileSync(join(dirname(require.resolve("ws")), "package.json"), "utf8"))

const shown = ({ headers, redelivered, timestamp, ackId }) => ({
  headers: Object.fromEntries(Object.entries(headers).map(([k, v]) => [k === "Content-Type" ? k : k.toLowerCase(), v])),
  redelivered,
  ts: timestamp,
  position: ackId,
})

class Adapter extends AdapterBase {
  facts = {
    adapter: "narconi-node",
    library: "ws",
    library_version: manifest.version,
    protocols: ["narconi"],
    roles: ["publisher", "consumer", "admin", "http"],
    caps: "ack_timeout ack_to callback_raise callback_sleep encoding keepalive reentrant",
    settles: "manual",
    contract: { others: false, drops_idle: true, logs_callbacks: true },
  }

  ops = {
    connect: ({ session, endpoints, options = {} }) => {
      const { base = `http://${endpoints[0]}`, project = "test", keepalive_s: keepaliveS } = options
      const onEnd = (what, news) => this.ended(session, what, news)
      this.sessions.set(session, new Narconi({ base, project, WebSocket, onEnd, keepaliveS }))
    },

    state: ({ session }) => {
      const found = this.sessions.get(session)
      return { open: found !== undefined && !found.closed, pending: found?.pending ?? null }
    },

    close: ({ session }, { timeoutMs }) => this.session(session).close(timeoutMs),

    "narc.ensure_queue": ({ session, target }, { timeoutMs }) => this.session(session).ensureQueue(target, timeoutMs),

    "narc.delete_queue": ({ session, target }, { timeoutMs }) => this.session(session).deleteQueue(target, timeoutMs),

    "narc.post": async ({ session, target, body, headers }, { timeoutMs }) => {
      await this.session(session).post(target, bodyBytes(body), headers ?? {}, timeoutMs)
      return { outcome: "acked", key: null, meta: {} }
    },

    "narc.take": async ({ session, target }, { timeoutMs }) => {
      const message = await this.session(session).take(target, timeoutMs)
      if (!message) return { message: null }
      const shape = { ref: this.nextRef(), sub: "", target, body: reportBody(message.body), meta: {} }
      return { message: { ...shape, ...shown(message) } }
    },

    publish: async ({ session, target, body, headers, wait = true }, { id, timeoutMs }) => {
      const confirmed = this.session(session).publish(target, bodyBytes(body), headers ?? {}, timeoutMs)
      if (wait) {
        await confirmed
        return { outcome: "acked", key: null, meta: {} }
      }
      confirmed.then(
        () => this.emit("outcome", { id, outcome: "acked", key: null, code: null }),
        (error) => {
          const { definite, code } = this.classify(error)
          this.emit("outcome", { id, outcome: definite ? "nacked" : "unknown", key: null, code })
        },
      )
      return { outcome: "sent", key: null, meta: {} }
    },

    subscribe: async ({ session, sub, target, options = {}, on_message }, { timeoutMs }) => {
      const subscription = new Subscription(this, sub, target, on_message)
      this.subs.set(sub, subscription)
      const callback = (message, consumer) => {
        subscription.handle = consumer // messages may come before `consume` has returned it
        return subscription.deliver(message.body, { native: message.ackId, ...shown(message) })
      }
      subscription.handle = await this.session(session).consume(target, callback, options, timeoutMs)
      subscription.session = session
    },

    settle: ({ sub, ref, how }) => {
      const { handle, native } = this.subscription(sub)
      if (how === "nack") throw new Failure("unsupported", "Narconi has no negative acknowledgement")
      handle.ack(native.get(ref), how === "ack_to")
    },

    unsubscribe: async ({ sub, drain }, { timeoutMs }) => {
      const { handle, session } = this.subscription(sub)
      await this.session(session).endConsumer(handle, drain, timeoutMs)
    },
  }

  ended(session, what, news) {
    if (what === "error") this.emit("error", { session, where: "read", error: this.classify(news).report() })
    else this.emit("session", { session, what: "connection_lost", text: news })
  }

  classify(error) {
    if (!(error instanceof NarconiError)) return super.classify(error)
    const { kind, message, code, definite } = error
    return new Failure(kind, message, definite === undefined ? { code } : { code, definite })
  }
}

run(new Adapter())
