import { connect } from "@nats-io/transport-node"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("nats")
const client = await connect({ servers: `${broker.host}:${broker.port}` })
const status = client.status()[Symbol.asyncIterator]()
const comes = async (type) => {
  while ((await status.next()).value.type !== type);
}
await broker.call("kill", { how: "rst" })
await comes("disconnect")
client.publish("orders", "tea") // there is no error
await comes("reconnect")
client.publish("orders", "milk")
await client.flush()
const got = await broker.journal({ kind: "Pub", tap: "received" })
console.log("published: 2, the server got:", got.length)
process.exit()
