import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
const record = { base64: "AFN1oAN0ZWE=" }
await broker.call("publish", { name: "orders", bodies: [record, record, record] })

const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
let got = 0
const params = { stream: "orders", consumerRef: "shop", offset: rabbit.Offset.first() }
const consumer = await client.declareConsumer(params, () => got++)
while (got < 3) await new Promise((resolve) => setTimeout(resolve, 100))
await new Promise((resolve) => setTimeout(resolve, 100))
await consumer.storeOffset(0n) // only the first one was processed
console.log("stored 0; the server has", await consumer.queryOffset())
process.exit()
