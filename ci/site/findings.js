// Filters of the index: without a script all is listed.
(() => {
  const form = document.querySelector(".findings-filters"), rows = [...document.querySelectorAll(".findings tbody tr")];
  const choices = [...form.querySelectorAll("select")], words = form.querySelector("input"), count = form.querySelector("output");
  const show = () => {
    const wanted = words.value.toLowerCase();
    rows.forEach((row) => {
      row.hidden = !row.textContent.toLowerCase().includes(wanted) ||
        choices.some((each) => each.value && row.cells[each.dataset.column].textContent !== each.value);
    });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  [...choices, words].forEach((each) => each.addEventListener("input", show));
  form.hidden = false;
  Object.assign(choices[0].style, { maxWidth: "14em" });
  Object.assign(words.style, { border: "1px solid", padding: "0 .4em" });
  Object.assign(form.style, { display: "flex", flexWrap: "wrap", gap: ".5em 1em" });
  show();
})();
