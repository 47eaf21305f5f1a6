import { Redis } from "ioredis"
import { serve } from "./fakebrokers.mjs"

const server = await serve("redis", {})
const client = new Redis(server.url)
client.on("error", () => {})
console.log("orders so far:", await client.incr("orders"))
// the server counts, and the connection is reset in place of its reply
await server.addFault({
  match: { kind: "Reply", direction: "out", where: { value: 2 }, nth: 1 },
  effect: [{ type: "drop" }, { type: "rst" }],
})
console.log("one more order:", await client.incr("orders"))
console.log("the server has counted:", await client.get("orders"))
process.exit()
