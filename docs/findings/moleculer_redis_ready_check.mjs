import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "redis"] })
const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start() // c1 subscribes, c2 publishes
const topics = 12 // of a node

// On c3, which the subscriber connects next, these answers and all after them wait until they are released.
async function late(name, kind, nth) {
  const match = { connection: "c3", direction: "out", kind, nth }
  await bus.addFault({ name, match, effect: { type: "latency", seconds: 3600 } })
}
await late("of-client", "RedisError", 1) // to CLIENT SETINFO, which Redis 7.0 does not know
await late("of-subscribe", "Subscribed", 1)
await late("of-subscribe-again", "Subscribed", topics + 1)

const asked = (kind, count) => bus.waitFor({ connection: "c3", tap: "in", kind, count, timeout: 60 })
const kill = (connection) => bus.call("kill", { connection, how: "rst" })
await kill("c1")
await asked("Command", 2) // CLIENT SETINFO, twice
await kill("c2")
await asked("Subscribe", topics)
console.log("the publisher is back: the node subscribes, before ioredis has asked for INFO")
await bus.call("faults/of-client/release")
await asked("Command", 3) // INFO
await kill("c4")
await asked("Subscribe", 2 * topics)
console.log("the publisher is back once more: the node subscribes, and waits for the answers")
await bus.call("faults/of-subscribe/release")
await new Promise((resolve) => setTimeout(resolve, 60_000))
console.log("the process lives")
process.exit()
