import { Readable } from "node:stream"
import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
const node = (nodeID) => new ServiceBroker({ nodeID, transporter: bus.url, logger: false })
const [shop, store] = ["shop", "store"].map(node)
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
const ended = new Promise((resolve) => {
  for (const event of ["end", "error", "close"]) list.on(event, () => resolve(event))
})
await new Promise((resolve) => list.once("data", resolve))
await store.stop()
const limit = new Promise((resolve) => setTimeout(resolve, 4000, "waits still, 4 s after the other node has stopped"))
console.log("the reader of the stream:", await Promise.race([ended, limit]))
process.exit()
