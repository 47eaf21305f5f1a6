// Message properties, and what is compressed with them.
//
// Old style (schema id 0): headers hold the lengths of values, and all is compressed together. New style: they
// hold the places of names, and only the payload is compressed.

import { deflateSync, inflateSync } from "node:zlib"
import { invalid, malformed } from "./errors.mjs"
import { padding, unpadded } from "./wire.mjs"

const TYPES = ["bool", "char", "short", "int32", "int64", "string", "binary"]
const NEW_STYLE = 1
const PROPERTIES_MAX = 255
const NAME_MAX = 4095
const VALUE_MAX = 2 ** 26 - 1
const COMPRESSED_FROM = 1024
const ZLIB = 1

const WRITE = {
  bool: (value) => Buffer.from([value ? 1 : 0]),
  char: (value) => value,
  short: (value) => integer(2, (b) => b.writeInt16BE(Number(value))),
  int32: (value) => integer(4, (b) => b.writeInt32BE(Number(value))),
  int64: (value) => integer(8, (b) => b.writeBigInt64BE(BigInt(value))),
  string: (value) => Buffer.from(value),
  binary: (value) => value,
}

const READ = {
  bool: (data) => data[0] !== 0,
  char: (data) => data,
  short: (data) => BigInt(data.readInt16BE()),
  int32: (data) => BigInt(data.readInt32BE()),
  int64: (data) => data.readBigInt64BE(),
  string: (data) => data.toString("utf8"),
  binary: (data) => data,
}

function integer(size, write) {
  const data = Buffer.alloc(size)
  write(data)
  return data
}

/** Application data, schema id and compression of a message; `properties` is {name: {type, value}}. */
export function writeContent(payload, properties, wantsZlib, newStyle) {
  const names = Object.keys(properties)
  const area = names.length ? writeArea(properties, newStyle) : Buffer.alloc(0)
  const schemaId = names.length && newStyle ? NEW_STYLE : 0
  const [plain, packed] = newStyle ? [area, payload] : [Buffer.alloc(0), Buffer.concat([area, payload])]
  const hasProperties = names.length > 0
  if (wantsZlib && packed.length >= COMPRESSED_FROM) {
    const smaller = deflateSync(packed)
    if (smaller.length < packed.length) {
      return { data: Buffer.concat([plain, smaller]), schemaId, hasProperties, compression: ZLIB }
    }
  }
  return { data: Buffer.concat([plain, packed]), schemaId, hasProperties, compression: 0 }
}

function writeArea(properties, newStyle) {
  const names = Object.keys(properties)
  if (names.length > PROPERTIES_MAX) throw invalid(`${names.length} properties; ${PROPERTIES_MAX} are the most`)
  const headers = []
  const pairs = []
  let offset = 0
  for (const name of names) {
    const { type, value } = properties[name]
    const key = Buffer.from(name)
    if (!WRITE[type]) throw invalid(`a property of the type ${type}`)
    const data = WRITE[type](value)
    if (!key.length || key.length > NAME_MAX) throw invalid(`a property name of ${key.length} bytes; 1 to ${NAME_MAX} are allowed`)
    if (data.length > VALUE_MAX) throw invalid(`a property of ${data.length} bytes; ${VALUE_MAX} are the most`)
    const header = Buffer.alloc(6)
    header.writeUInt32BE((((TYPES.indexOf(type) + 1) << 26) | (newStyle ? offset : data.length)) >>> 0)
    header.writeUInt16BE(key.length, 4)
    headers.push(header)
    pairs.push(key, data)
    offset += key.length + data.length
  }
  const length = 6 + headers.length * 6 + offset
  const pad = padding(length)
  const words = (length + pad.length) / 4
  const first = Buffer.from([0x1b, (words >> 16) & 0xff, (words >> 8) & 0xff, words & 0xff, 0, names.length])
  return Buffer.concat([first, ...headers, ...pairs, pad])
}

/** Payload and properties of a delivery. */
export function readContent({ padded, compression, hasProperties, schemaId }) {
  if (compression > ZLIB) throw malformed(`the compression ${compression}`)
  if (padded === undefined) return { payload: Buffer.alloc(0), properties: {} }
  let data = unpadded(padded)
  const newStyle = schemaId !== 0
  if (compression === ZLIB && !(newStyle && hasProperties)) data = inflated(data)
  if (!hasProperties) return { payload: data, properties: {} }
  const size = data.length < 6 ? Infinity : ((data[1] << 16) | data.readUInt16BE(2)) * 4
  if (size > data.length) throw malformed("properties that are longer than their message")
  const properties = readArea(unpadded(data.subarray(0, size)), newStyle)
  const payload = data.subarray(size)
  return { payload: compression === ZLIB && newStyle ? inflated(payload) : payload, properties }
}

function inflated(data) {
  try {
    return inflateSync(data)
  } catch (error) {
    throw malformed(`a body that is no zlib stream: ${error.message}`)
  }
}

function readArea(area, newStyle) {
  const count = area[5]
  const size = ((area[0] >> 3) & 7) * 2
  const start = (area[0] & 7) * 2 + count * size
  const found = {}
  const headers = Array.from({ length: count }, (_, n) => {
    const at = (area[0] & 7) * 2 + n * size
    if (size < 6 || at + 6 > area.length) throw malformed("property headers that are cut off")
    const word = area.readUInt32BE(at)
    return { type: (word >>> 26) & 31, number: word & 0x3ffffff, name: area.readUInt16BE(at + 4) & 0xfff }
  })
  let at = start
  for (const [n, { type, number, name }] of headers.entries()) {
    const from = newStyle ? start + number : at
    const next = n + 1 < count ? start + headers[n + 1].number : area.length
    const end = newStyle ? next : from + name + number
    if (!TYPES[type - 1] || from < start || from + name > end || end > area.length) throw malformed("a property that makes no sense")
    const kind = TYPES[type - 1]
    const value = READ[kind](area.subarray(from + name, end))
    found[area.toString("utf8", from, from + name)] = { type: kind, value }
    at = end
  }
  return found
}
