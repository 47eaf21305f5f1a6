"use strict";
// What is packed: JSON, deflated, in base 64.
const inflated = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};

(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Light or dark: the system's choice until the reader makes one.
  const remembered = () => { try { return localStorage.getItem("fakebrokers-theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("fakebrokers-theme", root.dataset.theme); } catch { /* a file from disk may not */ }
  });

  // A scenario's page is packed, with some others, until somebody looks at it.
  const unpacked = new Map();
  const fill = async (page) => {
    const pack = page.parentElement;
    if (!unpacked.has(pack)) unpacked.set(pack, inflated(pack.dataset.packed));
    const texts = await unpacked.get(pack);
    if (!page.firstChild) page.innerHTML = texts[[...pack.children].indexOf(page)];
  };

  // One scenario's page at a time, by the address after the #.
  const show = async () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const page = target && target.classList.contains("page") ? target : null;
    document.body.classList.toggle("on-page", Boolean(page));
    all(".page.current").forEach((other) => other.classList.remove("current"));
    if (page) {
      await fill(page);
      page.classList.add("current");
      scrollTo(0, 0);
    } else if (target) {
      const folded = target.closest("details");
      if (folded) folded.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", show);

  // On paper nothing can be unfolded.
  const opened = [];
  addEventListener("beforeprint", () => all("main details:not([open])").forEach((each) => { each.open = true; opened.push(each); }));
  addEventListener("afterprint", () => opened.splice(0).forEach((each) => { each.open = false; }));
  root.classList.add("scripted");
  show();

  // Filters of the matrix.
  const rows = all(".matrix tbody tr");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const levels = new Set();
  let look = "";
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, all(".id, .title", row).map((cell) => cell.textContent).join(" ").toLowerCase());
    return texts.get(row);
  };
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits = words.every((word) => textOf(row).includes(word))
        && (!look || row.dataset.looks.split(" ").includes(look))
        && (!levels.size || levels.has(row.dataset.level));
      row.hidden = !fits;
      count += fits;
    }
    all("details.protocol").forEach((part) => { part.hidden = !part.querySelector("tbody tr:not([hidden])"); });
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length}`;
  };
  search.addEventListener("input", filter);
  all("#matrix .chip").forEach((chip) => chip.addEventListener("click", () => {
    if (chip.dataset.level) {
      chip.classList.toggle("on") ? levels.add(chip.dataset.level) : levels.delete(chip.dataset.level);
    } else {
      look = chip.dataset.look;
      all("#matrix .chip[data-look]").forEach((other) => other.classList.toggle("on", other === chip));
    }
    filter();
  }));

  // Copy buttons.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a page from disk may have no clipboard
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    await copy(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
})();
