import { ServiceBroker } from "moleculer"
import { serve } from "./fakebrokers.mjs"

const bus = await serve("moleculer", { flags: ["--transporter", "nats"] })
const shop = new ServiceBroker({ nodeID: "shop", transporter: bus.url, logger: false })
await shop.start()
await bus.addFault({ match: {}, effect: { type: "silent" } }) // the host of the NATS server loses its power
const stopped = shop.stop().then(() => "it has stopped")
const limit = new Promise((resolve) => setTimeout(() => resolve("it has not stopped after 6 s"), 6000))
console.log("the node is stopped:", await Promise.race([stopped, limit]))
process.exit()
