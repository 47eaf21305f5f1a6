import { Redis } from "ioredis"
import { spawn } from "node:child_process"
import { connect, createServer } from "node:net"

const [port, front] = [16382, 16383]
const server = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""])
process.on("exit", () => server.kill("SIGKILL"))
const direct = new Redis(port)
direct.on("error", () => {})
await direct.ping()

let spoiled = "" // in place of this reply the connection is reset
createServer((client) => {
  const upstream = connect(port, "127.0.0.1")
  client.pipe(upstream)
  upstream.on("data", (data) => {
    if (String(data) !== spoiled) return client.write(data)
    spoiled = ""
    client.resetAndDestroy()
  })
  client.on("error", () => {}).on("close", () => upstream.destroy())
}).listen(front, "127.0.0.1")

const client = new Redis(front)
client.on("error", () => {})
console.log("orders so far:", await client.incr("orders"))
spoiled = ":2\r\n"
console.log("one more order:", await client.incr("orders"))
console.log("the server has counted:", await direct.get("orders"))
process.exit()
