import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
const { host: hostname, port } = broker
const client = await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/" })
console.log("connected")
// as when an administrator closes the connection
await broker.call("say_close", { connection: "c1", code: 1, reason: "CONNECTION_FORCED" }).catch(() => {})
await new Promise((resolve) => setTimeout(resolve, 60_000))
console.log("the process lives")
process.exit()
