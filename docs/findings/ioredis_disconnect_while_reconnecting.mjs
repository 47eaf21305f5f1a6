import { Redis } from "ioredis"
import { setTimeout as sleep } from "node:timers/promises"
import { serve } from "./fakebrokers.mjs"

const server = await serve("redis", {})
const client = new Redis(server.url, { retryStrategy: () => 1000 })
client.on("error", () => {}).on("end", () => console.log("the client has ended"))
await client.ping()
await server.call("refuse") // no new connections for a while, and the open one is lost
const away = new Promise((resolve) => client.once("reconnecting", resolve))
await server.call("kill", { how: "rst" })
await away

let outcome = "none"
client.get("order").then(
  (value) => (outcome = value),
  (error) => (outcome = error.message),
)
client.disconnect()
await server.call("restart")
await sleep(5000)
console.log("5 s after disconnect: the client is", client.status, "- outcome of the command:", outcome)
process.exit()
