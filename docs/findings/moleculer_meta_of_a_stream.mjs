import { Readable } from "node:stream"
import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
const node = (nodeID) => new ServiceBroker({ nodeID, transporter: bus.url, serializer: "ProtoBuf", logger: false })
const [shop, store] = ["shop", "store"].map(node)
store.createService({ name: "store", actions: { list: () => Readable.from(["a row\n"], { objectMode: false }) } })
await Promise.all([shop.start(), store.start()])
await shop.waitForServices("store")
const called = shop.call("store.list", {}, { meta: { user: 7 } })
for await (const row of await called) process.stdout.write(row)
console.log("meta of the caller:", JSON.stringify(called.ctx.meta))
process.exit()
