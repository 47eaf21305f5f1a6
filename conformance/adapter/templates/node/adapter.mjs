// Lets the fakebrokers conformance suite drive a client library. Check it: fakebrokers adapter check "node adapter.mjs"
//
// It runs as it stands, on PretendClient below. Put your library in its place, one op after the other: translate,
// and add nothing - no retries, no time-outs, no sorting, no swallowed errors. The ops are explained in
// ADAPTER.md of fakebrokers.

import { AdapterBase, Subscription, bodyBytes, hostPort, number, run } from "./kit.mjs"

/** Stands where your library goes; it keeps every message to itself. Delete it. */
class PretendClient {
  log = []
  callbacks = []

  async connect({ host, port }) {
    this.address = `${host}:${port}`
  }

  async publish(target, body) {
    this.log.push(body)
    for (const callback of this.callbacks) await callback(body, this.log.length - 1)
    return this.log.length - 1
  }

  async subscribe(target, callback) {
    this.callbacks.push(callback)
  }

  async close() {
    this.callbacks = []
  }
}

class Adapter extends AdapterBase {
  facts = {
    adapter: "my-adapter",
    library: "pretend",
    library_version: "0",
    protocols: ["@PROTOCOL@"],
    roles: [@ROLES@],
    settles: "none", // or "manual" with an op `settle`, or "auto"
    caps: { callback_raise: true, callback_sleep: true }, // what your library can do; false is the default
    limits: {}, // time-outs that your library fixes by itself: connect_timeout_ms, ...
  }

  ops = {
    connect: async ({ session, endpoints, options }, { timeoutMs }) => {
      const client = new PretendClient()
      await client.connect(hostPort(endpoints[0])) // pass user, password, timeoutMs, ... from `options`
      this.sessions.set(session, client)
    },

    state: ({ session }) => ({ open: this.sessions.has(session), pending: null }),

    publish: async ({ session, target, body }) => {
      const key = await this.session(session).publish(target, bodyBytes(body)) // settles with the broker's confirm
      return { outcome: "acked", key: number(key), meta: {} }
    },

    subscribe: async ({ session, sub, target, on_message }) => {
      const subscription = new Subscription(this, sub, target, on_message)
      const callback = (body, position) => subscription.deliver(body, { position: String(position) })
      await this.session(session).subscribe(target, callback)
      this.subs.set(sub, subscription)
    },

    unsubscribe: ({ sub }) => {
      this.subscription(sub)
      this.subs.delete(sub)
    },

    close: async ({ session }) => {
      await this.session(session).close()
      this.sessions.delete(session)
    },
  }

  /** Part of `reset`: drop the connections of all `this.sessions`, fast; nothing to do for PretendClient. */
  async clear() {}

  /** The kind of error for each error of your library; the rest is told by its code. */
  classify(error) {
    return super.classify(error)
  }
}

run(new Adapter())
