// What the bridge calls in the page. Bodies cross in base64; large ones on their way out as a digest.

import { Narconi } from "./client.mjs"
import { NarconiError, fromBase64 } from "./sockets.mjs"

const DIGEST_BYTES = 1 << 20

const sessions = new Map()
const consumers = new Map()

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
  ensureQueue: ({ narconi, queue, ms }) => narconi.ensureQueue(queue, ms),
  deleteQueue: ({ narconi, queue, ms }) => narconi.deleteQueue(queue, ms),
  post: ({ narconi, queue, body, headers, ms }) => narconi.post(queue, fromBase64(body), headers, ms),
  take: async ({ narconi, queue, ms }) => {
    const message = await narconi.take(queue, ms)
    return message && shown(message)
  },
  publish: ({ narconi, queue, body, headers, ms }) => narconi.publish(queue, fromBase64(body), headers, ms),
  consume: async ({ narconi, queue, sub, options, ms }) => {
    const callback = async (message, consumer) => {
      consumers.set(sub, consumer) // messages may come before `consume` has returned it
      tell({ sub, message: await shown(message) })
    }
    consumers.set(sub, await narconi.consume(queue, callback, options, ms))
  },
  ack: ({ sub, ackId, upTo }) => consumers.get(sub).ack(ackId, upTo),
  end: ({ narconi, sub, drain, ms }) => narconi.endConsumer(consumers.get(sub), drain, ms),
  close: ({ narconi, ms }) => narconi.close(ms),
  state: ({ narconi }) => ({ open: !narconi.closed, pending: narconi.pending }),
}

window.call = async (session, name, args) => {
  try {
    return { value: (await calls[name]({ narconi: sessions.get(session), ...args })) ?? null }
  } catch (error) {
    return { error: reported(error) }
  }
}

window.begin = (session, project) => {
  const onEnd = (what, news) => tell({ session, what, news: news instanceof NarconiError ? reported(news) : news })
  sessions.set(session, new Narconi({ base: location.origin, project, WebSocket, onEnd }))
}

tell({ what: "ready" })
