import mqtt from "mqtt"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("mqtt")
// the first PUBACK is lost with the connection
await broker.addFault({ match: { kind: "Puback", direction: "out", nth: 1 }, effect: [{ type: "drop" }, { type: "rst" }] })
const client = await mqtt.connectAsync({ host: broker.host, port: broker.port, clientId: "shop", clean: false })
const sent = []
client.on("packetsend", (packet) => packet.cmd === "publish" && sent.push([packet.messageId, packet.dup]))
await client.publishAsync("orders", "tea", { qos: 1 })
const [[first, dup], [second, again]] = sent
console.log("PUBLISH is sent with DUP:", Number(dup))
console.log("PUBLISH is sent again with DUP:", Number(again), "- the same packet id:", first === second)
process.exit()
