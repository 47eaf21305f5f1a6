// What the actions of a served service do (`mol.serve`).

import { Readable } from "node:stream"
import { Failure } from "../_node/kit.mjs"
import { outgoing, taken } from "./streams.mjs"

const SLOW_STOP_MS = 1500

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const silent = () => {}

/** Reads an upload; it is in place of the params in 0.14. */
const upload = (ctx, { isOld, tell }) => taken(isOld ? ctx.params : ctx.stream, ({ what, ...more }) => tell(what, ctx, more))

const SPECIAL = {
  /** Calls params.action in the same context, without a time-out of its own. */
  nested_call: (ctx) => ctx.call(ctx.params.action, ctx.params.params),
  /** Answers like echo; its service takes its time to stop. */
  slow_stop: (ctx) => ctx.params,
  /** Reads a stream of objects. */
  object_stream: (ctx, tools) => upload(ctx, tools),
  /** Answers with a stream of objects. */
  object_source: (ctx) => Readable.from(ctx.params.objects, { objectMode: true }),
}

function thrown({ message = "", code, type, data, plain }, Errors) {
  return plain ? new Error(message) : new Errors.MoleculerError(message, code, type, data)
}

/** The handler of one behaviour. */
function handler(behaviour, tools) {
  const { Errors } = tools
  if (behaviour === "echo") return (ctx) => ctx.params
  if ("return" in behaviour) return () => behaviour.return
  if (behaviour.throw) {
    return () => {
      throw thrown(behaviour.throw, Errors)
    }
  }
  if (behaviour.sleep_ms !== undefined) return () => sleep(behaviour.sleep_ms).then(() => "slept")
  if (behaviour.stream) return () => outgoing(behaviour, silent)
  if (behaviour.read_stream) return (ctx) => upload(ctx, tools)
  const special = SPECIAL[behaviour.special]
  if (!special) throw new Failure("unsupported", `no behaviour ${JSON.stringify(behaviour)}`)
  return (ctx) => special(ctx, tools)
}

/** Handlers by action, and what the service does when it starts or stops. */
export function behaviours(actions, { ran, ...tools }) {
  const handlers = {}
  for (const [name, behaviour] of Object.entries(actions)) {
    const handle = handler(behaviour, tools)
    handlers[name] = async (ctx) => {
      ran(ctx) // told at once: the answer may never be seen
      let ok = false
      try {
        const found = await handle(ctx)
        ok = true
        return found
      } finally {
        tools.tell("ended", ctx, { ok })
      }
    }
  }
  const isSlow = Object.values(actions).some((behaviour) => behaviour.special === "slow_stop")
  return { handlers, hooks: isSlow ? { stopped: () => sleep(SLOW_STOP_MS) } : {} }
}
