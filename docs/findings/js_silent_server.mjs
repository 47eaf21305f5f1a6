import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
const { host: hostname, port } = broker
let told = false
const listeners = { connection_closed: () => (told = true) }
await rabbit.connect({ hostname, port, username: "guest", password: "guest", vhost: "/", heartbeat: 1, listeners })
await broker.call("kill", { how: "half-open" }) // as when its host loses its power
await new Promise((resolve) => setTimeout(resolve, 8000))
console.log("heartbeats every second, and silence for 8 s; notified of a loss:", told)
process.exit()
