import { ServiceBroker } from "moleculer"
import { execFileSync, spawn } from "node:child_process"

const port = 20000 + (process.pid % 10000)
const server = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""])
process.on("exit", () => server.kill("SIGKILL"))
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const redis = (...words) => execFileSync("redis-cli", ["-p", String(port), ...words]).toString()
const open = () => redis("client", "list").split("\n").filter((line) => /id=/.test(line) && !/cmd=client/.test(line))
await wait(1000)
const shop = new ServiceBroker({ nodeID: "shop", transporter: `redis://127.0.0.1:${port}`, logger: false })
await shop.start()
console.log("connections of the node:", open().length)
for (let loss = 0; loss < 3; loss++) {
  redis("client", "kill", "type", "pubsub")
  redis("client", "kill", "type", "normal")
  await wait(2500)
}
console.log("after three losses:", open().length)
process.exit()
