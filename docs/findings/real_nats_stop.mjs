import { ServiceBroker } from "moleculer"
import { spawn } from "node:child_process"

const port = 20000 + (process.pid % 10000)
const server = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port)])
process.on("exit", () => server.kill("SIGKILL"))
await new Promise((resolve) => server.stderr.on("data", (text) => /Server is ready/.test(text) && resolve()))
const shop = new ServiceBroker({ nodeID: "shop", transporter: `nats://127.0.0.1:${port}`, logger: false })
await shop.start()
server.kill("SIGSTOP") // its host is gone, as far as the node can see
const stopped = shop.stop().then(() => "it has stopped")
const limit = new Promise((resolve) => setTimeout(() => resolve("it has not stopped after 6 s"), 6000))
console.log("the node is stopped:", await Promise.race([stopped, limit]))
process.exit()
