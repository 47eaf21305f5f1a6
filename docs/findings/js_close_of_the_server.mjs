import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
console.log("connected")
// as for a frame that is too large
await broker.call("say_close", { connection: "c1", code: 14, reason: "frame too large" }).catch(() => {})
await new Promise((resolve) => setTimeout(resolve, 60_000))
console.log("the process lives")
process.exit()
