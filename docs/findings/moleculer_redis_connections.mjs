import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "redis"] })
const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start()
const open = async () => (await bus.ask("connections")).length
console.log("connections of the node:", await open())
const topics = 12 // of a node
for (let loss = 1; loss <= 3; loss++) {
  const { connection } = (await bus.journal({ kind: "Subscribe", tap: "in" })).at(-1)
  await bus.call("kill", { connection, how: "rst" })
  // ioredis subscribes to all at once, and the node to each, when its new publisher is ready
  await bus.waitFor({ kind: "Subscribe", tap: "in", count: topics + loss * (1 + topics), timeout: 60 })
}
console.log("after three losses:", await open())
process.exit()
