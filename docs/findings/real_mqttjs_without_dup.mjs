import { spawn } from "node:child_process"
import { connect, createServer } from "node:net"
import { createInterface } from "node:readline"
import mqtt from "mqtt"

const listening = async (server) => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  return server.address().port
}
const free = createServer()
const upstream = await listening(free)
await new Promise((done) => free.close(done))
const server = spawn("mosquitto", ["-v", "-p", `${upstream}`], { env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` } })
process.once("exit", () => server.kill())
const lines = createInterface(server.stderr)
await new Promise((done) => lines.on("line", (line) => line.includes("running") && done()))
const got = []
lines.on("line", (line) => {
  const found = /Received PUBLISH from shop \(d(\d), q1, r0, m(\d+)/.exec(line)
  if (found) got.push(found.slice(1))
})

let resets = 1 // a relay that resets the connection in place of the first PUBACK
const relay = createServer((near) => {
  const far = connect(upstream, "127.0.0.1")
  near.on("error", () => {}).on("close", () => far.destroy()).pipe(far)
  far.on("error", () => {}).on("data", (data) => {
    if (data[0] >> 4 === 4 && resets-- > 0) near.resetAndDestroy()
    else if (!near.destroyed) near.write(data)
  })
})
const client = await mqtt.connectAsync({ port: await listening(relay), host: "127.0.0.1", clientId: "shop", clean: false })
await client.publishAsync("orders", "tea", { qos: 1 })
const [[dup, first], [again, second]] = got
console.log("PUBLISH is sent with DUP:", Number(dup))
console.log("PUBLISH is sent again with DUP:", Number(again), "- the same packet id:", first === second)
process.exit()
