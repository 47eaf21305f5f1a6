import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
const handled = []

async function node(nodeID, pattern) {
  const broker = new ServiceBroker({ nodeID, transporter: bus.url, logger: false })
  const handler = () => handled.push(nodeID)
  if (pattern) broker.createService({ name: `mail-${nodeID}`, events: { [pattern]: { group: "mail", handler } } })
  await broker.start()
  return broker
}

await node("old", "order.*")
await node("new", "order.created")
const shop = await node("shop")
await shop.waitForServices(["mail-old", "mail-new"])
await shop.emit("order.created", { id: 1 })
for (let turn = 0; turn < 600 && handled.length < 2; turn++) await new Promise((resolve) => setTimeout(resolve, 100))
console.log(`one event for the group "mail" was handled by: ${handled.sort().join(", ")}`)
process.exit()
