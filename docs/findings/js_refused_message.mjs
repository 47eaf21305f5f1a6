import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
await broker.addFault({ match: { role: "publish", nth: 1 }, effect: { type: "reply", code: 18 } })

const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
const shop = await client.declarePublisher({ stream: "orders", publisherRef: "shop" })
const told = new Promise((resolve) => shop.on("publish_confirm", (code, ids) => resolve([{ code, ids }])))
await shop.send(Buffer.from("tea"))
console.log("refused with code 18; the publisher is notified:", await told)
process.exit()
