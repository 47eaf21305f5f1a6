import { Readable } from "node:stream"
import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
await bus.call("node", { id: "store", services: [{ name: "store", actions: { keep: { returns: "kept" } } }] })

const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start()
await shop.waitForServices("store")
console.log("a chunk of 400 KB is sent")
const stream = Readable.from([Buffer.alloc(400_000, 255)])
await shop.call("store.keep", {}, { stream, timeout: 2000 }).catch((error) => console.log("refused:", error.message))
await new Promise((resolve) => setTimeout(resolve, 60_000))
console.log("the process lives")
process.exit()
