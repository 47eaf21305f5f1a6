import rabbit from "rabbitmq-stream-js-client"

// PORT: of the stream listener of a RabbitMQ server on this machine
const port = Number(process.env.PORT)
try {
  await rabbit.connect({ hostname: "127.0.0.1", port, username: "guest", password: "wrong", vhost: "/" })
} catch (error) {
  console.log("refused:", error.message)
}
console.log("the process lives")
process.exit()
