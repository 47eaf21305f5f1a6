// npm moleculer behind the adapter protocol: `node adapter.mjs 0.14` or `node adapter.mjs 0.15`.
//
// A session is one ServiceBroker with its own nodeID. Everything that a scenario does not set is the library's
// default, but for the log level. A broker that has lost its server goes on connecting after `stop`, so each
// scenario gets a process of its own.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, number, run, tlsOptions } from "../_node/kit.mjs"
import { behaviours } from "./behaviours.mjs"
import { outgoing, taken } from "./streams.mjs"

const require = createRequire(import.meta.url)
const wanted = process.argv[2] ?? "0.15"
const { ServiceBroker, Errors } = require(`moleculer-${wanted}`)
const isOld = wanted === "0.14" // a stream takes the place of the params

const SERIALIZERS = ["JSON", "MsgPack", "Notepack", "CBOR", ...(isOld ? ["ProtoBuf", "Avro", "Thrift"] : ["JSONExt"])]
const OPTIONS = {
  namespace: "namespace",
  node_id: "nodeID",
  heartbeat_s: "heartbeatInterval",
  heartbeat_timeout_s: "heartbeatTimeout",
  request_timeout_ms: "requestTimeout",
  serializer: "serializer",
  disable_balancer: "disableBalancer",
}

const trueClock = Date.now

/** A server that is to be reached with TLS. */
function secured(url, tls) {
  const { protocol, hostname: host, port } = new URL(url)
  if (protocol === "nats:") return { type: "NATS", options: { url, tls } }
  if (protocol === "redis:") return { type: "Redis", options: { host, port: Number(port), tls } }
  return { type: "MQTT", options: { protocol: "mqtts", host, port: Number(port), ...tls } }
}

/** `transporter` of the broker: addresses, or those of the nodes of the TCP transporter, found by address only. */
function transporterOf(transporter, endpoints, tls) {
  const url = transporter ?? endpoints.map((endpoint) => `nats://${endpoint}`).join(",")
  if (tls) return secured(url, tls)
  if (!url.startsWith("tcp://")) return url
  return { type: "TCP", options: { udpDiscovery: false, urls: url.split(",") } }
}

const brokerOptions = ({ transporter, ...options }, endpoints) => ({
  logLevel: "warn",
  transporter: transporterOf(transporter, endpoints, tlsOptions(options)),
  ...Object.fromEntries(Object.entries(OPTIONS).filter(([from]) => from in options).map(([from, to]) => [to, options[from]])),
})

class Adapter extends AdapterBase {
  facts = {
    adapter: `moleculer-${wanted}`,
    library: "moleculer",
    library_version: ServiceBroker.MOLECULER_VERSION,
    protocols: ["moleculer"],
    roles: ["caller", "service", "emitter", "listener"],
    caps: "callback_raise callback_sleep clock_offset disable_balancer endpoints reentrant streams streams.broken tls",
    reconnects: true,
    restart: "per_scenario",
    // two connections over Redis; INFO goes out before the subscriptions are answered; packets that are not
    // understood are logged, as is what handlers of events throw
    contract: {
      repeats: false, surfaces_again: false, stores_positions: false, own_credit: false, leaves_dropped: false,
      own_keys: false, shuffles: false, takes_existing: false,
    },
    transporters: ["nats", "redis", "mqtt", "tcp"],
    serializers: SERIALIZERS,
  }

  callbacks = ["message", "error"] // over NATS the library tells of no loss

  ops = {
    connect: async ({ session, endpoints, options = {} }) => {
      const broker = new ServiceBroker(brokerOptions(options, endpoints))
      this.sessions.set(session, broker)
      if (options.listen !== false) this.#watch(session, broker)
      await broker.start()
    },

    set_clock: ({ offset_ms }) => {
      Date.now = () => trueClock() + offset_ms
    },

    state: ({ session }) => {
      const broker = this.sessions.get(session)
      return {
        open: Boolean(broker?.started && broker.transit?.connected),
        pending: broker?.transit?.pendingRequests.size ?? null,
      }
    },

    close: async ({ session }) => {
      const broker = this.session(session)
      await broker.stop()
      this.sessions.delete(session)
    },

    "mol.serve": async ({ session, service, actions, start_delay_ms: delayMs }) => {
      const tell = (what, ctx, more) => this.emit("note", { what, session, request: ctx.id, ...more })
      const ran = (ctx) => {
        tell("action", ctx, { action: ctx.action.name, from: ctx.nodeID })
        this.trip("message")
      }
      const { handlers, hooks } = behaviours(actions, { isOld, Errors, ran, tell })
      if (delayMs) hooks.started = () => new Promise((resolve) => setTimeout(resolve, delayMs))
      const broker = this.session(session)
      broker.createService({ name: service, actions: handlers, ...hooks })
      await broker.waitForServices(service, 0, 10)
    },

    "mol.unserve": ({ session, service }) => this.session(session).destroyService(service),

    "mol.call": async ({ session, action, params, meta, timeout_ms: timeout, node: nodeID, ...upload }, { id }) => {
      const given = { meta, timeout, nodeID }
      const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
      const note = (what) => this.emit("note", { id, ...what })
      const broker = this.session(session)
      const stream = outgoing(upload, note)
      const called = isOld
        ? broker.call(action, stream ?? params, options)
        : broker.call(action, params, stream ? { ...options, stream } : options)
      const data = await taken(await called, note)
      return { data: data ?? null, meta: called.ctx?.meta ?? {}, from: called.ctx?.nodeID ?? null }
    },

    "mol.emit": async ({ session, event, data, groups }) => {
      await this.session(session).emit(event, data, groups ? { groups } : {})
    },

    "mol.broadcast": async ({ session, event, data, groups }) => {
      await this.session(session).broadcast(event, data, groups ? { groups } : {})
    },

    "mol.listen": async ({ session, sub, event, group, on_message }) => {
      const subscription = new Subscription(this, sub ?? event, event, on_message)
      this.subs.set(subscription.sub, subscription)
      const handler = (ctx) =>
        subscription.deliver(Buffer.from(JSON.stringify(ctx.params ?? null)), {
          meta: { event: ctx.eventName, groups: ctx.eventGroups ?? null, from: ctx.nodeID },
        })
      const name = `listener-${this.subs.size}`
      const broker = this.session(session)
      broker.createService({ name, events: { [event]: group ? { group, handler } : { handler } } })
      await broker.waitForServices(name, 0, 10)
    },

    "mol.ping": async ({ session, node }, { timeoutMs }) => {
      const pong = await this.session(session).ping(node, timeoutMs)
      if (node) return { arrived: null, rtt_ms: pong?.elapsedTime ?? null, from: pong?.nodeID ?? null }
      return { nodes: Object.entries(pong).map(([from, each]) => ({ from, rtt_ms: each?.elapsedTime ?? null })) }
    },

    "mol.registry": ({ session }) => {
      const nodes = this.session(session).registry.getNodeList({ onlyAvailable: false, withServices: true })
      return {
        nodes: nodes.map(({ id, available, services }) => ({
          id,
          available,
          services: (services ?? []).map((service) => service.fullName ?? service.name),
        })),
      }
    },
  }

  #watch(session, broker) {
    const tell = (what, text) => {
      this.emit("session", { session, what, text })
      this.trip("session")
    }
    broker.localBus.on("$transporter.connected", () => tell("connected", ""))
    broker.localBus.on("$transporter.disconnected", ({ graceFul }) =>
      tell(graceFul ? "disconnected" : "connection_lost", ""),
    )
    broker.localBus.on("$transit.error", ({ error }) => {
      this.emit("error", { session, where: "decode", error: this.classify(error).report() })
      this.trip("error")
    })
  }

  /** The library's classes of errors; whatever else a node has said keeps its code and type. */
  classify(error) {
    const { code, type, message } = error ?? {}
    const shown = { code: typeof code === "number" ? number(code) : (code ?? null), type }
    if (error instanceof Errors.RequestTimeoutError) return new Failure("timeout", message, shown)
    if (error instanceof Errors.BrokerDisconnectedError) {
      return new Failure("connection", message, { ...shown, definite: true })
    }
    if (error instanceof Errors.RequestRejectedError) return new Failure("connection", message, shown)
    if (code === "MAX_PAYLOAD_EXCEEDED") return new Failure("invalid", message, shown) // nats.js, before it sends
    const isRemote = error instanceof Errors.MoleculerError || error?.nodeID !== undefined
    return isRemote ? new Failure("refused", message, shown) : super.classify(error)
  }

  async clear() {
    Date.now = trueClock
    await Promise.all([...this.sessions.values()].map((broker) => broker.started && broker.stop()))
  }
}

run(new Adapter())
