// What a script adds to the table of runs: it sorts and filters. Without it the table is complete. Text is only read.
"use strict";
(() => {
  const table = document.getElementById("every-run");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const heads = [...table.tHead.rows[0].cells];

  const lengths = { d: 86400, h: 3600, min: 60, s: 1, ms: 0.001 };

  // Numbers by size, lengths of time too, words by the alphabet, and what is not recorded last in both directions.
  function sort(column, downward) {
    const numeric = heads[column].classList.contains("number");
    const value = ({ cells: { [column]: cell } }) => (numeric ? number(cell.textContent) : cell.textContent.trim());
    rows.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = numeric ? Number(a) - Number(b) : a.localeCompare(b, "en");
      return downward ? -order : order;
    });
    body.append(...rows);
    heads.forEach((head, place) => {
      head.setAttribute("aria-sort", place === column ? (downward ? "descending" : "ascending") : "none");
    });
  }

  function number(text) {
    const parts = [...text.matchAll(/([\d.]+) (d|h|min|s|ms)\b/g)];
    return parts.length ? parts.reduce((sum, [, count, unit]) => sum + count * lengths[unit], 0) : text.replaceAll(/[\s%,]/g, "");
  }

  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = words.length ? `${count} of ${rows.length}` : `${rows.length} in all`;
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(column, head.getAttribute("aria-sort") === "ascending"));
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
  });
  const order = document.getElementById("order"); // where cards stand in the place of rows there are no heads to press
  heads.forEach((head, column) => order.append(new Option(head.textContent, column)));
  order.selectedIndex = -1;
  order.addEventListener("change", () => sort(order.selectedIndex, false));
  filter.addEventListener("input", narrow);
  filter.closest("p").hidden = false;
  narrow();
})();
