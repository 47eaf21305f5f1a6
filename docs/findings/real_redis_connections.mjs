import { ServiceBroker } from "moleculer"
import { execFileSync, spawn } from "node:child_process"

const port = 20000 + (process.pid % 10000)
const server = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""])
process.on("exit", () => server.kill("SIGKILL"))
const redis = (...words) => execFileSync("redis-cli", ["-p", String(port), ...words], { stdio: "pipe" }).toString()
const until = async (done) => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 100))
}
await until(() => {
  try {
    return redis("ping")
  } catch {}
})
const shop = new ServiceBroker({ nodeID: "shop", transporter: `redis://127.0.0.1:${port}`, logger: false })
await shop.start()
const open = () => redis("client", "list").split("\n").filter((line) => /id=/.test(line) && !/cmd=client/.test(line))
const subscribed = () => Number(/cmdstat_subscribe:calls=(\d+)/.exec(redis("info", "commandstats"))?.[1])
console.log("connections of the node:", open().length)
const topics = 12 // of a node
for (let loss = 1; loss <= 3; loss++) {
  redis("client", "kill", "type", "pubsub")
  // ioredis subscribes to all at once, and the node to each, when its new publisher is ready
  await until(() => subscribed() >= topics + loss * (1 + topics))
}
console.log("after three losses:", open().length)
process.exit()
