// What the bridge calls in the page. Bodies cross in base64; large ones on their way out as a digest.

import { Narconi, NarconiError, fromBase64 } from "./client.mjs"

const DIGEST_BYTES = 1 << 20

const consumers = new Map()
let narconi

function toBase64(bytes) {
  let text = ""
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

async function shown({ body, ...message }) {
  if (body.length <= DIGEST_BYTES) return { ...message, body: { b64: toBase64(body) } }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body))
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("")
  return { ...message, body: { sha256, len: body.length } }
}

const reported = ({ kind, message, code, definite }) => ({ kind: kind ?? "internal", text: message, code, definite })

const tell = (news) => window.report(JSON.stringify(news))

const calls = {
  ensureQueue: ({ queue, ms }) => narconi.ensureQueue(queue, ms),
  deleteQueue: ({ queue, ms }) => narconi.deleteQueue(queue, ms),
  post: ({ queue, body, headers, ms }) => narconi.post(queue, fromBase64(body), headers, ms),
  take: async ({ queue, ms }) => {
    const message = await narconi.take(queue, ms)
    return message && shown(message)
  },
  publish: ({ queue, body, headers, ms }) => narconi.publish(queue, fromBase64(body), headers, ms),
  consume: async ({ queue, sub, options, ms }) => {
    const callback = async (message) => tell({ sub, message: await shown(message) })
    consumers.set(sub, await narconi.consume(queue, callback, options, ms))
  },
  ack: ({ sub, ackId, upTo }) => consumers.get(sub).ack(ackId, upTo),
  end: ({ sub, drain }) => narconi.endConsumer(consumers.get(sub), drain),
  close: ({ ms }) => narconi.close(ms),
  state: () => ({ open: !narconi.closed, pending: narconi.pending }),
}

window.call = async (name, args) => {
  try {
    return { value: (await calls[name](args)) ?? null }
  } catch (error) {
    return { error: reported(error) }
  }
}

window.begin = (project) => {
  const onEnd = (what, news) => tell({ what, news: news instanceof NarconiError ? reported(news) : news })
  narconi = new Narconi({ base: location.origin, project, WebSocket, onEnd })
}

tell({ what: "ready" })
