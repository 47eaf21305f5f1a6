import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
const shop = await client.declarePublisher({ stream: "orders", publisherRef: "shop" })
let confirms = 0
shop.on("publish_confirm", (code) => code === null && confirms++)
for (const body of ["tea", "milk"]) {
  await shop.sendSubEntries([{ content: Buffer.from(body) }]) // a batch each
  await new Promise((resolve) => setTimeout(resolve, 1000))
}
const stored = await broker.ask("messages", { name: "orders" })
console.log("confirmed batches:", confirms)
console.log("stored messages:", stored.length)
process.exit()
