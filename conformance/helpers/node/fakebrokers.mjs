// Fake brokers for tests in Node 18 or newer: starts `fakebrokers serve` and speaks its control API.
//
//   const broker = await serve("rabbitmq-stream")
//   await broker.call("create_stream", { name: "orders" })
//   await broker.addFault({ name: "lost", match: { role: "confirm", nth: 3 }, effect: { type: "drop" } })
//   ...                                   // point the client at broker.host, broker.port
//   await broker.checkFaults()            // each fault took place
//   await broker.stop()
//
// What a broker can be told (`call`, `ask`) is listed in its /openapi.json; the names are those of the Python class.

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const START_MS = 30_000

/** What the control API refused: `status`, `path` (where in the request) and `problem` (what was expected). */
export class Refused extends Error {
  constructor({ status, path, problem, journal }) {
    super(`${status} ${path}: ${problem}${journal ? `\n${journal}` : ""}`)
    Object.assign(this, { name: "Refused", status, path, problem, journal })
  }
}

/** Starts a fake broker in a process of its own.
 *
 * @param {string} protocol rabbitmq-stream, blazingmq, pzq, narconi or moleculer
 * @param {object} [options]
 * @param {string[]} [options.flags] further flags of `fakebrokers serve`, such as ["--nodes", "3"]
 * @param {string[]} [options.command] the program; else the words of $FAKEBROKERS, else "fakebrokers"
 * @returns {Promise<Broker>} once clients can connect
 */
export function serve(protocol, { flags = [], command } = {}) {
  return start(protocol, ["serve", protocol, ...flags], command)
}

/** Starts a proxy in front of a real server, with further flags of `fakebrokers proxy`; with ["--protocol", P] its
 * faults match frames, and its journal has them.
 */
export function proxy(upstream, { flags = [], command } = {}) {
  return start("proxy", ["proxy", upstream, "--api", "0", ...flags], command)
}

/** Starts a program; `name` is that of its broker in the control API. */
async function start(name, given, command) {
  const [program, ...words] = command ?? (process.env.FAKEBROKERS || "fakebrokers").split(" ")
  const child = spawn(program, [...words, ...given, "--control", "0"], { stdio: ["ignore", "pipe", "pipe"] })
  const end = () => child.kill("SIGKILL")
  process.once("exit", end)
  child.once("exit", () => process.off("exit", end))
  return new Broker(child, name, await ready(child))
}

/** The words of the line that says that clients can connect. */
function ready(child) {
  let complaint = ""
  child.stderr.setEncoding("utf8").on("data", (text) => (complaint += text))
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`fakebrokers ${why}\n${complaint}`))
    const timer = setTimeout(() => (child.kill("SIGKILL"), fail(`did not start within ${START_MS} ms`)), START_MS)
    child.once("error", (error) => (clearTimeout(timer), fail(`cannot be run: ${error.message}`)))
    child.once("close", (code) => (clearTimeout(timer), fail(`ended with ${code}`)))
    createInterface(child.stdout).once("line", (line) => (clearTimeout(timer), resolve(line.split(" "))))
  })
}

/** A fake broker that runs.
 *
 * `url`, `host`, `port`: where clients connect; `urls`: further addresses by name; `control`: the control API.
 */
export class Broker {
  #child
  #base

  constructor(child, name, [, , url, ...further]) {
    this.#child = child
    this.url = url
    const { hostname, port } = new URL(url)
    this.host = hostname
    this.port = Number(port)
    this.urls = Object.fromEntries(further.map((pair) => pair.split(/=(.*)/s)))
    this.control = this.urls.control
    this.#base = `${this.control}/brokers/${name}`
  }

  /** Tells the broker something: an operation with its arguments by name. */
  call(operation, given = {}) {
    return this.#request("POST", operation, given)
  }

  /** Asks for what an operation only reads. */
  ask(operation, given = {}) {
    return this.#request("GET", `${operation}?${new URLSearchParams(given)}`)
  }

  /** Adds a fault, or a whole plan ({ seed, faults }); returns the names. */
  async addFault(fault) {
    return (await this.call("faults", fault)).names
  }

  /** One fault by name: how often it was `seen` (it matched) and `fired` (it took place). */
  fault(name) {
    return this.#request("GET", `faults/${encodeURIComponent(name)}`)
  }

  /** Throws if a fault never took place: then the test has not tested what it says. */
  async checkFaults() {
    const { unfired } = await this.ask("faults")
    if (unfired.length) throw new Error(`faults that never took place: ${unfired.join(", ")}\n${await this.excerpt()}`)
  }

  /** Waits until the journal has `count` records that fit; `timeout` in seconds. Returns them. */
  waitFor({ count = 1, timeout = 5, ...wanted }) {
    return this.call("wait_for", { ...wanted, count, timeout })
  }

  /** The journal's records that fit { kind, role, tap, connection, since, limit }. */
  async journal(wanted = {}) {
    return (await this.#text("GET", `journal?${new URLSearchParams(wanted)}`)).split("\n").filter(Boolean).map(JSON.parse)
  }

  /** The last records as text, for the message of a test that fails. */
  async excerpt(lines = 20) {
    const records = await this.journal({ limit: lines })
    return records.map((each) => `${each.connection} ${each.tap} ${each.kind} ${each.fault ?? ""}`).join("\n")
  }

  /** As right after the start: no connections, no faults, nothing stored, no journal. For between tests. */
  reset() {
    return this.call("reset")
  }

  /** Ends the broker. Throws if something went wrong inside it. */
  async stop() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = new Promise((resolve) => this.#child.once("exit", (code) => resolve(code)))
    this.#child.kill("SIGTERM")
    const code = await ended
    if (code) throw new Error(`fakebrokers ended with ${code}`)
  }

  async #request(method, path, body) {
    const text = await this.#text(method, path, body)
    return text ? JSON.parse(text) : undefined
  }

  async #text(method, path, body) {
    const answer = await fetch(`${this.#base}/${path}`, { method, body: body && JSON.stringify(body) })
    const text = await answer.text()
    if (!answer.ok) throw new Refused(JSON.parse(text))
    return text
  }
}
