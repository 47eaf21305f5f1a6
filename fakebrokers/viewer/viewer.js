"use strict";
// Row: t, what, lane, tap, name, text, fault, links, op, details, counts, span, scope. See rows.py.
const T = 0, WHAT = 1, LANE = 2, TAP = 3, NAME = 4, TEXT = 5, FAULT = 6, LINKS = 7, OP = 8, DETAILS = 9, COUNTS = 10, SPAN = 11, SCOPE = 12;
const HEIGHT = 22;
const TAPS = {received: "never reached the broker", heard: "what the broker got instead", said: "meant, not sent", sent: "sent instead"};
const ALWAYS = new Set(["rule", "failure"]);
const WORDS = {publish: "published", confirm: "confirmed", reject: "refused", deliver: "delivered", ack: "acknowledged"};
const ROOM = 25, ROOM_PIXELS = 260;  // of the width that the text of a frame takes: percent, and at least
const KEYS_SHOWN = 12, FACTS_SHOWN = 40;
const OF_CONNECTION = /^([cd]\d+) (.+)$/s;  // the name of a fact: what all connections share comes first
const NAMES = new Intl.Collator("en", {numeric: true});
const KINDS = [["frames", ["in", "out"]], ["states", ["state"]], ["ops", ["op", "end", "did", "event"]], ["log lines", ["log"]], ["bytes", ["bytes"]]];
const NUMBERED = /^(.*):(\d+)$/s;  // a link whose key is a number: its group, and the number

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);  // text stays text
  return made;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function counted(many, word) { return `${many} ${word}${many === 1 ? "" : "s"}`; }

function hexdump(digits) {
  const lines = [];
  for (let at = 0; at < digits.length; at += 32) {
    const bytes = digits.slice(at, at + 32).match(/../g) || [];
    const plain = bytes.map(b => { const n = parseInt(b, 16); return n > 31 && n < 127 ? String.fromCharCode(n) : "."; });
    lines.push((at / 2).toString(16).padStart(4, "0") + "  " + bytes.join(" ").padEnd(48) + " " + plain.join(""));
  }
  return lines.join("\n");
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 1); } catch { return text; }
}

/** The leaves of a value by their paths: {"chunk.entries": 3}. */
function leaves(value, path = "", found = {}) {
  if (value === null || typeof value !== "object") found[path] = JSON.stringify(value);
  else for (const [name, each] of Object.entries(value)) leaves(each, path ? `${path}.${name}` : name, found);
  return found;
}

/** One run: a time line, heads of the lanes, and a list of which only what is seen is in the document. */
class Run {
  constructor(data, viewer, number) {
    this.data = data; this.viewer = viewer; this.number = number;
    this.rows = data.rows; this.visible = []; this.hits = new Set(); this.linked = new Set();
    this.picked = -1; this.differs = -1; this.facts = [];
    const lanes = data.lanes.length;
    this.x = lane => lanes < 2 ? 50 : 8 + 84 * lane / (lanes - 1);  // percent
    this.spans();
    this.canvas = make("canvas", {onclick: event => this.jump(event)});
    const room = lanes < 2 ? "100%" : 84 / (lanes - 1) + "%", kinds = lanes < 7;
    this.heads = make("div", {className: "lanes"}, ...data.lanes.map((lane, at) =>
      make("span", {title: `${lane.kind} ${lane.name}`, style: {left: this.x(at) + "%", maxWidth: room}},
        make("i", {}, kinds && lane.kind !== lane.name ? lane.kind + " " : ""), lane.name)));
    this.space = make("div", {className: "space"});
    this.list = make("div", {className: "list", tabIndex: 0, role: "listbox", ariaLabel: "what happened, in order",
      onscroll: () => this.draw()}, this.space);
    this.element = make("section", {className: "run"}, this.canvas,
      make("div", {className: "heads"}, make("span"), this.heads), this.list);
    if (viewer.many) this.element.prepend(make("h2", {}, data.title));
  }

  /** How many ops of each lane are open at each row. */
  spans() {
    this.open = this.data.lanes.map(() => new Uint16Array(this.rows.length + 1));
    const begun = new Map();
    this.rows.forEach((row, at) => {
      if (row[WHAT] === "op") begun.set(row[OP], at);
      else if (row[WHAT] === "end" && begun.has(row[OP])) { this.mark(row[LANE], begun.get(row[OP]), at); begun.delete(row[OP]); }
    });
    for (const at of begun.values()) this.mark(this.rows[at][LANE], at, this.rows.length);
    for (const lane of this.open) for (let at = 1, sum = lane[0]; at < lane.length; at++) { sum += (lane[at] << 16) >> 16; lane[at] = sum; }
  }

  mark(lane, from, to) { this.open[lane][from] += 1; this.open[lane][to] -= 1; }

  filter(kinds) {
    this.visible = [];
    this.rows.forEach((row, at) => { if (ALWAYS.has(row[WHAT]) || kinds.has(row[WHAT])) this.visible.push(at); });
    this.place = new Map(this.visible.map((at, number) => [at, number]));
    this.space.style.height = this.visible.length * HEIGHT + "px";
    this.draw(true); this.paint();
  }

  search(words) {
    this.hits = new Set();
    if (words) this.rows.forEach((row, at) => {
      if ([row[NAME], row[TEXT], row[FAULT], ...row[DETAILS].map(d => d[1])].join(" ").toLowerCase().includes(words)) this.hits.add(at);
    });
    this.draw(true); this.paint();
  }

  /** The rows of the same message: those with a key in common, and those of these. Another scope is another message. */
  follow() {
    this.linked = new Set();
    if (this.picked < 0) return this.draw(true);
    const first = this.rows[this.picked], scope = first[SCOPE], span = first[SPAN];
    const within = (link, [group, from, to]) => { const found = NUMBERED.exec(link); return found && found[1] === group && found[2] >= from && found[2] <= to; };
    let links = new Set(first[LINKS]);
    for (let round = 0; round < 3; round++) {
      const more = new Set(links), keys = [...links];
      this.rows.forEach((row, at) => {
        if (scope && row[SCOPE] && row[SCOPE] !== scope) return;
        const is = row[LINKS].some(link => links.has(link) || (span && within(link, span))) || (row[SPAN] && keys.some(link => within(link, row[SPAN])));
        if (!is) return;
        this.linked.add(at);
        if (row[LINKS].length < 3) row[LINKS].forEach(link => more.add(link));
      });
      links = more;
    }
    this.draw(true); this.paint();
  }

  /** How many rows are followed: of one message, unless its key was published more than once. */
  followed() {
    const rows = counted(this.linked.size, "row");
    const publishes = [...this.linked].map(at => this.rows[at]).filter(row =>
      row[WHAT] === "in" && row[TAP] !== "heard" && (row[COUNTS] || []).some(([role]) => role === "publish"));
    return publishes.length > 1 ? `${rows} with one key, of ${publishes.length} publishes` : `${rows} of one message`;
  }

  /** What the wire and the broker had of messages after a row, and what had no answer yet. */
  upTo(at) {
    let given = 0;
    const sums = new Map(), open = new Map(), owed = {p: new Map(), d: new Map()}, seen = new Set();
    for (let n = 0; n <= at; n++) {
      const row = this.rows[n], tap = row[TAP], lane = row[LANE], place = row[SCOPE] || lane;
      if (row[WHAT] === "state") {
        if (/^(accepted|connected)$/.test(row[NAME])) open.set(lane, row[NAME]);
        else if (/^(closed|ended)/.test(row[NAME])) open.delete(lane);
        continue;
      }
      if (row[WHAT] === "event" && /^(deliver|message)$/.test(row[NAME])) given++;
      if (row[WHAT] !== "in" && row[WHAT] !== "out") continue;
      const client = tap === "" || tap === "received" || tap === "sent", broker = tap === "" || tap === "heard" || tap === "said";
      for (const [role, count] of row[COUNTS] || []) {
        if (!(role in WORDS)) continue;
        seen.add(role);
        const sum = sums.get(role) || [0, 0];
        sums.set(role, [sum[0] + (client ? count : 0), sum[1] + (broker ? count : 0)]);
        if (role === "publish" && broker) row[LINKS].forEach(link => owed.p.set(`${place} ${link}`, link));
        else if ((role === "confirm" || role === "reject") && client) row[LINKS].forEach(link => owed.p.delete(`${place} ${link}`));
        else if (role === "deliver" && client) row[LINKS].forEach(link => owed.d.set(`${place} ${link}`, link));
        else if (role === "ack" && broker) row[LINKS].forEach(link => owed.d.delete(`${place} ${link}`));
      }
    }
    const answers = role => this.rows.some(row => (row[COUNTS] || []).some(each => each[0] === role));
    const listed = (group, has) => has ? [...new Set(owed[group].values())].map(link => link.slice(2)) : [];
    return {sums, given, open: open.size, unconfirmed: listed("p", answers("confirm")), unacked: listed("d", this.data.acks_each && answers("ack"))};
  }

  /** What a fault has changed in a frame: [field, before, after]; the frame as it was is the last of its kind and text. */
  altered(at) {
    const fields = row => { try { return leaves(JSON.parse(row[DETAILS].find(detail => detail[0] === "fields")[1])); } catch { return null; } };
    const row = this.rows[at], was = {sent: "said", heard: "received"}[row[TAP]], now = was && fields(row);
    if (!now) return [];
    const from = this.rows.slice(0, at).findLast(each => each[TAP] === was && each[LANE] === row[LANE] && each[NAME] === row[NAME] && each[LINKS].join() === row[LINKS].join());
    const before = from && fields(from);
    if (!before) return [];
    const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
    return names.filter(name => before[name] !== now[name]).map(name => [name, before[name] ?? "-", now[name] ?? "-"]);
  }

  /** What the broker knew after a row: text by name, and what it was before where the row has changed it. */
  known(at) {
    const found = [];
    for (const {name, rows, texts} of this.facts) {
      let low = 0, high = rows.length;
      while (low < high) { const mid = (low + high) >> 1; if (rows[mid] <= at) low = mid + 1; else high = mid; }
      if (!low) continue;
      const changed = rows[low - 1] === at;
      if (texts[low - 1] || changed) found.push({name, text: texts[low - 1], before: changed ? texts[low - 2] || "" : undefined});
    }
    for (const fact of found) [, fact.of, fact.label] = OF_CONNECTION.exec(fact.name) || [, "", fact.name];
    return found.sort((a, b) => NAMES.compare(a.of, b.of) || NAMES.compare(a.label, b.label));
  }

  get marks() {
    return this.visible.filter(at => ALWAYS.has(this.rows[at][WHAT]) || this.rows[at][FAULT] || at === this.differs);
  }

  draw(anew = false) {
    const top = this.list.scrollTop, many = Math.ceil(this.list.clientHeight / HEIGHT) + 2;
    const first = Math.max(0, Math.floor(top / HEIGHT) - 1);
    if (!anew && this.first === first && this.many === many) return;
    this.first = first; this.many = many;
    this.space.replaceChildren(...this.visible.slice(first, first + many).map((at, number) => this.line(at, first + number)));
    this.paint();
  }

  line(at, number) {
    const row = this.rows[at], lanes = make("div", {className: "lanes"});
    const classes = ["row", row[WHAT]];
    if (row[FAULT]) classes.push("faulty");
    if (row[TAP] === "fail") classes.push("failed");
    if (this.hits.has(at)) classes.push("hit");
    if (this.linked.has(at)) classes.push("linked");
    if (at === this.differs) classes.push("differs");
    if (at === this.picked) classes.push("picked");
    this.data.lanes.forEach((_, lane) => {
      lanes.append(make("div", {className: "life", style: {left: this.x(lane) + "%"}}));
      if (this.open[lane][at]) lanes.append(make("div", {className: "open", style: {left: this.x(lane) + "%"}}));
    });
    this.fill(lanes, row);
    return make("div", {className: classes.join(" "), role: "option", ariaSelected: String(at === this.picked),
      style: {top: number * HEIGHT + "px"}, onclick: () => this.viewer.pick(this, at)},
      make("span", {className: "time"}, ...this.gap(number), row[T].toFixed(4)), lanes);
  }

  /** How long nothing happened before a row, where that is long for this run. */
  gap(number) {
    const since = number ? this.rows[this.visible[number]][T] - this.rows[this.visible[number - 1]][T] : 0;
    return since > 0.1 && since > 0.02 * this.rows.at(-1)[T] ? [make("b", {title: "nothing happened for so long"}, `+${since.toFixed(2)} s `)] : [];
  }

  fill(lanes, row) {
    const mine = this.x(row[LANE]), end = this.x(this.data.lanes.length - 1);
    const said = [make("span", {className: "name"}, row[NAME])], notes = [];  // what a fault did comes first: a line may have no room for all
    if (row[FAULT]) { notes.push("\u26a1 " + row[FAULT]); said.push(" ", make("span", {className: "bolt"}, notes[0])); }
    if (TAPS[row[TAP]]) { notes.push(`(${TAPS[row[TAP]]})`); said.push(" ", make("i", {}, notes.at(-1))); }
    said.push(" ", make("i", {}, row[TEXT]));
    const title = [row[NAME], ...notes, row[TEXT]].join(" ");
    if ((row[WHAT] === "in" || row[WHAT] === "out") && mine < end) {
      const gone = row[TAP] === "received" || row[TAP] === "said", made = row[TAP] === "heard" || row[TAP] === "sent";
      const half = (end - mine) / 2, toRight = row[WHAT] === "in";
      const from = mine + (gone && !toRight || made && toRight ? half : 0);
      const to = end - (gone && toRight || made && !toRight ? half : 0);
      lanes.append(make("div", {className: "arrow" + (gone ? " gone" : ""), style: {left: from + "%", width: to - from + "%"}}));
      const tip = toRight ? {left: `calc(${to}% - 8px)`, borderLeftColor: "var(--in)"} : {left: `calc(${from}% - 2px)`, borderRightColor: "var(--out)"};
      lanes.append(make("div", {className: "head", style: tip}));
      const pixels = (end - mine) / 100 * this.heads.clientWidth;  // near the broker an arrow is too short for its text
      const aside = (end - mine < ROOM || pixels < ROOM_PIXELS) && mine > Math.min(ROOM, end - mine);
      const place = aside ? {right: `calc(${100 - mine}% + 8px)`, maxWidth: `calc(${mine}% - 8px)`} : {left: `calc(${mine}% + 8px)`, right: `${Math.max(0, 100 - end)}%`};
      lanes.append(make("div", {className: "say", title, style: place}, ...said));
    } else {
      const late = mine > 60, style = late ? {right: `calc(${100 - mine}% + 6px)`, maxWidth: `calc(${mine}% - 6px)`} : {left: `calc(${mine}% + 6px)`, maxWidth: `calc(${100 - mine}% - 6px)`};
      lanes.append(make("div", {className: "say chip", title, style}, ...said));
    }
  }

  /** The time line: how much happened when, faults and rules in red, what is seen in a frame. */
  paint() {
    if (this.painting) return;
    this.painting = requestAnimationFrame(() => { this.painting = 0; this.paintNow(); });
  }

  paintNow() {
    const scale = devicePixelRatio || 1, wide = this.canvas.clientWidth, high = this.canvas.clientHeight;
    if (!wide) return;
    this.canvas.width = wide * scale; this.canvas.height = high * scale;
    const pen = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue("--" + name);
    pen.scale(scale, scale);
    const counts = {in: new Float32Array(wide), out: new Float32Array(wide), other: new Float32Array(wide)};
    for (const at of this.visible) {
      const row = this.rows[at], x = Math.min(wide - 1, Math.floor(this.toX(row[T])));
      (counts[row[WHAT]] || counts.other)[x] += 1;
    }
    const most = Math.max(1, ...counts.in, ...counts.out, ...counts.other);
    const tall = n => n ? 3 + (high / 2 - 8) * Math.log1p(n) / Math.log1p(most) : 0;
    for (let x = 0; x < wide; x++) {
      pen.fillStyle = colour("in"); pen.fillRect(x, high / 2 - tall(counts.in[x]), 1, tall(counts.in[x]));
      pen.fillStyle = colour("out"); pen.fillRect(x, high / 2, 1, tall(counts.out[x]));
      if (counts.other[x]) { pen.fillStyle = colour("soft"); pen.fillRect(x, high - 3, 1, 3); }
    }
    const dot = (at, name, size) => { pen.fillStyle = colour(name); pen.fillRect(this.toX(this.rows[at][T]) - size / 2, 0, size, high); };
    this.hits.forEach(at => dot(at, "warn", 1));
    this.marks.forEach(at => dot(at, "bad", 2));
    if (this.picked >= 0) dot(this.picked, "text", 1);
    const seen = this.visible.slice(this.first, this.first + this.many);
    if (seen.length) {
      const from = this.toX(this.rows[seen[0]][T]), to = this.toX(this.rows[seen.at(-1)][T]);
      pen.strokeStyle = colour("text"); pen.strokeRect(from - 1.5, 1.5, Math.max(4, to - from + 3), high - 3);
    }
  }

  get window() { return this.zoomed || [0, Math.max(1e-6, this.rows.length ? this.rows.at(-1)[T] : 1)]; }
  toX(t) { const [from, to] = this.window; return (t - from) / (to - from) * (this.canvas.clientWidth - 4) + 2; }

  zoom(factor) {
    const [from, to] = this.window, last = this.rows.length ? this.rows.at(-1)[T] : 1;
    const about = this.picked >= 0 ? this.rows[this.picked][T] : (from + to) / 2, half = (to - from) * factor / 2;
    this.zoomed = 2 * half >= last ? null : [Math.max(0, about - half), Math.min(last, about + half)];
    this.paint();
  }

  jump(event) {
    const [from, to] = this.window, t = from + (to - from) * event.offsetX / this.canvas.clientWidth;
    let low = 0, high = this.visible.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (this.rows[this.visible[mid]][T] < t) low = mid + 1; else high = mid; }
    if (this.visible.length) this.viewer.pick(this, this.visible[low]);
  }

  show(at) {
    const number = this.place.get(at);
    if (number === undefined) return;
    const top = number * HEIGHT, high = this.list.clientHeight;
    if (top < this.list.scrollTop || top > this.list.scrollTop + high - 2 * HEIGHT) this.list.scrollTop = Math.max(0, top - high / 3);
  }
}

class Viewer {
  constructor(documents, difference) {
    this.many = documents.length > 1;
    this.runs = documents.map((data, number) => new Run(data, this, number));
    this.current = this.runs[0];
    this.aside = make("aside", {ariaLive: "polite"});
    this.words = make("input", {type: "search", placeholder: "search in everything", ariaLabel: "search",
      oninput: () => this.search(), onkeydown: event => { if (event.key === "Enter") { this.step(this.hits(), event.shiftKey ? -1 : 1); event.preventDefault(); } }});
    this.count = make("span", {className: "count", role: "status"});
    this.boxes = KINDS.map(([name]) => make("input", {type: "checkbox", checked: name !== "bytes", onchange: () => this.filter()}));
    const has = name => documents.some(data => data.rows.some(row => KINDS.find(kind => kind[0] === name)[1].includes(row[WHAT])));
    const button = (text, title, act) => make("button", {title, onclick: act}, text);
    document.body.append(
      make("header", {}, make("h1", {}, difference ? "Two runs, side by side" : documents.map(data => data.title).join(" \u00b7 ")), this.words, this.count,
        ...KINDS.map(([name], at) => has(name) ? make("label", {}, this.boxes[at], " " + name) : ""),
        button("\u25c2 mark", "the mark before (M)", () => this.step(this.current.marks, -1)),
        button("mark \u25b8", "the next fault or violated rule (m)", () => this.step(this.current.marks, 1)),
        button("follow", "the rows of the same message (f)", () => { this.current.follow(); this.tell(); }),
        documents.some(data => data.logs.length) ? button("logs", "what was written besides (l)", () => this.logs()) : "",
        make("div", {className: "about"}, ...documents[0].about.flatMap(([label, text]) => [make("b", {}, label), ` ${text}   `]))),
      make("main", {}, ...this.runs.map(run => run.element), this.aside));
    if (difference) this.runs.forEach((run, at) => { run.differs = difference[at]; });
    this.filter();
    document.addEventListener("keydown", event => this.key(event));
    addEventListener("resize", () => this.runs.forEach(run => run.draw(true)));
    addEventListener("hashchange", () => this.fromHash());
    this.describe();
    if (!this.fromHash()) {
      const first = this.runs.find(run => run.differs >= 0);
      if (first) this.pick(first, first.differs); else if (this.current.marks.length) this.pick(this.current, this.current.marks[0]);
    }
    this.current.list.focus();
    document.body.dataset.ready = "yes";
  }

  fromHash() {
    const found = /^#(?:run(\d+)-)?(?:row-)?(\d+)$/.exec(location.hash), run = found && this.runs[Number(found[1] || 1) - 1];
    if (!run || !run.rows[found[2]]) return false;
    this.pick(run, Number(found[2]));
    return true;
  }

  filter() {
    const kinds = new Set(KINDS.flatMap(([, whats], at) => this.boxes[at].checked ? whats : []));
    this.runs.forEach(run => run.filter(kinds));
    this.tell();
  }

  search() {
    const words = this.words.value.trim().toLowerCase();
    this.runs.forEach(run => run.search(words));
    if (words && this.hits().length) this.step(this.hits(), 1, true);
    this.tell();
  }

  hits() { return this.current.visible.filter(at => this.current.hits.has(at)); }

  tell() {
    const run = this.current, total = counted(run.visible.length, "row");
    this.count.textContent = this.words.value.trim() ? `${this.hits().length} of ${total}` : run.linked.size ? run.followed() : `${total}, ${counted(run.marks.length, "mark")}`;
  }

  step(places, by, here = false) {
    if (!places.length) return;
    const at = this.current.picked, after = places.findIndex(place => place > at || (here && place === at));
    const before = places.findLastIndex(place => place < at);
    this.pick(this.current, by > 0 ? places[after < 0 ? 0 : after] : places[before < 0 ? places.length - 1 : before]);
  }

  move(by) {
    const run = this.current, number = run.place.get(run.picked) ?? -1;
    const next = Math.min(run.visible.length - 1, Math.max(0, number + by));
    if (run.visible.length) this.pick(run, run.visible[next]);
  }

  pick(run, at) {
    const before = this.current;
    this.current = run; run.picked = at; run.show(at); run.draw(true);
    if (before !== run) { before.draw(true); this.tell(); }
    history.replaceState(null, "", this.many ? `#run${run.number + 1}-row-${at}` : `#row-${at}`);
    this.describe();
  }

  describe() {
    const run = this.current, row = run.rows[run.picked];
    if (!row) {
      this.aside.replaceChildren(make("h3", {}, "Nothing chosen"), ...[["\u2191 \u2193", "step"], ["/", "search; Enter goes on"], ["m M", "next and last fault, rule or difference"],
        ["f", "follow one message"], ["c", "copy what is said of the row"], ["l", "logs"], ["+ -", "zoom the time line"], ["Esc", "clear"], ["?", "these keys"]].map(([keys, text]) => make("p", {}, make("kbd", {}, keys), " " + text)));
      return;
    }
    const words = {in: "client \u2192 broker", out: "broker \u2192 client", state: "connection", op: "asked of the client", end: "the op ended",
      did: "done to the broker", event: "reported by the client", log: "written to a log", bytes: "bytes", rule: "violated rule", failure: "the test"};
    if (run.data.lanes[row[LANE]].kind === "test") Object.assign(words, {op: "the test calls", end: "the call ended"});
    const list = make("dl", {}, make("dt", {}, "what"), make("dd", {}, words[row[WHAT]] || row[WHAT]), make("dt", {}, "at"), make("dd", {}, row[T].toFixed(6) + " s"),
      make("dt", {}, "row"), make("dd", {}, `${run.picked} (the last is ${run.rows.length - 1})`));
    if (TAPS[row[TAP]]) list.append(make("dt", {}, "by a fault"), make("dd", {}, TAPS[row[TAP]]));
    for (const [name, before, after] of run.altered(run.picked).slice(0, FACTS_SHOWN)) list.append(make("dt", {}, "changed"), make("dd", {className: "altered"}, `${name}: ${before} \u2192 ${after}`));
    for (const [label, text] of row[DETAILS]) {
      if (label === "hex") list.append(make("pre", {}, hexdump(text)));
      else if (label === "fields") list.append(make("pre", {}, pretty(text)));
      else if (label === "error" || label === "line") list.append(make("pre", {className: "log"}, text));
      else if (label === "rows") list.append(make("dt", {}, "proved by"), make("dd", {}, ...this.links(text)));
      else list.append(make("dt", {}, label), make("dd", {}, text));
    }
    const copy = make("button", {className: "copy", title: "all that is said here of the row (c)", onclick: () => this.copy()}, "copy");
    this.aside.replaceChildren(copy, make("h3", {}, row[NAME] + " " + row[TEXT]), ...this.broker(run), list, ...this.soFar(run));
    this.aside.scrollTop = 0;
    this.aside.querySelector(".changed")?.scrollIntoView({block: "nearest"});
  }

  /** What the broker knew after the chosen row; what the row has changed comes with what was so before. */
  broker(run) {
    const facts = run.known(run.picked);
    if (!facts.length) return [];
    const shown = facts.filter(({before}, number) => number < FACTS_SHOWN || before !== undefined), rows = [];
    shown.forEach(({of, label, text, before}, number) => {
      if (of && of !== shown[number - 1]?.of) rows.push(make("tr", {}, make("th", {className: "of", colSpan: 2, scope: "colgroup"}, of)));
      const now = make("td", {}, text || make("i", {}, "gone"));
      if (before) now.append(" ", make("s", {title: "before this row"}, before));
      rows.push(make("tr", {className: before === undefined ? "" : "changed"}, make("th", {scope: "row"}, label), now));
    });
    const more = facts.length - shown.length, title = run.data.is_reported ? "The broker now" : `The broker now, by ${run.data.is_of_the_wire ? "what passed on the wire" : "its frames"}`;
    return [make("h4", {}, title), make("table", {className: "broker"}, ...rows), more > 0 ? make("p", {}, `and ${more} more`) : ""];
  }

  /** Put what is said of the chosen row on the clipboard: its line, and all its details, whole. */
  async copy() {
    const row = this.current.rows[this.current.picked], button = this.aside.querySelector(".copy");
    if (!row || !button) return;
    const lines = [`${row[T].toFixed(6)} s ${row[NAME]} ${row[TEXT]}`, ...row[DETAILS].map(([label, text]) => `${label}: ${label === "hex" ? "\n" + hexdump(text) : text}`)];
    try { await navigator.clipboard.writeText(lines.join("\n")); button.textContent = "copied"; } catch { button.textContent = "not allowed here"; }
  }

  /** What the client, or the test, has written besides. */
  logs() {
    const logs = this.current.data.logs;
    if (logs.length) this.aside.replaceChildren(...logs.flatMap(([label, text]) => [make("h3", {}, label), make("pre", {className: "log"}, text)]));
  }

  /** Links to rows. */
  links(numbers) {
    const run = this.current;
    return numbers.split(" ").map(Number).filter(at => run.rows[at]).flatMap(at => [
      make("button", {className: "row-link", onclick: () => this.pick(run, at)}, `${run.rows[at][T].toFixed(4)} ${run.rows[at][NAME]}`), " "]);
  }

  soFar(run) {
    const {sums, given, open, unconfirmed, unacked} = run.upTo(run.picked), parts = [];
    const columns = run.data.is_of_the_wire ? ["on the wire"] : ["at the client", "at the broker"];
    if (sums.size) parts.push(make("table", {className: "sums"},
      make("tr", {}, make("th", {}, ""), ...columns.map(name => make("th", {}, name))),
      ...Object.keys(WORDS).filter(role => sums.has(role)).map(role => make("tr", {}, make("td", {}, WORDS[role]),
        ...sums.get(role).slice(0, columns.length).map((n, at, both) => make("td", {className: both.length < 2 || both[0] === both[1] ? "" : "unlike"}, String(n)))))));
    if (sums.has("deliver") && run.data.lanes.some(lane => lane.kind === "subscription"))
      parts.push(make("p", {className: "given"}, `handed to the application: ${given}`));
    const list = (text, keys) => { if (keys.length) parts.push(make("p", {}, `${text}: ${keys.slice(0, KEYS_SHOWN).join(", ")}${keys.length > KEYS_SHOWN ? ` and ${keys.length - KEYS_SHOWN} more` : ""}`)); };
    list("published, and no answer yet", unconfirmed);
    list("delivered, and not acknowledged yet", unacked);
    if (parts.length || open) parts.unshift(make("h4", {}, "Up to here"), make("p", {}, `connections open: ${open}`));
    return parts;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === this.words) { if (event.key === "Escape") { this.words.value = ""; this.search(); this.current.list.focus(); } return; }
    const page = Math.max(1, Math.floor(this.current.list.clientHeight / HEIGHT) - 2), run = this.current;
    const acts = {ArrowDown: () => this.move(1), j: () => this.move(1), ArrowUp: () => this.move(-1), k: () => this.move(-1),
      PageDown: () => this.move(page), PageUp: () => this.move(-page), Home: () => this.move(-run.visible.length), End: () => this.move(run.visible.length),
      "/": () => this.words.focus(), "?": () => { run.picked = -1; run.draw(true); this.describe(); }, n: () => this.step(this.hits(), 1), N: () => this.step(this.hits(), -1),
      m: () => this.step(run.marks, 1), M: () => this.step(run.marks, -1), f: () => { run.follow(); this.tell(); }, c: () => this.copy(), l: () => this.logs(),
      "+": () => run.zoom(0.5), "=": () => run.zoom(0.5), "-": () => run.zoom(2),
      Escape: () => { run.linked = new Set(); this.words.value = ""; this.search(); }};
    if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
  }
}

const packed = [...document.querySelectorAll("script.data")];
Promise.all(packed.map(each => unpacked(each.textContent))).then(documents => {
  const difference = packed[0].dataset.difference;
  const viewer = new Viewer(documents, difference ? difference.split(" ").map(Number) : null);
  return Promise.all([...document.querySelectorAll("script.facts")].map(each => unpacked(each.textContent))).then(facts => {
    facts.forEach((known, at) => { viewer.runs[at].facts = known; });
    viewer.describe();
    document.body.dataset.facts = "yes";
  });
}).catch(error => document.body.append(make("p", {}, `This page cannot be shown: ${error}`)));
