import { spawn } from "node:child_process"
import { connect as dial, createServer } from "node:net"
import { createInterface } from "node:readline"
import { connect } from "@nats-io/transport-node"

const listening = async (server) => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  return server.address().port
}
const free = createServer()
const upstream = await listening(free)
await new Promise((done) => free.close(done))
const server = spawn("nats-server", ["-a", "127.0.0.1", "-p", `${upstream}`])
process.once("exit", () => server.kill("SIGKILL"))
await new Promise((done) => createInterface(server.stderr).on("line", (line) => line.includes("Server is ready") && done()))

const open = new Set() // a relay, whose connections can be reset
const relay = createServer((near) => {
  const far = dial(upstream, "127.0.0.1")
  open.add(near)
  near.on("error", () => {}).on("close", () => far.destroy()).pipe(far)
  far.on("error", () => {}).pipe(near)
})
const direct = await connect({ servers: `127.0.0.1:${upstream}` })
let got = 0
direct.subscribe("orders", { callback: () => got++ })
await direct.flush()

const client = await connect({ servers: `127.0.0.1:${await listening(relay)}` })
const status = client.status()[Symbol.asyncIterator]()
const comes = async (type) => {
  while ((await status.next()).value.type !== type);
}
for (const each of open) each.resetAndDestroy()
await comes("disconnect")
client.publish("orders", "tea") // there is no error
await comes("reconnect")
client.publish("orders", "milk")
await client.flush()
await direct.flush()
console.log("published: 2, the server got:", got)
process.exit()
