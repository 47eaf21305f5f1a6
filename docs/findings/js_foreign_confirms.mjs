import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
// the broker refuses what the first publisher sends
await broker.addFault({ match: { role: "publish", nth: 1 }, effect: { type: "reply", code: 18 } })

const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
const shop = await client.declarePublisher({ stream: "orders", publisherRef: "shop" })
const kiosk = await client.declarePublisher({ stream: "orders", publisherRef: "kiosk" })
const told = new Promise((resolve) => shop.on("publish_confirm", (code, ids) => code === null && resolve(ids)))
await shop.send(Buffer.from("tea, for the shop"))
await broker.waitFor({ kind: "Publish", timeout: 60 })
await kiosk.send(Buffer.from("milk, for the kiosk"))
console.log("the shop is notified that its order is stored, ids", await told)
console.log("orders that are stored:", (await broker.ask("messages", { name: "orders" })).length, "of 2")
process.exit()
