// Lanes of marks: zoom and pan; a click sets the time and plays the mark, a drag selects.

const CHART_KEYS = [
  ["← →", "Move the cursor"],
  ["Shift + ← →", "Extend the selection"],
  ["+ −", "Zoom at the cursor"],
  ["Page ↑ ↓", "Pan by one view"],
  ["Home End", "Go to the start or end"],
  ["0", "Show all"],
  ["Enter", "Play the mark at the cursor"],
  ["Esc", "Clear the selection"],
  ["Ctrl + wheel", "Zoom at the pointer; Shift + wheel pans"],
];

function renderLaneChart({ model, el, signal }) {
  const columns = model.get("_columns");
  const speakers = model.get("_speakers") ?? [];
  const axisOf = model.get("_axis").step ? model.get("_axis") : null;
  const parts = model.get("_parts");
  const strokes = model.get("_strokes"); // marks are points, not spans
  const each = Math.max(1, parts.length); // lanes that share a name
  /** Label of a position on the axis. */
  const label = (t, digits = 1) => (axisOf ? String(Number((axisOf.low + axisOf.step * t).toPrecision(3))) : clock(t, digits));
  const own = (given, label) => (Object.hasOwn(given, label) ? given[label] : label); // a label may be called "constructor"
  const named = () => model.get("_names").map((name, n) => (speakers[n] ? own(model.get("names"), speakers[n]) : name));
  let names = named();
  const [first, places] = [int32(columns.first), int32(columns.row)];
  const lanes = makeLanes(int32(columns.start), int32(columns.end), first);
  const words = texts(columns.text, columns.offsets);
  const bands = bandsOf(columns, "band");
  const until = Math.max(1, model.get("_until"));
  const absent = model.get("_absent");
  const count = first.length ? first[first.length - 1] : 0;
  const rowHeight = Math.max(6 * each, names.length <= 12 ? 28 : names.length <= 30 ? 20 : 15);
  const laneHeight = (rowHeight - 6) / each;
  const top = (n) => Math.floor(n / each) * rowHeight + 3 + (n % each) * laneHeight;
  /** Lane of a vertical position. */
  const laneAt = (y) => Math.floor(y / rowHeight) * each + Math.min(each - 1, Math.max(0, Math.floor(((y % rowHeight) - 3) / laneHeight)));
  const title = model.get("title") || "Timeline";

  const root = frame("vf-timeline", title);
  const { pane, guard, send } = errorPane(model);
  const status = h("span", { class: "vf-status", role: "status" });
  const button = (text, label, act) =>
    h("button", { type: "button", class: "vf-button", "aria-label": label, title: label, onclick: guard(act) }, text);
  const help = keyHelp(CHART_KEYS, root);
  const clear = button(icon("close"), "Clear selection", () => select(null));
  clear.hidden = true;
  const bar = h(
    "div",
    { class: "vf-bar" },
    h("strong", { class: "vf-title" }, title),
    status,
    h("span", { class: "vf-space" }),
    clear,
    button("−", "Zoom out", () => zoom(2)),
    button("+", "Zoom in", () => zoom(0.5)),
    button("All", "Show all", () => look([0, until])),
    help.button,
  );
  const axis = h("canvas", { class: "vf-axis", "aria-hidden": "true" });
  const drawn = h("canvas", { class: "vf-lanes", "aria-hidden": "true" });
  const over = h("canvas", { class: "vf-over", "aria-hidden": "true" });
  const overview = h("canvas", { class: "vf-overview", "aria-hidden": "true" });
  const labels = h("div", { class: "vf-labels" });
  for (const [n, name] of names.entries()) {
    const row = h("div", { class: "vf-label", title: name }, h("i", { class: "vf-dot", hidden: each > 1 || Boolean(axisOf) }), h("span", {}, name));
    row.style.height = `${rowHeight}px`;
    row.firstChild.style.background = `var(--vf-speaker-${model.get("_colors")[n]})`;
    labels.append(row);
  }
  const stage = h("div", { class: "vf-stage" }, drawn, over);
  const body = h("div", { class: "vf-body" }, labels, stage);
  const tip = h("div", { class: "vf-tip", hidden: true, "aria-hidden": "true" });
  const legend = h("div", { class: "vf-legend", hidden: !parts.length && !axisOf && !absent.length }, ...parts.map((part, n) => {
    const dot = h("i", { class: "vf-dot" });
    dot.style.background = `var(--vf-speaker-${model.get("_colors")[n]})`;
    return h("span", {}, dot, part);
  }), axisOf?.label ?? "", absent.length ? h("span", {}, `${absent.join(", ")}: no occurrence`) : "");
  const place = h("div", { class: "vf-embedded", hidden: true });
  const plot = h(
    "div",
    {
      class: "vf-plot",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "timeline",
      "aria-label": `${count} marks on ${names.length} lanes, ${label(0, 0)} to ${label(until, 0)}. Arrow keys move, plus and minus zoom.`,
    },
    axis,
    body,
    overview,
    tip,
  );
  root.append(bar, help.list, legend, plot, place, pane);
  if (!count && (!absent.length || !model.get("_until"))) plot.replaceChildren(h("p", { class: "vf-empty" }, `Nothing to show: no ${axisOf ? "row has a value" : strokes ? "occurrence has a time" : "row has valid times"}.`));
  el.append(root);
  const colour = resolver(root);

  // Visible span, and the selection during a drag.
  let width = 1;
  let drag = null;
  const view = () => {
    const [from, to] = model.get("view").length === 2 ? model.get("view") : [0, until];
    return to > from ? [from, to] : [0, until];
  };
  const x = (t) => ((t - view()[0]) / (view()[1] - view()[0])) * width;
  const time = (px) => view()[0] + (px / width) * (view()[1] - view()[0]);
  const inside = (t) => Math.round(Math.min(until, Math.max(0, t)));

  /** Sets the visible span, clamped to the recording and at least 0.1 s long. */
  function look([from, to]) {
    const span = Math.min(until, Math.max(100, to - from));
    const begin = Math.min(until - span, Math.max(0, from));
    put(model, { view: span >= until ? [] : [Math.round(begin), Math.round(begin + span)] });
  }
  function zoom(factor, around = null) {
    const [from, to] = view();
    const now = model.get("time");
    const centre = around ?? (now >= from && now <= to ? now : (from + to) / 2);
    look([centre - (centre - from) * factor, centre + (to - centre) * factor]);
  }
  const pan = (by) => look(view().map((t) => t + by));
  function select(range) {
    put(model, { interval: range ? [inside(Math.min(...range)), inside(Math.max(...range))] : [] });
  }
  function go(t) {
    put(model, { time: inside(t) });
    const [from, to] = view();
    if (t < from || t > to) pan(t - (from + to) / 2);
  }

  const rows = (n) => `${n} ${n === 1 ? "row" : "rows"}`;
  /** Number of rows that overlap the selection: those that start before its end, minus those that end before its start. */
  let ends = null;
  function countRows([from, to]) {
    ends ??= int32(columns.end).sort();
    let begun = 0;
    for (const lane of lanes) begun += below(lane.start, to);
    return Math.max(0, begun - below(ends, from, true));
  }

  const drawAll = guard(() => {
    if (!stage.clientWidth) return; // hidden; drawn when shown
    width = stage.getBoundingClientRect().width;
    const [from, to] = view();
    const [ink, line] = [colour("--vf-muted"), colour("--vf-line")];
    const band = bands.start.length ? 20 : 0;
    const strip = sharp(axis, width, 24 + band);
    strip.font = getComputedStyle(root).font;
    drawAxis(strip, from, to, width, 24, ink, line, axisOf ? (...given) => valueTicks(axisOf, ...given) : timeTicks);
    strip.translate(0, 24);
    if (band) drawBands(strip, bands, from, to, width, band, colour("--vf-ink"), colour("--vf-band"));

    const context = sharp(drawn, width, names.length * rowHeight);
    context.font = `12px ${getComputedStyle(root).fontFamily}`;
    context.fillStyle = colour("--vf-stripe");
    for (let n = 1; n < names.length; n += 2) context.fillRect(0, n * rowHeight, width, rowHeight);
    for (const [n, lane] of lanes.entries()) {
      const speaker = model.get("_colors")[n];
      const ink = colour(`--vf-on-speaker-${speaker}`);
      const inBar = words.length && ((c, i, ...place) => barText(c, words.at(first[n] + i), ...place, ink));
      drawLane(context, lane, from, to, width, top(n), laneHeight, colour(`--vf-speaker-${speaker}`), inBar, strokes ? 2 : 1);
      const mean = model.get("_means")[n];
      if (mean) drawMean(context, mean, x, top(n) + laneHeight / 2, colour("--vf-ink"), colour("--vf-paper"));
    }
    const small = sharp(overview, width, 18);
    small.fillStyle = colour("--vf-stripe");
    small.fillRect(0, 0, width, 18);
    for (const [n, lane] of lanes.entries()) {
      const height = 14 / lanes.length;
      drawLane(small, lane, 0, until, width, 2 + n * height, Math.max(1, height - 0.5), colour(`--vf-speaker-${model.get("_colors")[n]}`));
    }
    small.strokeStyle = colour("--vf-accent");
    small.lineWidth = 2;
    small.strokeRect((from / until) * width + 1, 1, Math.max(4, ((to - from) / until) * width - 2), 16);
    drawOver();
  });

  /** Draws selection and cursor on a separate canvas, because they change more often than the lanes. */
  const drawOver = guard(() => {
    const height = names.length * rowHeight;
    const context = sharp(over, width, height);
    const range = drag ?? model.get("interval");
    drawOverlay(context, range, model.get("time") || (axisOf ? -until : 0), x, height, colour);
    clear.hidden = range.length !== 2;
    status.textContent =
      range.length === 2
        ? `${label(range[0])} – ${label(range[1])} · ${rows(countRows(range))}`
        : axisOf ? "" : clock(model.get("time"), 1);
  });
  const redraw = eachFrame(drawAll);
  const move = eachFrame(drawOver);

  const at = (event) => event.clientX - stage.getBoundingClientRect().left;
  const brushing = brush(stage, {
    go: guard((px, event) => {
      plot.focus({ preventScroll: true });
      const [n, i] = markAt(event);
      go(i >= 0 && model.get("_plays") ? lanes[n].start[i] : time(px));
      if (i >= 0) play(n, i);
    }),
    drag: guard((range) => {
      drag = range && range.map((px) => inside(time(px)));
      move();
    }),
    select: guard((range) => {
      drag = null;
      plot.focus({ preventScroll: true });
      select(range.map(time));
    }),
  });
  stage.addEventListener("pointermove", guard(point));
  stage.addEventListener("pointerleave", () => (tip.hidden = true));
  stage.addEventListener("dblclick", guard((event) => zoom(0.25, time(at(event)))));
  plot.addEventListener("wheel", guard((event) => {
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(2 ** (Math.max(-200, Math.min(200, event.deltaY)) / 200), time(at(event)));
    else if (across) pan((across / width) * (view()[1] - view()[0]));
    else return; // a plain wheel scrolls the notebook
    event.preventDefault();
  }), { passive: false });

  /** Lane and index of the mark under the pointer; the index is -1 if there is none. */
  function markAt(event) {
    const n = laneAt(event.clientY - stage.getBoundingClientRect().top);
    const [from, to] = view();
    return [n, lanes[n]?.near(time(at(event)), (5 * (to - from)) / width) ?? -1];
  }
  /** Plays a mark, if there is something to play from. */
  function play(n, i) {
    if (model.get("_plays")) send({ do: "row", row: places[first[n] + i] });
  }
  /** Plays the mark at the cursor, that of the upper lane if there are several. */
  function playThere() {
    const found = lanes.map((lane) => lane.near(model.get("time"), 2));
    const n = found.findIndex((i) => i >= 0);
    if (n >= 0) play(n, found[n]);
  }

  /** Shows a tooltip for the mark under the pointer. */
  function point(event) {
    const [n, i] = markAt(event);
    tip.hidden = i < 0 || brushing();
    stage.classList.toggle("vf-playable", i >= 0 && model.get("_plays"));
    if (tip.hidden) return;
    const lane = lanes[n];
    const when = axisOf ? label(lane.start[i]) : `${clock(lane.start[i], 1)} – ${clock(lane.end[i], 1)}`;
    tip.textContent = [names[Math.floor(n / each)], parts[n % each], when].filter(Boolean).join(" · ");
    if (words.length) tip.append(h("span", {}, words.at(first[n] + i).slice(0, 300)));
    const box = plot.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(box.width - tip.offsetWidth - 4, event.clientX - box.left + 12))}px`;
    tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  let grabbed = false;
  const centre = (event) => {
    const [from, to] = view();
    const t = ((event.clientX - overview.getBoundingClientRect().left) / width) * until;
    look([t - (to - from) / 2, t + (to - from) / 2]);
  };
  overview.addEventListener("pointerdown", guard((event) => {
    grabbed = true;
    overview.setPointerCapture(event.pointerId);
    centre(event);
  }));
  overview.addEventListener("pointermove", guard((event) => grabbed && centre(event)));
  overview.addEventListener("pointerup", () => (grabbed = false));

  plot.addEventListener("keydown", guard((event) => {
    const [from, to] = view();
    const now = model.get("time");
    const step = ((to - from) / 50) * (event.key === "ArrowLeft" ? -1 : 1);
    const range = model.get("interval");
    const act = {
      ArrowLeft: () => (event.shiftKey ? extend(now, inside(now + step), range) : go(now + step)),
      ArrowRight: () => (event.shiftKey ? extend(now, inside(now + step), range) : go(now + step)),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "−": () => zoom(2),
      PageUp: () => pan(from - to), PageDown: () => pan(to - from),
      Enter: playThere, Home: () => go(0), End: () => go(until), 0: () => look([0, until]), Escape: () => select(null),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    act();
    speak();
    event.preventDefault();
  }));
  /** Moves the end of the selection at the cursor. */
  function extend(now, next, range) {
    select(extended(range, now, next));
    go(next);
  }
  /** Describes the cursor position and its speakers for screen readers. */
  function speak() {
    const now = model.get("time");
    const who = names.filter((_, n) => lanes.slice(n * each, n * each + each).some((lane) => lane.near(now, 0) >= 0)).join(", ");
    plot.setAttribute("aria-description", `${label(now)}: ${who || (axisOf || each > 1 ? "nothing" : "silence")}`);
  }

  const changed = new ResizeObserver(redraw);
  changed.observe(stage);
  onTheme(redraw, signal);
  for (const name of ["view", "_columns"]) model.on(`change:${name}`, redraw);
  for (const name of ["time", "interval"]) model.on(`change:${name}`, move);
  model.on("change:names", () => {
    names = named();
    for (const [n, label] of [...labels.children].entries()) label.title = label.lastChild.textContent = names[n];
  });
  signal.addEventListener("abort", () => changed.disconnect());
  embedPlayer(model, place, signal, guard);
  if (count) drawAll();
}

export default () => ({ render: renderLaneChart });
