import { Readable } from "node:stream"
import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
const [shop, store] = ["shop", "store"].map((nodeID) => new ServiceBroker({ nodeID, transporter: bus.url, logger: false }))
const rows = async function* () {
  while (true) {
    yield "a row\n"
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
store.createService({ name: "store", actions: { list: () => Readable.from(rows(), { objectMode: false }) } })
await Promise.all([shop.start(), store.start()])
await shop.waitForServices("store")
const list = await shop.call("store.list")
list.resume()
const ended = new Promise((resolve) => ["end", "error", "close"].forEach((event) => list.on(event, () => resolve(event))))
await new Promise((resolve) => setTimeout(resolve, 500))
await store.stop()
const limit = new Promise((resolve) => setTimeout(() => resolve("waits still, 4 s after the other node has stopped"), 4000))
console.log("the reader of the stream:", await Promise.race([ended, limit]))
process.exit()
