import rabbit from "rabbitmq-stream-js-client"
import { creditsOnChunkCompleted } from "rabbitmq-stream-js-client/dist/consumer_credit_policy.js"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
const record = { base64: "AFN1oAN0ZWE=" }
await broker.call("publish", { name: "orders", bodies: [record, record, record] })
await broker.call("publish", { name: "orders", bodies: [record, record, record] })

const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
const began = []
const handle = async (message) => {
  began.push(Number(message.offset))
  await new Promise((resolve) => setTimeout(resolve, 100)) // as long as the order takes
}
const creditPolicy = creditsOnChunkCompleted(2, 1) // two chunks at a time
await client.declareConsumer({ stream: "orders", offset: rabbit.Offset.first(), creditPolicy }, handle)
while (began.length < 6) await new Promise((resolve) => setTimeout(resolve, 100))
console.log("handled:", began.join(" "))
process.exit()
