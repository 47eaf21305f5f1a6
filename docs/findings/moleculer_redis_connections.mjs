import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "redis"] })
const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start()
const open = async () => (await bus.ask("connections")).length
console.log("connections of the node:", await open())
for (let loss = 0; loss < 3; loss++) {
  await bus.call("kill", { how: "rst" })
  await new Promise((resolve) => setTimeout(resolve, 700))
}
console.log("after three losses:", await open())
process.exit()
