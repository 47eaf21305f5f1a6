import rabbit from "rabbitmq-stream-js-client"
import { serve } from "./fakebrokers.mjs"

const broker = await serve("rabbitmq-stream")
const { host: hostname, port } = broker
try {
  await rabbit.connect({ hostname, port, username: "guest", password: "wrong", vhost: "/" })
} catch (error) {
  console.log("refused:", error.message)
}
console.log("the process lives")
process.exit()
