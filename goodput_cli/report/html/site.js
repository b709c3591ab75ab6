// Sorting and filtering of the table of runs. The address contains the choices, so that they survive a reload and going
// back. The table is complete without this script. Text is only read, and the address is only compared.
"use strict";
(() => {
  const table = document.getElementById("every-run");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.dataset.key);
  const form = document.getElementById("filters");
  const order = document.getElementById("order"); // cards on narrow screens have no headings to click
  const shown = document.getElementById("shown");
  const unfold = document.getElementById("all-every-run");
  const printed = document.getElementById("filtered");
  const fields = Object.fromEntries([...form.querySelectorAll("[data-filter]")].map((one) => [one.dataset.filter, one]));
  const lengths = { d: 86400, h: 3600, min: 60, s: 1, ms: 0.001 };
  let sorted = "";

  function text(row, name) {
    const place = names.indexOf(name);
    return place < 0 || !row.cells[place] ? "" : row.cells[place].textContent.trim();
  }

  function number(said) {
    const parts = [...said.matchAll(/([\d.]+) (d|h|min|s|ms)\b/g)];
    if (parts.length) return parts.reduce((sum, [, count, unit]) => sum + count * lengths[unit], 0);
    return parseFloat(said.replaceAll(/[\s%,<>]/g, ""));
  }

  // Compare numbers and durations by size and words alphabetically. Unrecorded values come last in both directions.
  function sort(name, downward) {
    const column = names.indexOf(name);
    if (column < 0) return;
    const numeric = heads[column].classList.contains("number");
    rows.sort((one, other) => {
      const [a, b] = [text(one, name), text(other, name)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const found = numeric ? number(a) - number(b) : a.localeCompare(b, "en");
      return downward ? -found : found;
    });
    body.append(...rows);
    heads.forEach((head, place) => {
      head.setAttribute("aria-sort", place === column ? (downward ? "descending" : "ascending") : "none");
    });
    order.value = name;
    sorted = downward ? `-${name}` : name;
  }

  // Return true if a row matches the choices. Rows contain weeks and kinds as indexes of the choices.
  const among = (row, name, key) => (row.dataset[key] ?? "").split(" ").includes(String(fields[name].selectedIndex));
  const listed = (row, name) => text(row, name).split(", ");

  const fits = {
    q: (row, value) => value.toLowerCase().split(/\s+/).every((word) => row.textContent.toLowerCase().includes(word)),
    team: (row, value) => text(row, "team") === value,
    lost: (row, value) => text(row, "lost") === value,
    cause: (row, value) => listed(row, "cause").includes(value),
    kind: (row) => among(row, "kind", "k"),
    week: (row) => among(row, "week", "w"),
    from: (row, value) => text(row, "start") >= value,
    to: (row, value) => text(row, "start").slice(0, 10) <= value,
    goodput: (row, value) => number(text(row, "goodput")) < Number(value),
  };

  function narrow() {
    const asked = Object.entries(fields).filter(([, one]) => one.value.trim() !== "");
    let count = 0;
    for (const row of rows) {
      row.hidden = !asked.every(([name, one]) => fits[name](row, one.value.trim()));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = asked.length ? `${count} of ${rows.length}` : `${rows.length} in all`;
    const words = asked.map(([name, one]) => `${name} ${one.value.trim()}`).join(", ");
    if (unfold && asked.length) unfold.checked = true; // matching rows may be among the folded ones
    printed.textContent = asked.length ? `${count} of ${rows.length} runs: ${words}` : "";
  }

  function address() {
    const said = Object.entries(fields)
      .filter(([, one]) => one.value.trim() !== "")
      .map(([name, one]) => `${name}${name === "goodput" ? "<" : "="}${encodeURIComponent(one.value.trim())}`);
    if (sorted) said.push(`sort=${encodeURIComponent(sorted)}`);
    return said.length ? `#${said.join("&")}` : " ";
  }

  // Read choices from `#team=vision&goodput<70&sort=-lost_h`. Unknown parts and anchors are ignored.
  function read() {
    const hash = location.hash.slice(1).replaceAll(/%3C/gi, "<");
    if (hash !== "" && !/[=<]/.test(hash)) return;
    const said = {};
    for (const part of hash.split("&")) {
      const found = /^([a-z]+)[=<](.*)$/.exec(part);
      if (!found) continue;
      try {
        said[found[1]] = decodeURIComponent(found[2]);
      } catch {
        continue;
      }
    }
    for (const [name, one] of Object.entries(fields)) {
      one.value = said[name] ?? "";
      if (one.selectedIndex === -1) one.value = ""; // the choice does not exist
    }
    const wanted = said.sort ?? "";
    if (wanted) sort(wanted.replace(/^-/, ""), wanted.startsWith("-"));
    narrow();
  }

  function keep(push) {
    narrow();
    const to = address();
    if (to.trim() === location.hash) return;
    try {
      history[push ? "pushState" : "replaceState"](null, "", to === " " ? location.pathname + location.search : to);
    } catch {
      if (to !== " ") location.hash = to; // some browsers keep no history states for local files
    }
  }

  // Fill the choices of a filter. A filter without choices is hidden.
  function choices(name, values) {
    const found = [...new Set(values.filter(Boolean))].sort((a, b) => a.localeCompare(b, "en"));
    fields[name].append(...found.map((one) => new Option(one, one)));
    fields[name].closest("label").hidden = fields[name].options.length < 3;
  }

  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      sort(head.dataset.key, head.getAttribute("aria-sort") === "ascending");
      keep(true);
    });
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    order.append(new Option(button.textContent, head.dataset.key));
  });
  order.selectedIndex = -1;
  order.addEventListener("change", () => (sort(order.value, false), keep(true)));
  for (const name of ["team", "lost"]) choices(name, rows.map((row) => text(row, name)));
  choices("cause", rows.flatMap((row) => listed(row, "cause")));
  for (const name of ["kind", "week"]) choices(name, []);
  for (const one of Object.values(fields)) {
    if (one.tagName !== "SELECT") one.addEventListener("input", () => keep(false)); // no history entry per letter
    one.addEventListener("change", () => keep(true));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => keep(true)));
  window.addEventListener("popstate", read);
  window.addEventListener("hashchange", read);
  // A team, week, cause or kind of loss elsewhere on the page links to its runs: the names in tables are links, and the
  // parts of charts next to such a table can be clicked. The label of a mark begins with its name.
  const known = (name, value) => [...fields[name].options].some((one) => one.value !== "" && one.value === value);
  const hash = (name, value) => `#${name}=${encodeURIComponent(value)}`;
  const toRuns = () => document.getElementById("all-runs").scrollIntoView();

  function linked(cell, name) {
    const value = cell.textContent.trim();
    if (!known(name, value)) return;
    const link = document.createElement("a");
    link.href = hash(name, value);
    link.append(...cell.childNodes);
    link.addEventListener("click", toRuns);
    cell.append(link);
  }

  function pressable(mark, name) {
    const said = mark.querySelector("title")?.textContent ?? "";
    const value = said.slice(0, said.lastIndexOf(": "));
    if (!known(name, value)) return;
    mark.classList.add("press");
    mark.addEventListener("click", () => {
      location.hash = hash(name, value);
      toRuns();
    });
  }

  for (const cell of document.querySelectorAll("[data-choose]")) linked(cell, cell.dataset.choose);
  for (const [name, head] of [["team", "team"], ["week", "week"], ["cause", "why"]]) {
    for (const section of document.querySelectorAll("main > section")) {
      const cells = section.querySelectorAll(`tbody th[data-head="${head}"]`);
      for (const cell of cells) linked(cell, name);
      if (cells.length) for (const mark of section.querySelectorAll("figure path")) pressable(mark, name);
    }
  }
  // Unfold a folded part when a link leads to it.
  function open() {
    const id = location.hash.slice(1);
    const part = /[=<&]/.test(id) ? null : document.getElementById(id)?.closest("details");
    if (part) part.open = true;
  }
  window.addEventListener("hashchange", open);
  form.hidden = false;
  read();
  narrow();
  open();
})();
