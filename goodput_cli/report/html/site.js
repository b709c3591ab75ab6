// What a script adds to the table of runs: it sorts and filters, and the address says how, so that it survives a reload
// and a step back. Without it the table is complete. Text is only read; what an address says is only compared.
"use strict";
(() => {
  const table = document.getElementById("every-run");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.dataset.key);
  const form = document.getElementById("filters");
  const order = document.getElementById("order"); // where cards stand in the place of rows there are no heads to press
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
    return parseFloat(said.replaceAll(/[\s%,]/g, ""));
  }

  // Numbers by size, lengths of time too, words by the alphabet, and what is not recorded last in both directions.
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

  const fits = {
    q: (row, value) => value.toLowerCase().split(/\s+/).every((word) => row.textContent.toLowerCase().includes(word)),
    team: (row, value) => text(row, "team") === value,
    lost: (row, value) => text(row, "lost") === value,
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
    if (unfold && asked.length) unfold.checked = true; // what fits may stand below those that are folded
    printed.textContent = asked.length ? `${count} of ${rows.length} runs: ${words}` : "";
  }

  function address() {
    const said = Object.entries(fields)
      .filter(([, one]) => one.value.trim() !== "")
      .map(([name, one]) => `${name}${name === "goodput" ? "<" : "="}${encodeURIComponent(one.value.trim())}`);
    if (sorted) said.push(`sort=${encodeURIComponent(sorted)}`);
    return said.length ? `#${said.join("&")}` : " ";
  }

  // Of `#team=vision&goodput<70&sort=-lost_h`; what it does not know is left aside, and an anchor is none of it.
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
      if (one.value === "" && said[name]) one.value = ""; // no such choice
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
      if (to !== " ") location.hash = to; // from a disk some browsers keep no states
    }
  }

  function choices(select, name) {
    const found = [...new Set(rows.map((row) => text(row, name)).filter(Boolean))].sort((a, b) => a.localeCompare(b, "en"));
    select.append(...found.map((one) => new Option(one, one)));
    select.closest("label").hidden = found.length < 2;
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
  choices(fields.team, "team");
  choices(fields.lost, "lost");
  for (const one of Object.values(fields)) {
    if (one.tagName !== "SELECT") one.addEventListener("input", () => keep(false)); // each letter is no step back
    one.addEventListener("change", () => keep(true));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => keep(true)));
  window.addEventListener("popstate", read);
  window.addEventListener("hashchange", read);
  // A team in a table or a kind of loss leads to its runs.
  for (const cell of document.querySelectorAll("[data-choose]")) {
    const [name, value] = [cell.dataset.choose, cell.textContent.trim()];
    const known = [...fields[name].options].some((one) => one.value === value);
    if (!known) continue;
    const link = document.createElement("a");
    link.href = `#${name}=${encodeURIComponent(value)}`;
    link.append(...cell.childNodes);
    link.addEventListener("click", () => document.getElementById("all-runs").scrollIntoView());
    cell.append(link);
  }
  // A link to a folded part opens it.
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
