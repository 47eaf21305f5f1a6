import { Redis } from "ioredis"
import { spawn } from "node:child_process"
import { setTimeout as sleep } from "node:timers/promises"

const port = 16385
const start = () => spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""])
let server = start()
process.on("exit", () => server.kill("SIGKILL"))
const client = new Redis(port, { retryStrategy: () => 1000 })
client.on("error", () => {}).on("end", () => console.log("the client has ended"))
await client.ping()
const away = new Promise((resolve) => client.once("reconnecting", resolve))
server.kill("SIGKILL")
await away

let outcome = "none"
client.get("order").then(
  (value) => (outcome = value),
  (error) => (outcome = error.message),
)
client.disconnect()
server = start()
await sleep(5000)
console.log("5 s after disconnect: the client is", client.status, "- outcome of the command:", outcome)
process.exit()
