import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
await broker.call("create_stream", { name: "orders" })
const { host: hostname, port } = broker
let lose
const lost = new Promise((resolve) => (lose = resolve))
const listeners = { connection_closed: lose }
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/", listeners })
// the connection ends instead of an answer
const end = { type: "rst", pass_frame: false }
await broker.addFault({ match: { direction: "out", kind: "StreamStatsResponse" }, effect: end })
const asked = client.streamStatsRequest("orders").then(() => "answered", () => "failed")
await lost
console.log("the connection is lost")
const limit = new Promise((resolve) => setTimeout(() => resolve("waits still, after 4 s"), 4000))
console.log("the request:", await Promise.race([asked, limit]))
process.exit()
