import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
await bus.call("node", { id: "store", services: [{ name: "store", actions: { take: { answers: false } } }] })
const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start()
await shop.waitForServices("store")
const call = shop.call("store.take").then(() => "answered", (error) => error.name)
await bus.waitFor({ kind: "Request", timeout: 60 })
await shop.stop()
const limit = new Promise((resolve) => setTimeout(() => resolve("waits still, 4 s after the node has stopped"), 4000))
console.log("the call:", await Promise.race([call, limit]))
process.exit()
