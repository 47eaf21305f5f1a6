// rabbitmq-stream-js-client (https://www.npmjs.com/package/rabbitmq-stream-js-client) behind the adapter protocol.
//
// A session is one Client. The library has no time-out for requests and confirms, so nothing here has one.
// Its confirms carry publishing ids only; they are matched within one publisher, as an application would do it.

import { createRequire } from "node:module"
import { AdapterBase, Failure, Subscription, bodyBytes, hostPort, number, run, tlsOptions } from "../_node/kit.mjs"

const require = createRequire(import.meta.url)
const library = "rabbitmq-stream-js-client"
const { Offset, connect } = require(library)
const { CompressionType } = require(`${library}/dist/compression`)
const { creditsOnChunkCompleted } = require(`${library}/dist/consumer_credit_policy`)

const AUTH_CODES = [7, 8, 9, 10, 11]
const COMPRESSION = { none: CompressionType.None, gzip: CompressionType.Gzip }
const SETTINGS = { frame_max: "frameMax", heartbeat_s: "heartbeat", mechanism: "mechanism" }

function offsetOf({ type, value }) {
  if (type === "offset") return Offset.offset(BigInt(value))
  return type === "timestamp" ? Offset.timestamp(new Date(Number(value))) : Offset[type]()
}

/** The filter value of a body: its text up to the first colon. */
function filterValue(content) {
  const text = content.toString()
  return text.includes(":") ? text.slice(0, text.indexOf(":")) : undefined
}

function filterOf({ values, unfiltered = false }) {
  const postFilterFunc = ({ content }) => {
    const value = filterValue(content)
    return value === undefined ? unfiltered : values.includes(value)
  }
  return { values, matchUnfiltered: unfiltered, postFilterFunc }
}

const address = (broker) => (broker ? `${broker.host}:${broker.port}` : null)

/** Tells publishers apart. */
const keyOf = (target, name, filtered = false, by = "") => JSON.stringify([target, name, filtered, by])

/** A publisher and the messages that wait for their confirm. */
class Tracked {
  #open = new Map()

  constructor(adapter, publisher) {
    this.publisher = publisher
    publisher.on("publish_confirm", (code, ids) => {
      for (const key of [...ids, "batch"]) {
        this.#open.get(key)?.({ outcome: code === null ? "acked" : "nacked", key: number(ids[0] ?? 0n), code })
        this.#open.delete(key)
      }
      adapter.trip("confirm")
    })
  }

  /** Settles with the outcome, if there ever is one. */
  end({ publishingId: key }) {
    return new Promise((resolve) => this.#open.set(key, (end) => resolve(key === "batch" ? end : { ...end, key: number(key) })))
  }

  /** The session is closed: no confirm can come any more. */
  abandon() {
    for (const end of this.#open.values()) end({ outcome: "unknown", code: null })
    this.#open.clear()
  }

  async send({ body, key, headers }) {
    const options = headers ? { applicationProperties: headers } : {}
    const data = bodyBytes(body)
    return key === undefined ? this.publisher.send(data, options) : this.publisher.basicSend(BigInt(key), data, options)
  }
}

const place = ({ connectionId, publisherId, publishingId }) => `${connectionId} ${publisherId} ${publishingId}`

/** The same for a super stream, whose publisher tells of no confirm: they are those of the session's connections. */
class Routed {
  constructor(publisher, open) {
    this.publisher = publisher
    this.open = open
  }

  async send({ body, headers, routing }) {
    const options = headers ? { applicationProperties: headers } : {}
    return this.publisher.send(bodyBytes(body), { ...options, routingKey: routing.key })
  }

  /** Settles with the outcome, if there ever is one. */
  end(sent) {
    return new Promise((resolve) => this.open.set(place(sent), (end) => resolve({ ...end, key: number(sent.publishingId) })))
  }

  abandon() {
    for (const end of this.open.values()) end({ outcome: "unknown", code: null })
    this.open.clear()
  }
}

class Adapter extends AdapterBase {
  facts = {
    adapter: "rabbitmq-stream-js",
    library,
    library_version: require(`${library}/package.json`).version,
    protocols: ["rabbitmq-stream"],
    roles: ["publisher", "consumer", "admin"],
    formats: ["amqp"],
    contract: { many_connections: true, own_credit: true, takes_existing: true },
    caps: "callback_raise callback_sleep filters named_publisher properties reentrant sac subentry super_streams tls",
  }
  callbacks = ["message", "confirm", "session"]

  ops = {
    connect: async ({ session, endpoints, options = {} }, { timeoutMs }) => {
      const { host: hostname, port } = hostPort(endpoints[0])
      const { user: username = "guest", password = "guest", vhost = "/", listen = true } = options
      const params = { hostname, port, username, password, vhost, ssl: tlsOptions(options) }
      for (const [ours, theirs] of Object.entries(SETTINGS)) if (ours in options) params[theirs] = options[ours]
      if (timeoutMs) params.socketTimeout = timeoutMs
      const closed = listen ? () => this.lost(session) : undefined
      const found = { publishers: new Map(), routed: new Map(), closed }
      const listeners = this.confirming(found)
      if (listen) Object.assign(listeners, { connection_closed: closed, metadata_update: (news) => this.changed(session, news) })
      this.sessions.set(session, found)
      found.client = await connect({ ...params, listeners })
    },

    state: ({ session }) => {
      const { client, ended } = this.sessions.get(session) ?? {}
      return { open: !ended && (client?.getConnectionInfo().ready ?? false), pending: null }
    },

    close: async ({ session }) => {
      const found = this.session(session)
      found.ended = true // `ready` stays true until the socket's close event
      await this.client(session).close()
      for (const tracked of found.publishers.values()) tracked.then((known) => known.abandon(), () => {})
    },

    publish: async ({ session, target, name, filtered = false, wait = true, ...message }, { id }) => {
      const tracked = await this.publisher(session, target, { name, filtered, by: message.routing?.by })
      const sent = await tracked.send(message)
      const key = sent.publishingId
      const end = tracked.end(sent)
      if (!wait) {
        end.then((outcome) => this.emit("outcome", { id, ...outcome }))
        return { outcome: "sent", key: number(key), meta: {} }
      }
      const { outcome, code } = await end
      if (outcome === "unknown") throw new Failure("closed", "the session was closed before the confirm")
      if (outcome === "nacked") throw new Failure("refused", `publish error ${code}`, { code })
      return { outcome, key: number(key), meta: {} }
    },

    publish_many: async ({ session, target, messages, name, wait = true, subentry }, { id }) => {
      const tracked = await this.publisher(session, target, { name })
      const sent = []
      if (subentry) {
        const records = messages.map(({ body }) => ({ content: bodyBytes(body) }))
        await tracked.publisher.sendSubEntries(records, COMPRESSION[subentry])
        sent.push({ publishingId: "batch" }) // the library does not say which: the next confirm is taken for its own
      } else for (const message of messages) sent.push(await tracked.send(message))
      const ends = sent.map((one) => tracked.end(one))
      for (const end of ends) end.then((outcome) => this.emit("outcome", { id, ...outcome }))
      if (wait) return { outcomes: await Promise.all(subentry ? messages.map(() => ends[0]) : ends) }
      return { outcomes: messages.map((_, at) => ({ outcome: "sent", key: subentry ? null : number(sent[at].publishingId) })) }
    },

    subscribe: async ({ session, sub, target, options = {}, on_message }) => {
      const { closed } = this.session(session)
      const client = this.client(session)
      const { offset = { type: "first" }, credit, name, properties = {}, filter, super_stream: isSuper } = options
      const params = { stream: target, offset: offsetOf(offset), consumerRef: name ?? properties.name, consumerTag: properties.identifier }
      if (credit !== undefined) params.creditPolicy = creditsOnChunkCompleted(credit, 1)
      if (filter !== undefined) params.filter = filterOf(filter)
      params.singleActive = properties["single-active-consumer"] === "true"
      const subscription = new Subscription(this, sub, target, on_message)
      this.subs.set(sub, subscription)
      const deliver = (message, meta = {}) =>
        subscription.deliver(message.content, { position: String(message.offset), headers: message.applicationProperties ?? {}, meta })
      if (isSuper) {
        // they are single active consumers, whatever was ordered: the library has no others
        const consumer = await client.declareSuperStreamConsumer({ ...params, superStream: target }, (message, { streamName }) =>
          deliver(message, { partition: streamName })
        )
        subscription.handle = { consumer, end: () => consumer.close() }
        return
      }
      const consumer = await client.declareConsumer({ ...params, connectionClosedListener: closed }, (message) => deliver(message))
      subscription.handle = { consumer, end: () => client.closeConsumer(consumer.extendedId) }
    },

    unsubscribe: async ({ sub }) => {
      await this.subscription(sub).handle.end()
    },

    "rmqs.create": async ({ session, target, arguments: given }) => {
      await this.client(session).createStream({ stream: target, arguments: given })
    },

    "rmqs.delete": async ({ session, target }) => {
      await this.client(session).deleteStream({ stream: target })
    },

    "rmqs.create_super_stream": async ({ session, target, partitions, keys, arguments: given }) => {
      await this.client(session).createSuperStream({ streamName: target, arguments: given }, keys, partitions)
    },

    "rmqs.delete_super_stream": async ({ session, target }) => {
      await this.client(session).deleteSuperStream({ streamName: target })
    },

    "rmqs.stream_stats": async ({ session, target }) => {
      const { firstChunkId, committedChunkId } = await this.client(session).streamStatsRequest(target)
      const shown = (value) => (value < 0n ? null : number(value))
      return { first: shown(firstChunkId), committed: shown(committedChunkId) }
    },

    "rmqs.metadata": async ({ session, targets }) => {
      const found = await this.client(session).queryMetadata({ streams: targets })
      const describe = ({ streamName: name, responseCode: code, leader, replicas }) =>
        ({ name, code, exists: code === 1, leader: address(leader), replicas: (replicas ?? []).map(address) })
      return { streams: found.map(describe) }
    },

    "rmqs.partitions": async ({ session, target }) =>
      ({ streams: await this.client(session).queryPartitions({ superStream: target }) }),

    "rmqs.route": async ({ session, target, key }) =>
      ({ streams: await this.client(session).routeQuery({ superStream: target, routingKey: key }) }),

    "rmqs.declare_publisher": async ({ session, target, name }) => {
      await this.publisher(session, target, { name })
    },

    "rmqs.delete_publisher": async ({ session, target, name }) => {
      const { publisher } = await this.publisher(session, target, { name })
      this.session(session).publishers.delete(keyOf(target, name))
      await this.client(session).deletePublisher(publisher.extendedId)
    },

    "rmqs.query_sequence": async ({ session, target, name }) => {
      const { publisher } = await this.publisher(session, target, { name })
      return { sequence: number(await publisher.getLastPublishingId()) }
    },

    "rmqs.query_offset": async ({ session, target, name }) =>
      ({ offset: number(await this.client(session).queryOffset({ stream: target, reference: name })) }),

    "rmqs.store_offset": async ({ target, name, offset }) => {
      const mine = [...this.subs.values()].find((s) => s.target === target && s.handle?.consumer.consumerRef === name)
      if (!mine) throw new Failure("invalid", "the library stores an offset through a consumer of that name")
      await mine.handle.consumer.storeOffset(BigInt(offset))
    },
  }

  client(session) {
    const { client } = this.session(session)
    if (!client) throw new Failure("closed", "not connected yet", { definite: true })
    return client
  }

  async publisher(session, target, { name, filtered = false, by }) {
    const { publishers } = this.session(session)
    const key = keyOf(target, name, filtered, by)
    if (!publishers.has(key)) {
      publishers.set(key, by ? this.routed(session, target, name, by) : this.tracked(session, target, name, filtered))
      publishers.get(key).catch(() => publishers.delete(key))
    }
    return publishers.get(key)
  }

  async tracked(session, target, name, filtered) {
    const params = { stream: target, publisherRef: name, connectionClosedListener: this.session(session).closed }
    const value = filtered ? ({ content }) => filterValue(content) : undefined
    return new Tracked(this, await this.client(session).declarePublisher(params, value))
  }

  async routed(session, superStream, publisherRef, routingStrategy) {
    const params = { superStream, publisherRef, routingStrategy }
    const publisher = await this.client(session).declareSuperStreamPublisher(params, (_, { routingKey }) => routingKey)
    return new Routed(publisher, this.session(session).routed)
  }

  /** Listeners that settle what the publishers of super streams have sent. */
  confirming({ routed }) {
    const settle = (connectionId, publisherId, publishingId, end) => {
      const sent = place({ connectionId, publisherId, publishingId })
      routed.get(sent)?.(end)
      routed.delete(sent)
    }
    return {
      publish_confirm: ({ publisherId, publishingIds }, connectionId) => {
        for (const id of publishingIds) settle(connectionId, publisherId, id, { outcome: "acked", code: null })
      },
      publish_error: ({ publisherId, publishingError: { publishingId, code } }, connectionId) =>
        settle(connectionId, publisherId, publishingId, { outcome: "nacked", code }),
    }
  }

  lost(session) {
    this.emit("session", { session, what: "connection_lost" })
    this.trip("session")
  }

  changed(session, { metadataInfo }) {
    this.emit("session", { session, what: "target_closed", targets: [metadataInfo.stream], code: metadataInfo.code })
    this.trip("session")
  }

  classify(error) {
    const text = error instanceof Error ? error.message : String(error)
    const code = Number(/(?:code|->) (\d+)|^(\d+)$/.exec(text)?.slice(1).find(Boolean) ?? NaN)
    if (code) return new Failure(AUTH_CODES.includes(code) ? "auth" : "refused", text, { code })
    if (/mechanism/.test(text)) return new Failure("auth", text)
    if (/not found on any node/.test(text)) return new Failure("refused", text)
    if (/^Timeout/.test(text)) return new Failure("timeout", text)
    if (/has been closed|does not exist/.test(text)) return new Failure("closed", text, { definite: true })
    if (/did not return any partition|^Routing key is empty/.test(text)) return new Failure("invalid", text, { definite: true })
    if (error?.constructor?.name === "FrameSizeException" || /must be defined|mandatory/.test(text)) return new Failure("invalid", text)
    return super.classify(error)
  }
}

run(new Adapter())
