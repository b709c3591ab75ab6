// Interactive charts of a report: redrawn with more points, with zoom and tooltips. The page is complete without them.
// Text is inserted as text only, never as markup.
"use strict";
(() => {
  const STEP = 0.01; // distance that an arrow key moves the cursor, as a share of the shown time
  const NARROW = 620; // below this width (px) lane titles get less space
  const LEAST = 6; // shorter drags (px) are ignored
  const ROOMY = 960; // below this width (px) there is not enough space for the numbers of all disruptions
  const data = JSON.parse(document.getElementById("data").textContent);
  const tables = data.tables;
  const charts = []; // {figure, holder, view, cursor, tip}
  let shown = [data.start, data.end];
  let at = null; // position of the cursor, ms since 1970
  const past = []; // spans shown before, for going back

  function rows(table) {
    const names = Object.keys(table);
    const instants = new Set(["t", "u"]);
    return table[names[0]].map((_, row) => {
      const made = {};
      for (const name of names) made[name] = instants.has(name) ? data.start + table[name][row] : table[name][row];
      return made;
    });
  }

  const datasets = Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, rows(table)]));

  // Return the specification for a width. Plots fill it; on a narrow screen titles get less of it.
  function fitted(spec, width) {
    const narrow = width < NARROW;
    const left = narrow ? 116 : 148;
    const fit = (part) => {
      if (Array.isArray(part)) return part.map(fit);
      if (part === null || typeof part !== "object") return part;
      const made = {};
      for (const [name, value] of Object.entries(part)) made[name] = fit(value);
      if ("minExtent" in made) made.minExtent = made.maxExtent = left;
      if ("labelLimit" in made) made.labelLimit = left - 6;
      if (narrow && "labelFontSize" in made) made.labelFontSize = 11;
      if (narrow && "tickCount" in made) made.tickCount = Math.min(made.tickCount, 5);
      if (narrow && made.direction === "horizontal") made.columns = 2;
      if (made.height) made.width = Math.max(width - left - 14, 120);
      return made;
    };
    const disruptions = datasets.disruptions.map((row) => (width < ROOMY ? { ...row, text: row.few } : row));
    return { ...fit(spec), datasets: { ...datasets, disruptions }, autosize: { type: "pad", contains: "padding" } };
  }

  async function draw(chart) {
    const width = chart.figure.clientWidth;
    const result = await window.vegaEmbed(chart.canvas, fitted(data.charts[chart.name], width), {
      actions: false, ast: true, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: () => {},
      loader: { load: () => Promise.reject(new Error("this page loads nothing")) },
    });
    chart.view?.finalize();
    chart.view = result.view;
    chart.drawnAt = width;
    chart.view.addSignalListener("zoom_t", (_, domain) => {
      if (domain && !alike(domain.map(Number), shown)) show(domain.map(Number));
    });
    if (shown[0] !== data.start || shown[1] !== data.end) await move(chart);
  }

  function move(chart) {
    return chart.view.signal("zoom_t", shown.slice()).runAsync();
  }

  // Return true if two spans of time look the same.
  function alike(one, other) {
    const least = (other[1] - other[0]) * 1e-6;
    return Math.abs(one[0] - other[0]) <= least && Math.abs(one[1] - other[1]) <= least;
  }

  // Show the same time in all charts, once per frame: within the window, and at least a millisecond.
  let asked = null;
  let busy = false;
  function show(wanted) {
    asked = wanted;
    if (!busy) requestAnimationFrame(follow);
    busy = true;
  }

  function go(wanted) {
    past.push(shown.slice());
    show(wanted);
  }

  function back() {
    let wanted = past.pop();
    while (wanted && alike(wanted, shown)) wanted = past.pop();
    show(wanted ?? [data.start, data.end]);
  }

  async function follow() {
    const wanted = asked;
    const length = Math.min(Math.max(wanted[1] - wanted[0], 1), data.end - data.start);
    const start = Math.min(Math.max(wanted[0], data.start), data.end - length);
    shown = [start, start + length];
    for (const chart of charts) {
      await move(chart);
      chart.status.textContent = words();
    }
    place(null);
    if (asked === wanted) busy = false;
    else requestAnimationFrame(follow);
  }

  function words() {
    const whole = shown[0] === data.start && shown[1] === data.end;
    return whole ? "the whole window" : `${clock(shown[0])} to ${clock(shown[1])} UTC`;
  }

  // Return a timestamp as text, to the second if that is precise enough.
  function clock(ms) {
    const fine = shown[1] - shown[0] < 60_000;
    return new Date(fine ? ms : Math.round(ms / 1000) * 1000).toISOString().replace("T", " ").replace(/(\.000)?Z$/, "");
  }

  function passed(ms) {
    const seconds = Math.round(ms / 1000);
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${seconds % 60} s` : `${(ms / 1000).toFixed(1)} s`;
  }

  // Return the last index of a sorted column whose value is not above the given one; -1 if all are.
  function before(column, value) {
    let [low, high] = [0, column.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column[middle] <= value) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  // Return the lines of the tooltip at a time.
  function told(ms) {
    const t = ms - data.start;
    const lines = [`${clock(ms)} UTC, ${passed(t)} after the start`];
    const step = stepAt(t);
    if (step) lines.push(step);
    lines.push(doing(t));
    const cumulative = before(tables.cumulative.t, t);
    if (cumulative >= 0) lines.push(`cumulative goodput ${percent(tables.cumulative.percent[cumulative])}`);
    const taken = before(tables.steps.t, t);
    if (step && taken >= 0) lines.push(stepTime(taken));
    const room = (shown[1] - shown[0]) / 200;
    const near = tables.disruptions.t.findIndex((when) => Math.abs(when - t) <= room);
    if (near >= 0) lines.push(`disruption ${tables.disruptions.number[near]}`);
    return lines.filter(Boolean);
  }

  function stepAt(t) {
    const { t: times, step, line, lost } = tables.curve;
    for (let row = 0; row + 1 < times.length; row++) {
      if (line[row] !== line[row + 1] || times[row] > t || times[row + 1] < t) continue;
      const part = (t - times[row]) / Math.max(times[row + 1] - times[row], 1e-9);
      return `step ${Math.floor(step[row] + part * (step[row + 1] - step[row]))}, ${lost[row] ? "wasted" : "kept"} training`;
    }
    return null;
  }

  function doing(t) {
    const { t: from, u: to, kind } = tables.bands;
    const found = [];
    for (let row = 0; row < from.length; row++) {
      if (from[row] <= t && t < to[row]) found.push(data.categories[kind[row]]);
    }
    return found.join(", ");
  }

  function stepTime(row) {
    const { low, high, count } = tables.steps;
    if (count[row] === 1) return `step time ${seconds(low[row])}`;
    return `step times ${seconds(low[row])} to ${seconds(high[row])} (${count[row]} steps)`;
  }

  const seconds = (value) => `${Number(value.toPrecision(4))} s`;
  const percent = (value) => (value === null ? "unknown" : `${value.toFixed(2)} %`);

  // Return the plot of a chart in the page: its left edge, width and height in px.
  function plot(chart) {
    const svg = chart.canvas.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width; // a printed drawing may be smaller than its view box
    const name = "vconcat" in data.charts[chart.name] ? "concat_0_x" : "x";
    const offset = box.left - chart.holder.getBoundingClientRect().left;
    return {
      left: offset + chart.view.origin()[0] * scale,
      width: chart.view.scale(name).range()[1] * scale,
      height: box.height,
    };
  }

  function place(chart, quiet = true) {
    for (const other of charts) other.cursor.hidden = other.tip.hidden = true;
    if (!chart || at === null) return;
    let x = 0;
    for (const other of [...charts.filter((one) => one !== chart), chart]) { // show the same time in all charts
      const { left, width, height } = plot(other);
      x = left + ((at - shown[0]) / (shown[1] - shown[0])) * width;
      other.cursor.hidden = false;
      other.cursor.style.left = `${x}px`;
      other.cursor.style.height = `${height}px`;
    }
    const lines = told(at);
    chart.tip.hidden = false;
    chart.tip.textContent = lines.join("\n");
    const room = chart.holder.clientWidth - chart.tip.offsetWidth;
    chart.tip.style.left = `${Math.max(Math.min(x + 14, room), 0)}px`;
    if (x + 14 > room) chart.tip.style.left = `${Math.max(x - 14 - chart.tip.offsetWidth, 0)}px`;
    chart.tip.style.top = "1.5rem";
    if (!quiet) chart.spoken.textContent = lines.join("; ");
  }

  // Return the position of a pointer over the holder of a chart (px), and true if it is inside the plot.
  function under(chart, event) {
    const { left, width } = plot(chart);
    const x = event.clientX - chart.holder.getBoundingClientRect().left;
    return { x: Math.min(Math.max(x, left), left + width), inside: x >= left && x <= left + width };
  }

  function instant(chart, x) {
    const { left, width } = plot(chart);
    return shown[0] + ((x - left) / width) * (shown[1] - shown[0]);
  }

  function pointed(chart, event) {
    const { x, inside } = under(chart, event);
    at = inside ? instant(chart, x) : null;
    place(chart);
    if (chart.from === null) return;
    chart.brush.hidden = Math.abs(x - chart.from) < LEAST;
    chart.brush.style.left = `${Math.min(x, chart.from)}px`;
    chart.brush.style.width = `${Math.abs(x - chart.from)}px`;
    chart.brush.style.height = `${plot(chart).height}px`;
  }

  // A drag zooms to the marked time. With Shift, the chart library pans by itself.
  function grasped(chart, event) {
    const { x, inside } = under(chart, event);
    if (event.button !== 0 || !inside) return;
    if (event.shiftKey) past.push(shown.slice());
    else chart.from = x;
  }

  function released(chart, event) {
    if (chart.from === null) return;
    const { x } = under(chart, event);
    const from = chart.from;
    chart.from = null;
    chart.brush.hidden = true;
    if (event.type === "pointerup" && Math.abs(x - from) >= LEAST) {
      go([instant(chart, Math.min(x, from)), instant(chart, Math.max(x, from))]);
    }
  }

  function zoom(factor) {
    const middle = at !== null && at >= shown[0] && at <= shown[1] ? at : (shown[0] + shown[1]) / 2;
    go(shown.map((edge) => middle + (edge - middle) * factor));
  }

  const slide = (part) => go(shown.map((edge) => edge + part * (shown[1] - shown[0])));
  const tools = [
    ["Zoom in", () => zoom(0.5)],
    ["Zoom out", () => zoom(2)],
    ["Earlier", () => slide(-0.5)],
    ["Later", () => slide(0.5)],
    ["Back", back],
    ["Whole window", () => go([data.start, data.end])],
  ];

  function pressed(chart, event) {
    const length = shown[1] - shown[0];
    const middle = at ?? (shown[0] + shown[1]) / 2;
    const moves = { ArrowLeft: middle - STEP * length, ArrowRight: middle + STEP * length, Home: shown[0], End: shown[1] };
    if (event.key in moves) at = Math.min(Math.max(moves[event.key], shown[0]), shown[1]);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") go([data.start, data.end]);
    else if (event.key === "Escape") (at = null), back();
    else return;
    event.preventDefault();
    place(chart, false);
  }

  function made(tag, className, text = "") {
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    return element;
  }

  function toolbar(figure) {
    const bar = made("div", "tools");
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Zoom all charts");
    for (const [name, act] of tools) {
      const button = made("button", "", name);
      button.type = "button";
      button.addEventListener("click", act);
      bar.append(button);
    }
    const status = made("span", "shown", words());
    status.setAttribute("role", "status");
    bar.append(status);
    figure.prepend(bar);
    return status;
  }

  function prepared(figure) {
    const still = figure.querySelector(".still");
    const holder = made("div", "live");
    const canvas = made("div", "canvas");
    canvas.setAttribute("aria-hidden", "true"); // screen readers read the label of the holder
    holder.tabIndex = 0;
    holder.setAttribute("role", "group");
    holder.setAttribute("aria-roledescription", "chart");
    holder.setAttribute("aria-label", `${still.getAttribute("aria-label")} Arrow keys move along it, + and - zoom, Escape goes back.`);
    const chart = { figure, name: figure.dataset.chart, still, holder, canvas, from: null };
    chart.brush = made("div", "brush");
    chart.cursor = made("div", "cursor");
    chart.tip = made("div", "tip");
    chart.spoken = made("p", "unseen");
    chart.spoken.setAttribute("aria-live", "polite");
    chart.tip.setAttribute("aria-hidden", "true");
    chart.cursor.hidden = chart.tip.hidden = chart.brush.hidden = true;
    holder.append(canvas, chart.brush, chart.cursor, chart.tip, chart.spoken);
    holder.addEventListener("pointerdown", (event) => grasped(chart, event));
    for (const type of ["pointerup", "pointercancel"]) window.addEventListener(type, (event) => released(chart, event));
    holder.addEventListener("dblclick", back);
    holder.addEventListener("pointermove", (event) => pointed(chart, event));
    holder.addEventListener("pointerleave", () => { at = null; place(null); });
    holder.addEventListener("keydown", (event) => pressed(chart, event));
    return chart;
  }

  async function start(figure) {
    const chart = prepared(figure);
    chart.still.after(chart.holder);
    try {
      await draw(chart);
    } catch (error) {
      chart.holder.remove(); // the static drawing stays visible
      throw error;
    }
    chart.still.hidden = true;
    chart.status = toolbar(figure);
    charts.push(chart);
  }

  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => {
      if (chart.figure.clientWidth !== chart.drawnAt) draw(chart);
    }), 200);
  });

  // Unfold a folded part when a link leads to it.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    if (target && location.hash) target.scrollIntoView();
  };
  window.addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // Draw one chart at a time, so that the page stays responsive between them.
  async function startAll() {
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      await new Promise((resume) => setTimeout(resume));
      await start(figure);
    }
    document.documentElement.dataset.charts = "drawn"; // tests wait for it
  }
  startAll();
})();
