// WordSearch: a search field, matches in context, counts per group, and strips with the positions of matches.

const SEARCH_KEYS = [
  ["/", "Go to the search field"],
  ["↓", "Go from the field to the matches"],
  ["↑ ↓ Home End", "Move through the matches"],
  ["Enter", "Play the match"],
  ["Tab", "Go to the counts; Enter shows one group only"],
  ["Esc", "Show all groups"],
  ["*", "Any letters in a word; alone, any word"],
];
const COUNTED_BY = { transcript_id: "Transcripts", speaker: "Speakers", speaker_name: "Speakers by name", channel: "Channels" };

function renderWordSearch({ model, el, signal }) {
  const root = frame("vf-word-search", model.get("title"));
  const { pane, guard, send } = errorPane(model, { needsKernel: true });
  const found = () => model.get("_found");
  const number = (n) => n.toLocaleString("en-US");
  const plural = (n, what) => `${number(n)} ${what}${n === 1 ? "" : what.endsWith("h") ? "es" : "s"}`;

  const field = h("input", {
    class: "vf-input vf-asked", type: "search", "aria-label": "Word or phrase", autocomplete: "off", spellcheck: "false",
    placeholder: "Word or phrase; * for any letters", oninput: guard(() => put(model, { query: field.value, only: [], limit: 100 })),
  });
  const near = h("input", {
    class: "vf-input vf-near", type: "number", min: "0", step: "1", placeholder: "–",
    title: "Leave empty to find the exact phrase",
    oninput: guard(() => put(model, { slop: Math.max(0, Math.floor(Number(near.value) || 0)) })),
  });
  const least = h("input", {
    class: "vf-input vf-near", type: "number", min: "-1", max: "1", step: "0.05", title: "1 is the same meaning; a lower number shows more sentences",
    onchange: guard(() => put(model, { min_score: Math.min(1, Math.max(-1, Number(least.value) || 0)) })),
  });
  const mode = h(
    "select",
    { class: "vf-input", "aria-label": "Search for", onchange: guard(() => {
      if (mode.value === "meaning") status.textContent = "Searching by meaning; new sentences are encoded first.";
      put(model, { mode: mode.value, only: [] });
    }) },
    h("option", { value: "words" }, "Words"),
    h("option", { value: "meaning" }, "Meaning"),
  );
  const help = keyHelp(SEARCH_KEYS, root);
  const bar = h(
    "div",
    { class: "vf-bar" },
    h("strong", { class: "vf-title" }, model.get("title")),
    field,
    mode,
    h("label", { class: "vf-labelled vf-nearby" }, "any order within", near, "words"),
    h("label", { class: "vf-labelled vf-close" }, "score from", least),
    help.button,
  );
  const status = h("div", { class: "vf-bar vf-status", role: "status" });
  const { lines, show: list } = passageLines("Matches", guard, (row) => send({ do: "match", row }));
  const more = h("button", { type: "button", class: "vf-button vf-more", onclick: guard(() => put(model, { limit: model.get("limit") + 200 })) });
  const by = h("select", { class: "vf-input", onchange: guard(() => put(model, { by: by.value })) });
  for (const name of model.get("_choices")) by.append(h("option", { value: name }, COUNTED_BY[name] ?? name));
  const groups = h("div", {});
  const counts = h("div", { class: "vf-counts", role: "group", "aria-label": "Counts" }, h("label", { class: "vf-labelled" }, "Count by", by), groups);
  const results = h("div", { class: "vf-results" }, h("div", {}, lines, more), counts);
  const place = h("div", { class: "vf-embedded", hidden: true });
  root.append(bar, help.list, status, results, place, pane);
  el.append(root);
  const colour = resolver(root);
  let strips = []; // visible strips, redrawn after a resize or a change of theme

  const drawStrips = eachFrame(guard(() => {
    if (!groups.clientWidth) return; // hidden; drawn when shown
    const [ink, width] = [colour("--vf-accent"), Math.max(1, groups.clientWidth - 8)];
    for (const { canvas, falls, size } of strips) {
      const context = sharp(canvas, width, 14);
      context.fillStyle = ink;
      for (const word of falls) context.fillRect((word / Math.max(1, size)) * (width - 1.5), 1, 1.5, 12);
    }
  }));

  /** True if a search by meaning listed as many sentences as it was asked for, so that there may be more. */
  const byMeaning = (count) => found().mode === "meaning" && count === found().limit;

  function showLines() {
    const now = found();
    const read = Object.fromEntries(["left", "match", "right", "speaker", "name"].map((name) => [name, texts(now[name], now[`${name}_at`])]));
    const [start, score] = [int32(now.start), int32(now.score)];
    const rows = Array.from(start, (ms, n) => {
      const when = ms >= 0 ? clock(ms) : "";
      const who = read.speaker.at(n);
      const [left, match, right, name] = ["left", "match", "right", "name"].map((part) => read[part].at(n));
      return { name, when, who, left, match, right, title: [name, when, who].filter(Boolean).join(" "), ...(score.length ? { more: (score[n] / 100).toFixed(2) } : {}) };
    });
    const none = now.mode === "meaning" ? "No sentence is that close in meaning. A lower score shows more." : "No matches.";
    list(rows, now.query ? none : "Enter a word or phrase.");
    root.classList.toggle("vf-with-columns", rows.length > 0 && score.length > 0);
    const left = (now.of_shown ?? 0) - rows.length;
    more.hidden = left <= 0 && !byMeaning(rows.length);
    more.textContent = left > 0 ? `Show ${number(Math.min(200, left))} more of ${number(left)}` : "Show 200 more";
  }

  function showGroups() {
    const now = found();
    const [name, key] = [texts(now.group, now.group_at), texts(now.key, now.key_at)];
    const [count, size, known] = [int32(now.count), int32(now.size), int32(now.known)];
    const [first, falls, times] = [int32(now.falls_first), int32(now.falls), int32(now.falls_ms)];
    const only = model.get("only");
    const meaning = now.mode === "meaning";
    const rate = (n) => meaning ? count[n] : (size[n] ? (1000 * count[n]) / size[n] : 0);
    const top = Math.max(...Array.from(count, (_, n) => rate(n)), 1e-9);
    strips = [];
    const rows = Array.from(count, (_, n) => {
      const chosen = known[n] === 1 && only[0] === key.at(n);
      const button = h(
        "button",
        {
          type: "button", "data-key": key.at(n), "aria-pressed": String(chosen), disabled: !known[n], title: name.at(n),
          "aria-label": `${known[n] ? name.at(n) : "(unknown)"}: ${plural(count[n], "match")}${meaning ? "" : `, ${rate(n).toFixed(2)} per 1,000 words`}. Show only this group`,
          onclick: guard(() => put(model, { only: chosen ? [] : [key.at(n)] })),
        },
        known[n] ? name.at(n) : "(unknown)",
      );
      const row = h("div", { class: "vf-group", "data-only": String(chosen) }, button, meaning ? h("span", { class: "vf-number", title: "sentences" }, number(count[n])) : h("span", { class: "vf-number", title: "matches · per 1,000 words" }, `${number(count[n])} · ${rate(n).toFixed(2)}`));
      if (first.length) {
        const canvas = h("canvas", { class: "vf-falls", "aria-hidden": "true", title: "Positions in the transcript; click to play the nearest match" });
        const own = falls.subarray(first[n], first[n + 1]);
        const at = times.subarray(first[n], first[n + 1]);
        canvas.addEventListener("click", guard((event) => {
          const box = canvas.getBoundingClientRect();
          const word = ((event.clientX - box.left) / box.width) * size[n];
          const nearest = own.reduce((best, value, i) => (Math.abs(value - word) < Math.abs(own[best] - word) ? i : best), 0);
          send({ do: "fall", transcript_id: key.at(n), start_ms: at[nearest] });
        }));
        strips.push({ canvas, falls: own, size: size[n] });
        row.append(canvas);
      } else {
        const bar = h("i", {});
        bar.style.width = `${(100 * rate(n)) / top}%`;
        row.append(h("div", { class: "vf-share", "aria-hidden": "true" }, bar));
      }
      return row;
    });
    const left = (now.groups ?? 0) - rows.length;
    if (left > 0) rows.push(h("p", { class: "vf-hint" }, `and ${number(left)} more`));
    keepFocus(groups, () => groups.replaceChildren(...rows));
    drawStrips();
  }

  function summary() {
    const now = found();
    if (!now.query) return now.of === undefined ? "" : `${plural(now.words, "word")} in ${plural(now.of, "transcript")}`;
    if (now.of === undefined) return "";
    if (now.mode === "meaning") return `${plural(now.total, "close sentence")} (score from ${now.min_score.toFixed(2)}) in ${number(now.in)} of ${plural(now.of, "transcript")}`;
    return `${plural(now.total, "match")} in ${number(now.in)} of ${plural(now.of, "transcript")} · ${now.words ? ((1000 * now.total) / now.words).toFixed(2) : "0.00"} per 1,000 words`;
  }

  const show = guard(() => {
    if (document.activeElement !== field && field.value !== model.get("query")) field.value = model.get("query");
    const slop = model.get("slop");
    if (document.activeElement !== near) near.value = slop || "";
    if (document.activeElement !== least) least.value = model.get("min_score");
    mode.value = model.get("mode");
    root.classList.toggle("vf-plain", mode.value === "meaning");
    by.value = model.get("by");
    status.textContent = summary();
    results.hidden = !found().query;
    showLines();
    showGroups();
    root.dataset.shown = found().query ?? "";
  });

  root.addEventListener("keydown", guard((event) => {
    if (place.contains(event.target)) return;
    if (event.key === "/" && event.target.tagName !== "INPUT") field.focus();
    else if (event.key === "ArrowDown" && event.target === field) lines.focus();
    else if (event.key === "Escape" && model.get("only").length) put(model, { only: [] });
    else return;
    event.preventDefault();
  }));

  const resized = new ResizeObserver(drawStrips);
  resized.observe(groups);
  onTheme(drawStrips, signal);
  signal.addEventListener("abort", () => resized.disconnect());
  for (const name of ["_found", "query", "mode", "slop", "min_score", "by"]) {
    const listen = name === "_found" ? show : guard(() => sync(name));
    model.on(`change:${name}`, listen);
  }
  /** Shows a change made in another view or by the kernel. */
  function sync(name) {
    const [input, value] = { query: [field, model.get("query")], mode: [mode, model.get("mode")], slop: [near, model.get("slop") || ""], min_score: [least, model.get("min_score")], by: [by, model.get("by")] }[name];
    if (document.activeElement !== input) input.value = value;
  }
  embedPlayer(model, place, signal, guard);
  show();
}

export default () => ({ render: renderWordSearch });
