import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
// the connection ends before the second message is read
await broker.addFault({ match: { role: "publish", nth: 2 }, effect: { type: "fin", pass_frame: false } })

const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
const kiosk = await client.declarePublisher({ stream: "orders", publisherRef: "kiosk" })
const shop = await client.declarePublisher({ stream: "orders", publisherRef: "shop" })
const confirmed = []
shop.on("publish_confirm", (code, ids) => code === null && confirmed.push(...ids))
await kiosk.send(Buffer.from("milk, for the kiosk"))
await shop.send(Buffer.from("tea, for the shop"))
await new Promise((resolve) => setTimeout(resolve, 4000))
const stored = await broker.ask("messages", { name: "orders" })
console.log("the shop is notified of what is stored, ids", confirmed)
console.log("stored:", stored.length, "of 2")
process.exit()
