// A real Moleculer node: node node.cjs PACKAGES PACKAGE OPTIONS; then one JSON array per line on stdin.
"use strict";
const { Readable } = require("node:stream");
const readline = require("node:readline");

const [packages, name, options] = process.argv.slice(2);
const { ServiceBroker } = require(`${packages}/${name}`);
const old = name.endsWith("0.14");
const events = [];
const broker = new ServiceBroker({
  logger: false, heartbeatInterval: 1, heartbeatTimeout: 3, requestTimeout: 5000, ...JSON.parse(options),
});
const bytes = chunks => Readable.from(chunks.map(text => Buffer.from(text)), { objectMode: false });
const text = async stream => { let all = ""; for await (const chunk of stream) all += chunk; return all; };

// 0.15 over MQTT ends with a TypeError when a heartbeat comes between the end of its client and of the connection.
const discoverer = broker.registry.discoverer;
const beat = discoverer.beat.bind(discoverer);
let lastBeat = Promise.resolve();
discoverer.beat = () => (lastBeat = beat());
const stop = async () => { discoverer.stopHeartbeatTimers(); await lastBeat; await broker.stop(); };

broker.createService({
  name: broker.nodeID,
  actions: {
    add: ctx => ctx.params.a + ctx.params.b,
    fail: () => { throw new Error("boom"); },
    down: () => bytes(["one", "two"]),
    up: ctx => text(old ? ctx.params : ctx.stream),
  },
  events: { "user.*": ctx => { events.push([ctx.eventName, ctx.params]); } },
});

const commands = {
  call: (action, params) => broker.call(action, params),
  download: async action => text(await broker.call(action)),
  upload: (action, chunks) =>
    old ? broker.call(action, bytes(chunks)) : broker.call(action, {}, { stream: bytes(chunks) }),
  emit: (event, data) => broker.emit(event, data).then(() => null),
  broadcast: (event, data) => broker.broadcast(event, data).then(() => null),
  ping: async node => (await broker.ping(node)).nodeID,
  waitFor: service => broker.waitForServices(service, 20000).then(() => null),
  nodes: () => broker.registry.getNodeList({ onlyAvailable: true }).map(node => node.id).sort(),
  events: () => events,
  stop,
};

broker.start().then(() => {
  console.log(JSON.stringify("ready"));
  readline.createInterface({ input: process.stdin }).on("line", async line => {
    const [what, ...given] = JSON.parse(line);
    try {
      console.log(JSON.stringify((await commands[what](...given)) ?? null));
    } catch (error) {
      const { name, message, code, type, data, nodeID } = error;
      console.log(JSON.stringify({ error: { name, message, code, type, data, nodeID } }));
    }
  });
});
