// Streams as the script describes them, both ways. What is drawn and what is read is told as it happens.

import { createHash } from "node:crypto"
import { Readable } from "node:stream"
import { Failure, bodyBytes, reportBody } from "../_node/kit.mjs"

const PIECE = 64 * 1024 // of a source of zeros, which is never held as a whole
const INLINE_BYTES_MAX = 4096

function* pieces(body, chunk) {
  if (body.gen === "zero") {
    const size = chunk ?? PIECE
    for (let left = body.len; left > 0; left -= size) yield Buffer.alloc(Math.min(size, left))
    return
  }
  const whole = bodyBytes(body)
  const size = chunk ?? whole.length
  for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size)
}

/** A Readable of `{stream, chunk, every_ms, breaks}` or `{objects}`, if there is one; like a file's, it gives each piece when asked. */
export function outgoing({ stream, chunk, every_ms: everyMs = 0, breaks, objects }, note) {
  if (objects) return Readable.from(objects, { objectMode: true })
  if (!stream) return undefined
  const source = pieces(stream, chunk)
  const schedule = everyMs ? setTimeout : setImmediate
  let drawn = 0
  return new Readable({
    read() {
      schedule(() => {
        const { value, done } = source.next()
        if (!done) note({ what: "drawn", bytes: (drawn += value.length) })
        if (done && breaks !== undefined) this.destroy(new Error(breaks))
        else this.push(done ? null : value)
      }, everyMs)
    },
  })
}

/** The pieces. Whoever sends them may be gone: then the library ends the stream with a bare Error, without a code. */
async function* unbroken(found) {
  try {
    yield* found
  } catch (error) {
    throw error.constructor === Error && !error.code ? new Failure("connection", error.message) : error
  }
}

/** What came as a stream: `{stream: body, chunks: n}`, or `{objects: [...]}`; anything else is left as it is. */
export async function taken(found, note) {
  if (typeof found?.pipe !== "function") return found
  const whole = createHash("sha256")
  const start = []
  const objects = []
  let len = 0
  let chunks = 0
  for await (const piece of unbroken(found)) {
    chunks++
    if (!Buffer.isBuffer(piece)) objects.push(piece)
    else {
      whole.update(piece)
      if (len <= INLINE_BYTES_MAX) start.push(piece)
      len += piece.length
    }
    note({ what: "read", chunks, bytes: len })
  }
  if (objects.length) return { objects, chunks }
  const stream = len <= INLINE_BYTES_MAX ? reportBody(Buffer.concat(start)) : { sha256: whole.digest("hex"), len }
  return { stream, chunks }
}
