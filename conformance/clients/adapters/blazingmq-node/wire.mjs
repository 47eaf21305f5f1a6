// BlazingMQ's events as bytes: framing, control messages in JSON, PUT, PUSH, ACK, CONFIRM.

import { malformed } from "./errors.mjs"

export const Type = { CONTROL: 1, PUT: 2, CONFIRM: 3, PUSH: 4, ACK: 5, HEARTBEAT_REQ: 11, HEARTBEAT_RSP: 12 }
const HEADER = 8
const EVENT_MAX = 512 * 1024 * 1024
const VERSION = 1
const JSON_CODEC = 0x20
const ACK_REQUESTED = 1
const WITH_PROPERTIES = 2
const IMPLICIT_PAYLOAD = 1

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0x82f63b78 : n >>> 1
  return n >>> 0
})

/** CRC32-C of the application data as it is sent, without padding. */
export function crc32c(data) {
  let crc = 0xffffffff
  for (let at = 0; at < data.length; at++) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ data[at]) & 0xff]
  return (crc ^ 0xffffffff) >>> 0
}

/** One to four bytes, each of which says how many they are. */
export function padding(length) {
  const count = 4 - (length % 4)
  return Buffer.alloc(count, count)
}

export function unpadded(data) {
  const count = data.length ? data[data.length - 1] : 0
  if (count < 1 || count > 4 || count > data.length) throw malformed(`a padding byte of ${count}`)
  return data.subarray(0, data.length - count)
}

export function event(type, ...parts) {
  const header = Buffer.from([0, 0, 0, 0, (VERSION << 6) | type, 2, type === Type.CONTROL ? JSON_CODEC : 0, 0])
  const whole = Buffer.concat([header, ...parts])
  whole.writeUInt32BE(whole.length)
  return whole
}

/** Cuts a stream into events; throws where nobody can tell any more where the next one begins. */
export class Splitter {
  #pieces = []
  #size = 0;

  *push(data) {
    this.#pieces.push(data)
    this.#size += data.length
    while (this.#size >= HEADER) {
      const head = this.#join(HEADER)
      const length = head.readUInt32BE()
      const words = head[5]
      if (length & 0x80000000) throw malformed("a fragmented event")
      if (head[4] >> 6 !== VERSION) throw malformed(`version ${head[4] >> 6} of the protocol`)
      if (length < HEADER || length > EVENT_MAX || words < 2 || words * 4 > length) {
        throw malformed(`an event of ${length} bytes with a header of ${words} words`)
      }
      if (this.#size < length) return
      const whole = this.#join(length).subarray(0, length)
      this.#pieces = [this.#pieces[0].subarray(length)]
      this.#size -= length
      yield { type: whole[4] & 0x3f, codec: whole[6] >> 5, body: whole.subarray(words * 4) }
    }
  }

  /** The first piece, with so many bytes at least. */
  #join(length) {
    if (this.#pieces[0].length < length) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0]
  }
}

export function controlEvent(message) {
  const text = Buffer.from(JSON.stringify(message).replaceAll("/", "\\/"))
  return event(Type.CONTROL, text, padding(text.length))
}

export function readControl({ codec, body }) {
  if (codec !== 1) throw malformed(`a control message with the codec ${codec}`)
  let message
  try {
    message = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(unpadded(body)))
  } catch (error) {
    throw error.kind ? error : malformed(`a control message that is no JSON: ${error.message}`)
  }
  if (message === null || typeof message !== "object") throw malformed("a control message that is no object")
  return message
}

export function putEvent({ queueId, correlationId, data, compression, schemaId, hasProperties }) {
  const pad = padding(data.length)
  const header = Buffer.alloc(36)
  const flags = (correlationId ? ACK_REQUESTED : 0) | (hasProperties ? WITH_PROPERTIES : 0)
  header.writeUInt32BE((flags << 28) | ((36 + data.length + pad.length) / 4))
  header.writeUInt32BE((compression << 5) | 9, 4)
  header.writeUInt32BE(queueId, 8)
  header.writeUInt32BE(correlationId, 12)
  header.writeUInt32BE(crc32c(data), 28)
  header.writeUInt16BE(schemaId, 32)
  return event(Type.PUT, header, data, pad)
}

export function confirmEvent(queueId, guid, subId) {
  const item = Buffer.alloc(28)
  item[0] = 0x16
  item.writeUInt32BE(queueId, 4)
  guid.copy(item, 8)
  item.writeUInt32BE(subId, 24)
  return event(Type.CONFIRM, item)
}

export function readAcks(body) {
  const header = body.length ? (body[0] >> 4) * 4 : 0
  const size = body.length ? (body[0] & 15) * 4 : 0
  if (header < 4 || size < 24) throw malformed("an ACK event with too small items")
  const acks = []
  for (let at = header; at + size <= body.length; at += size) {
    const word = body.readUInt32BE(at)
    const guid = body.subarray(at + 4, at + 20)
    acks.push({ status: (word >>> 24) & 15, correlationId: word & 0xffffff, guid, queueId: body.readInt32BE(at + 20) })
  }
  return acks
}

/** The messages of a PUSH event; `broken` ends them where the sizes make no sense. */
export function* readPushes(body) {
  for (let at = 0; at < body.length; ) {
    if (body.length - at < 28) throw malformed("a PUSH header that is cut off")
    const first = body.readUInt32BE(at)
    const second = body.readUInt32BE(at + 4)
    const [flags, size] = [first >>> 28, (first & 0xfffffff) * 4]
    const [header, options] = [(second & 31) * 4, (second >>> 8) * 4]
    if (header < 28 || header + options > size || at + size > body.length) throw malformed("a PUSH message of impossible size")
    const message = body.subarray(at, at + size)
    at += size
    yield {
      queueId: message.readInt32BE(8),
      guid: message.subarray(12, 28),
      compression: (second >>> 5) & 7,
      hasProperties: Boolean(flags & WITH_PROPERTIES),
      schemaId: header >= 32 ? message.readUInt16BE(28) : 0,
      padded: flags & IMPLICIT_PAYLOAD ? undefined : message.subarray(header + options),
    }
  }
}
