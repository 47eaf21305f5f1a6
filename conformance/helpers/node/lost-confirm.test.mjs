// A lost confirm and the stock client: what was sent is stored, and nobody is told of the third message.

import assert from "node:assert/strict"
import { createRequire } from "node:module"
import { after, before, beforeEach, test } from "node:test"
import { Refused, proxy, serve } from "./fakebrokers.mjs"

const { connect } = createRequire(import.meta.url)("rabbitmq-stream-js-client")

let broker
before(async () => (broker = await serve("rabbitmq-stream")))
beforeEach(() => broker.reset())
after(() => broker.stop())

test("the third confirm is lost", () => loseTheThirdConfirm(broker, broker))

test("the third confirm is lost in the proxy", async () => {
  const between = await proxy(broker.url, { flags: ["--protocol", "rabbitmq-stream"] }) // a real server in real life
  try {
    await loseTheThirdConfirm(broker, between)
  } finally {
    await between.stop()
  }
})

/** Uses a client that connects to `broker`, and adds the fault there; `server` has what is stored. */
async function loseTheThirdConfirm(server, broker) {
  await server.call("create_stream", { name: "orders" })
  await broker.addFault({ name: "lost", match: { role: "confirm", nth: 3 }, effect: { type: "drop" } })
  const client = await connect({ hostname: broker.host, port: broker.port, username: "guest", password: "guest", vhost: "/" })
  const publisher = await client.declarePublisher({ stream: "orders" })
  const confirmed = []
  publisher.on("publish_confirm", (code, ids) => confirmed.push(...ids))
  for (const [index, body] of ["tea", "milk", "salt", "rice"].entries()) {
    await publisher.send(Buffer.from(body))
    await broker.waitFor({ kind: "PublishConfirm", count: index + 1, timeout: 60 })
  }
  while (confirmed.length < 3) await new Promise((resolve) => setTimeout(resolve, 10))
  await client.close()

  assert.deepEqual(confirmed, [1n, 2n, 4n])
  assert.equal((await server.ask("messages", { name: "orders" })).length, 4)
  assert.equal((await broker.fault("lost")).fired, 1)
  const said = await broker.journal({ kind: "PublishConfirm", tap: "said" })
  assert.deepEqual(said.map((record) => record.fault), ["", "", "lost", ""])
  await broker.checkFaults()
}

test("a fault that never took place is told", async () => {
  await broker.addFault({ name: "never", match: { role: "confirm", nth: 3 }, effect: { type: "drop" } })
  await assert.rejects(broker.checkFaults(), /faults that never took place: never/)
})

test("what is refused says where and why", async () => {
  const wrong = broker.addFault({ match: { rol: "confirm" }, effect: { type: "drop" } })
  await assert.rejects(wrong, (error) => error instanceof Refused && error.status === 400 && error.path === "body.match.rol")
})

test("a program that is not there", async () => {
  await assert.rejects(serve("pzq", { command: ["no-such-program"] }), /cannot be run/)
  await assert.rejects(serve("no-such-protocol"), /there is no protocol 'no-such-protocol'/)
})
