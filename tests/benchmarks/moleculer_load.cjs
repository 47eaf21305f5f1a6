// Calls per second between two real nodes: node moleculer_load.cjs PACKAGES PACKAGE TRANSPORTER
// Prints JSON: {"1": [rate, ...], "32": [rate, ...]}, by calls in flight, a rate for each round.
"use strict";
const [packages, name, transporter] = process.argv.slice(2);
const { ServiceBroker } = require(`${packages}/${name}`);
const { fork } = require("node:child_process");
const ROUNDS = 5, SECONDS = 0.6;
const options = nodeID => ({ nodeID, logger: false, transporter, heartbeatInterval: 30, heartbeatTimeout: 90 });

async function serve() {
  const broker = new ServiceBroker(options("bench-service"));
  broker.createService({ name: "math", actions: { add: ctx => ctx.params.a + ctx.params.b } });
  await broker.start();
  process.send("ready");
}

async function round(broker, flying) {
  const begun = process.hrtime.bigint(), end = Date.now() + SECONDS * 1000;
  let done = 0;
  await Promise.all(Array.from({ length: flying }, async () => {
    while (Date.now() < end) {
      if (await broker.call("math.add", { a: done, b: 1 }) === undefined) throw new Error("no answer");
      done += 1;
    }
  }));
  return done / (Number(process.hrtime.bigint() - begun) / 1e9);
}

async function load() {
  const service = fork(__filename, [...process.argv.slice(2), "serve"]);
  await new Promise(resolve => service.once("message", resolve));
  const broker = new ServiceBroker(options("bench-caller"));
  await broker.start();
  await broker.waitForServices("math", 10000);
  const found = {};
  for (const flying of [1, 32]) {
    await round(broker, flying); // warms up
    found[flying] = [];
    for (let n = 0; n < ROUNDS; n++) found[flying].push(await round(broker, flying));
  }
  console.log(JSON.stringify(found));
  service.kill();
  await broker.stop();
  process.exit(0);
}

(process.argv[5] === "serve" ? serve() : load()).catch(error => { console.error(error); process.exit(1); });
