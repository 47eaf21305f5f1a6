// Tables whose rows are packed. They are drawn as far as somebody reads; all text goes in as text.
(() => {
  const MOST = 300;  // rows drawn at once
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const link = (anchor, text) => anchor ? make("a", { className: "link", href: `#${anchor}` }, text) : text;
  const press = (chip, on) => {
    chip.classList.toggle("on", on);
    chip.setAttribute("aria-pressed", on);
  };
  const wordsOf = (table) => table.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text, words) => words.every((word) => text.includes(word));

  // What can be pressed: one of several (`only`), or each for itself.
  const choose = (table, selector, only, changed) => {
    const chips = [...table.querySelectorAll(selector)];
    for (const chip of chips) chip.addEventListener("click", () => {
      if (only) chips.forEach((other) => press(other, other === chip));
      else press(chip, !chip.classList.contains("on"));
      changed();
    });
    return () => chips.filter((chip) => chip.classList.contains("on"));
  };
  const draw = (table, rows, total, what) => {
    table.querySelector("tbody").replaceChildren(...rows.slice(0, MOST).flatMap((row) => row()));
    const more = rows.length > MOST ? `, the first ${MOST} shown: filter to see others` : "";
    table.querySelector("output").textContent = rows.length < total || more ? `${rows.length} of ${total} ${what}${more}` : "";
  };

  // Since the baseline: a row for each change.
  const comparison = (table, found) => {
    const line = ([change, client, versions, scenario, anchor, anomaly, before, now, failed, runs]) => () => [make("tr", {},
      make("td", {}, make("span", { className: `pill ${looks[change] || ""}` }, change)),
      make("td", {}, `${client} ${versions}`),
      make("td", {}, link(anchor, scenario)),
      make("td", {}, anomaly || "verdict"),
      make("td", {}, anomaly ? "" : before === now ? now : `${before} → ${now}`),
      make("td", {}, runs ? `${failed} of ${runs}` : ""))];
    const looks = { regressed: "fail", vanished: "fail", failed: "fail", fails: "fail", intermittent: "unsure", "not judged": "unsure", fixed: "pass", "less strict": "loose" };
    const rows = found.map((row) => [row, [row[1], row[2], row[3], row[5]].join(" ").toLowerCase(), line(row)]);
    const pressed = choose(table, ".chip", false, () => show());
    const show = () => {
      const words = wordsOf(table), changes = new Set(pressed().map((chip) => chip.dataset.change));
      const fits = rows.filter(([row, text]) => (!changes.size || changes.has(row[0])) && has(text, words));
      draw(table, fits.map(([, , drawn]) => drawn), rows.length, "rows");
    };
    table.querySelector("input").addEventListener("input", show);
    show();
  };

  // Client and version, scenario, fault.
  const faults = (table, { clients, places, faults: names, names: anomalies, rows }) => {
    const family = (fault) => fault.replace(/\d+/g, "#");
    const said = (fault) => fault || "no fault touched it";
    const isBad = ([, , , , failed, , affected]) => Boolean(failed || affected);
    const kinds = (row) => Object.keys(row[6] || {}).map((name) => anomalies[name]);
    const where = ([, place]) => places[place];
    const open = new Set();
    const body = table.querySelector("tbody");

    const cellOf = (row) => {
      if (!row) return make("td");
      const [, , , runs, failed, unjudged] = row;
      const look = failed ? "fail" : row[6] ? "harness" : unjudged ? "unsure" : "pass";
      const extra = kinds(row).map((name, i) => ` · ${Object.values(row[6])[i]} ${name}`).join("");
      const judged = unjudged === runs ? "?" : `${failed}/${runs}`;
      return make("td", {}, make("span", { className: `pill ${look}` }, `${judged}${extra}`));
    };
    const sumOf = (own) => {
      if (!own.length) return make("td");
      const bad = own.filter(isBad).length;
      return make("td", {}, make("span", { className: `pill ${bad ? "fail" : "pass"}` }, `${bad} of ${own.length}`));
    };
    const scenario = (place) => {
      const [, id, variant, anchor, title] = places[place];
      return [link(anchor, [id, variant].filter(Boolean).join("/")), title ? ` ${title}` : ""];
    };

    // Rows of a group by what they are of: a scenario's by fault, a family of faults' by both.
    const members = (own) => {
      const found = new Map();
      for (const row of own) {
        const key = `${row[1]}/${row[2]}`;
        if (!found.has(key)) found.set(key, []);
        found.get(key).push(row);
      }
      return [...found.values()];
    };
    const cells = (shown, own, cell) => shown.map((client) => cell(own.filter(([who]) => who === client)));
    const memberRow = (shown, by, own, inner) => {
      const [, place, fault] = own[0];
      const first = by === "place" ? [said(names[fault])] : [`${said(names[fault])}: `, ...scenario(place)];
      const head = inner ? first : by === "place" ? [...scenario(place), make("small", { className: "thin" }, ` ${said(names[fault])}`)] : first;
      return make("tr", {}, make("td", { className: inner ? "inner" : "" }, ...head), ...cells(shown, own, ([row]) => cellOf(row)));
    };
    const groupRows = (shown, by, key, own, again) => {
      const inside = members(own);
      if (inside.length === 1) return [memberRow(shown, by, own, false)];
      const isOpen = open.has(key);
      const fold = make("button", { type: "button", className: "fold" }, by === "place" ? `${inside.length} faults` : `${said(key)} (${inside.length})`);
      fold.setAttribute("aria-expanded", isOpen);
      fold.dataset.key = key;
      fold.addEventListener("click", () => {
        if (!open.delete(key)) open.add(key);
        again();
        [...body.querySelectorAll(".fold")].find((other) => other.dataset.key === fold.dataset.key)?.focus();
      });
      const head = by === "place" ? [...scenario(own[0][1]), make("br"), fold] : [fold];
      const first = make("tr", {}, make("td", {}, ...head), ...cells(shown, own, sumOf));
      return isOpen ? [first, ...inside.map((each) => memberRow(shown, by, each, true))] : [first];
    };

    const texts = new Map(rows.map((row) => {
      const [, id, variant, , title] = where(row);
      return [row, [id, variant, title, said(names[row[2]]), ...kinds(row)].join(" ").toLowerCase()];
    }));
    const show = () => {
      const [chip] = protocol(), [{ dataset: { by } }] = grouping();
      const words = wordsOf(table), bad = only().length > 0;
      const spoken = rows.filter((row) => where(row)[0] === chip.dataset.protocol);
      const shown = [...new Set(spoken.map(([client]) => client))].sort((a, b) => clients[a] < clients[b] ? -1 : 1);
      const groups = new Map();
      for (const row of spoken) {
        if ((bad && !isBad(row)) || !has(texts.get(row), words)) continue;
        const key = by === "place" ? row[1] : family(names[row[2]]);
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push(row);
      }
      const heads = [by === "place" ? "Scenario" : "Fault", ...shown.map((client) => clients[client])];
      table.querySelector("thead").replaceChildren(make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
      const fits = [...groups].map(([key, own]) => () => groupRows(shown, by, key, own, show));
      const every = new Set(spoken.map((row) => by === "place" ? row[1] : family(names[row[2]]))).size;
      draw(table, fits, every, by === "place" ? "scenarios" : "kinds of faults");
    };
    const protocol = choose(table, "[data-protocol]", true, show);
    const grouping = choose(table, "[data-by]", true, show);
    const only = choose(table, "[data-bad]", false, show);
    table.querySelector("input").addEventListener("input", show);
    show();
  };

  const kinds = { comparison, faults };
  // Drawn once the page is there and has nothing else to do: at once it would only make the page slower to appear. Not
  // later: a browser that prints does not wait for what is still to be unpacked.
  const waiting = new Set(document.querySelectorAll(".packed-table"));
  const drawn = (table) => {
    if (waiting.delete(table)) inflated(table.dataset.content).then((document) => kinds[table.dataset.kind](table, document));
  };
  const all = () => [...waiting].forEach(drawn);
  const later = window.requestIdleCallback || ((act) => setTimeout(act, 200));
  addEventListener("load", () => later(all, { timeout: 1000 }));
  addEventListener("beforeprint", all);
  addEventListener("keydown", ({ key, ctrlKey, metaKey }) => { if (key === "p" && (ctrlKey || metaKey)) all(); });  // earlier
})();
