// TranscriptPlayer: synchronised sound, lanes and text.

const PLAYER_KEYS = [
  ["Space", "Play or pause"],
  ["← →", "Back or forward 5 seconds; with Shift, extend the selection by 1 second"],
  ["↑ ↓", "Previous or next passage; Enter plays it"],
  ["[ ]", "Slower or faster"],
  ["N", "Next word with a low confidence"],
  ["Shift + ↑ ↓", "Louder or quieter"],
  ["K", "Skip silences of more than a second, or not"],
  ["+ − 0", "Zoom in, out, or show everything; Ctrl + wheel zooms, Shift + wheel moves"],
  ["/", "Search; Enter and Shift + Enter go to the next or previous match"],
  ["L", "Loop the selection (drag over the lanes, select text, or Shift + →)"],
  ["E, R", "Correct the passage, rename the speaker"],
  ["Esc", "Clear the selection or the search"],
];
const TURN_KEYS = [
  ["S, T", "In the text: split the turn before the word clicked last, or change its time"],
  ["M", "Merge the turn with the next one"],
  ["< >", "Give the last word to the next turn, or take its first one"],
  ["U, Shift + U", "Undo the last change of text or turns, or redo it"],
];
/** Length in ms of the sound that a peak is of; `player_data.PEAK_MS` in the kernel. */
const PEAK_MS = 20;
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];
const LAYERS = { confidence: "Confidence", chapters: "Chapters", entities: "Entities", safety: "Safety" };

function renderPlayer({ model, el, signal, session }, sound) {
  const columns = model.get("_columns");
  const passages = new PassageWords(columns);
  const speakers = model.get("_speakers");
  const root = frame("vf-player", model.get("title"));
  const { pane, say, guard } = errorPane(model);
  const people = () => peopleOf(passages, speakers, model.get("names"), model.get("turn_names"), model.get("_colors"));
  const editable = model.get("_editable");
  const notStored = model.get("_not_stored");
  const reshapable = editable && !notStored;
  const quietly = { capture: false, signal };

  // Controls: playback on the left, search on the right.
  const button = (text, label, act, more = {}) =>
    h("button", { type: "button", class: "vf-button", "aria-label": label, title: label, onclick: guard(act), ...more }, text);
  const play = button(icon("play"), "Play", () => sound.toggle(), { class: "vf-button vf-play" });
  const time = h("span", { class: "vf-status vf-clock" });
  const speed = h("select", { class: "vf-button vf-speed", "aria-label": "Speed" });
  for (const rate of [...new Set([...SPEEDS, model.get("speed")])].sort((a, b) => a - b)) speed.append(h("option", { value: rate }, `${rate}×`));
  speed.addEventListener("change", guard(() => put(model, { speed: Number(speed.value) })));
  const loop = button(icon("loop"), "Loop selection", () => put(model, { loop: !model.get("loop") }));
  loop.append(" Loop");
  const search = h("input", { type: "search", class: "vf-search", placeholder: "Search", "aria-label": "Search the transcript", spellcheck: "false" });
  const found = h("span", { class: "vf-status vf-found", role: "status" });
  const help = keyHelp(reshapable ? [...PLAYER_KEYS, ...TURN_KEYS] : PLAYER_KEYS, root);
  const chips = h("span", { class: "vf-chips", role: "group", "aria-label": "Layers" });
  for (const layer of model.get("_layers")) {
    const chip = button(LAYERS[layer], `Show ${LAYERS[layer].toLowerCase()}`, () => {
      const shown = model.get("layers");
      put(model, { layers: shown.includes(layer) ? shown.filter((other) => other !== layer) : [...shown, layer] });
    });
    chip.dataset.layer = layer;
    chips.append(chip);
  }
  const back = button("−5 s", "Back 5 seconds", () => act.seek(sound.now - 5000));
  const forward = button("+5 s", "Forward 5 seconds", () => act.seek(sound.now + 5000));
  const doubt = button("Uncertain", "Next word with a low confidence", () => nextDoubt());
  doubt.disabled = !passages.confidence.some((sure) => sure < 0.6);
  const skip = button("Skip silence", "Skip silences of more than a second", () => {
    session.skips = !session.skips;
    skip.setAttribute("aria-pressed", String(session.skips));
  }, { "aria-pressed": String(Boolean(session.skips)) });
  const louder = (by) => {
    volume.value = Number(volume.value) + by;
    volume.dispatchEvent(new Event("input"));
  };
  const volume = h("input", { type: "range", class: "vf-volume", min: "0", max: "1", step: "0.05", "aria-label": "Volume", title: "Volume" });
  volume.value = sound.audio.volume;
  volume.addEventListener("input", guard(() => (sound.audio.volume = Number(volume.value))));
  const bar = h("div", { class: "vf-bar" }, back, play, forward, time, volume, speed, skip, loop, doubt, h("span", { class: "vf-finder" }, found, search, help.button));
  const strip = h("canvas", { class: "vf-strip", "aria-hidden": "true" });
  const over = h("canvas", { class: "vf-over", "aria-hidden": "true" });
  const map = h("canvas", { class: "vf-map", "aria-hidden": "true", title: "The whole recording; drag to move the visible part" });
  const stage = h("div", {
    class: "vf-stage", tabindex: "0", role: "slider", "aria-label": "Position in the recording", "aria-valuemin": "0",
  }, strip, over);
  const follow = button("Follow playback ↓", "Follow playback", () => followAgain(), { class: "vf-button vf-follow", hidden: true });
  const spoken = h("div", { class: "vf-hidden", role: "status" });
  const note = h("p", { class: "vf-note", hidden: sound.given }, "No recording. To play one, use TranscriptPlayer(..., audio=\"recording.mp3\").");

  const act = {
    editable, notStored, named: speakers.length > 1 || Boolean(speakers[0]),
    seek: guard((ms) => {
      sound.stopAt = 0;
      sound.seek(ms);
      followAgain(false);
    }),
    play: guard((ms) => {
      act.seek(ms);
      sound.play();
    }),
    select: guard((range) => put(model, { interval: range })),
    rename: guard((p) => editable && (warn(), editing.rename(p))),
    correct: guard((p) => editable && (warn(), editing.correct(p))),
    turns: guard((p) => (reshapable ? Object.values(editing.turns(p)) : [])),
  };
  const kept = h("p", { class: "vf-note vf-not-stored", role: "status", hidden: !session.edited }, notStored);
  const warn = () => {
    session.edited = Boolean(notStored);
    kept.hidden = !notStored;
  };
  const reader = new Reader(passages, model, people(), act, signal);
  const editing = makeEditing(model, reader, passages, speakers, say, session);
  const changes = changeHistory(model, guard, (action, more) => editing.change(Math.max(0, reader.current), action, more), session, () => reader.step(0));
  const title = h("div", { class: "vf-head" }, h("strong", { class: "vf-title" }, model.get("title")), h("span", { class: "vf-space" }), chips, ...(reshapable ? changes.buttons : []));
  root.append(title, bar, help.list, changes.list, stage, map, note, h("div", { class: "vf-under" }, reader.list, follow), kept, pane);
  root.append(spoken);
  if (!passages.count) reader.list.append(h("p", { class: "vf-empty" }, "This transcript has no words."));
  el.append(root);
  const colour = resolver(root);

  // Lanes: the passages of each person. Corrections do not change times.
  const until = Math.max(1, model.get("_until"), sound.length);
  const spans = Array.from({ length: passages.count }, (_, p) => passages.span(p));
  const speakerLanes = () =>
    reader.people.list.map((_, n) => {
      const timed = spans.filter(([from], p) => from >= 0 && reader.people.at[p] === n).sort((a, b) => a[0] - b[0]);
      return new Lane(Int32Array.from(timed, (s) => s[0]), Int32Array.from(timed, (s) => s[1]));
    });
  let lanes = speakerLanes();
  let width = 1;
  let dragged = null;
  let [from, to] = session.view ?? [0, until]; // the visible part, in ms
  const x = (ms) => ((ms - from) / (to - from)) * width;
  const ms = (px) => Math.round(Math.min(until, Math.max(0, from + (px / width) * (to - from))));
  /** Shows `length` ms so that the time `fixed` stays where it is. */
  function zoom(length, fixed) {
    const next = Math.min(until, Math.max(Math.min(until, 2000), length));
    look(fixed - ((fixed - from) / (to - from)) * next, next);
  }
  function look(start, length = to - from) {
    from = Math.min(until - length, Math.max(0, start));
    to = from + length;
    session.view = [from, to];
    redraw();
  }
  const middle = () => (sound.now >= from && sound.now <= to ? sound.now : (from + to) / 2);
  const zoomBy = (factor) => zoom((to - from) * factor, middle());
  /** Returns the loudest peak of each pixel from `begin` to `end`, 0 to 1; null without a waveform. */
  function loudness(begin, end) {
    const peaks = model.get("_peaks");
    if (!peaks?.byteLength) return null;
    const place = (px) => Math.max(0, Math.floor((begin + (px / width) * (end - begin)) / PEAK_MS));
    return Array.from({ length: Math.ceil(width) }, (_, px) => {
      let most = 0;
      for (let i = place(px), last = Math.min(peaks.byteLength, Math.max(place(px) + 1, place(px + 1))); i < last; i++) most = Math.max(most, peaks.getUint8(i));
      return most / 255;
    });
  }
  /** Draws a waveform in the colours of the speakers. */
  function drawWave(context, begin, end, height) {
    const quiet = colour("--vf-line");
    const inks = reader.people.list.map((person) => colour(`--vf-speaker-${person.colour}`));
    for (const [px, loud] of loudness(begin, end).entries()) {
      const now = begin + ((px + 0.5) / width) * (end - begin);
      const word = passages.begun(now);
      context.fillStyle = word >= 0 && now < passages.end[word] + 200 ? inks[reader.people.at[passages.row[word]]] : quiet;
      const half = Math.max(0.5, loud * (height / 2 - 1));
      context.fillRect(px, height / 2 - half, 1, 2 * half);
    }
  }
  const shown = (layer) => model.get("_layers").includes(layer) && model.get("layers").includes(layer);

  const drawStrip = guard(() => {
    if (!stage.clientWidth) return; // hidden; drawn when shown
    width = stage.clientWidth;
    const { chapters, safety } = reader.layers;
    const band = shown("chapters") ? 20 : 0;
    const marks = shown("safety") ? 6 : 0;
    const laneHeight = Math.max(5, Math.min(18, 108 / Math.max(1, lanes.length)));
    const wave = model.get("_peaks")?.byteLength ? 56 : 0;
    const height = 18 + wave + band + lanes.length * laneHeight + marks + 4;
    const context = sharp(strip, width, height);
    context.font = `11px ${getComputedStyle(root).fontFamily}`;
    drawAxis(context, from, to, width, 18, colour("--vf-muted"), colour("--vf-line"));
    context.translate(0, 18);
    if (wave) drawWave(context, from, to, wave);
    context.translate(0, wave);
    if (band) drawBands(context, chapters, from, to, width, band, colour("--vf-ink"), colour("--vf-band"));
    context.translate(0, band + 2);
    for (const [n, lane] of lanes.entries())
      drawLane(context, lane, from, to, width, n * laneHeight + 1, laneHeight - 2, colour(`--vf-speaker-${reader.people.list[n].colour}`));
    context.fillStyle = colour("--vf-bad");
    if (marks) for (let n = 0; n < safety.start.length; n++) context.fillRect(x(safety.start[n]), lanes.length * laneHeight + 1, Math.max(2, x(safety.end[n]) - x(safety.start[n])), 4);
    context.fillStyle = colour("--vf-mark");
    for (const [word] of hits) if (passages.start[word] >= 0) context.fillRect(x(passages.start[word]) - 1, 0, 2, lanes.length * laneHeight);
    map.hidden = to - from >= until;
    if (!map.hidden) {
      const small = sharp(map, width, 22);
      if (wave) drawWave(small, 0, until, 22);
      else for (const [n, lane] of lanes.entries()) drawLane(small, lane, 0, until, width, 2 + (n * 18) / lanes.length, 18 / lanes.length, colour(`--vf-speaker-${reader.people.list[n].colour}`));
      small.strokeStyle = colour("--vf-accent");
      small.lineWidth = 2;
      small.strokeRect((from / until) * width + 1, 1, Math.max(4, ((to - from) / until) * width - 2), 20);
    }
    drawOver();
  });
  const drawOver = guard(() => {
    const height = strip.clientHeight;
    const context = sharp(over, width, height);
    drawOverlay(context, dragged ?? model.get("interval"), sound.now, x, height, colour);
    for (const { at, ms: middle } of boundaries()) {
      const place = Math.round(x(grip?.at === at ? grip.ms : middle));
      context.fillStyle = colour("--vf-ink");
      context.fillRect(place - 0.5, 18, 1, height - 18);
      context.beginPath();
      context.roundRect(place - 3, 18, 6, 16, 3);
      context.fill();
    }
  });
  const boundaries = () => (reshapable && reader.current >= 0 ? boundariesOf(passages, reader.current) : []);
  // Handles of the current turn: the drag of one gives words to the next turn, or takes them from it.
  let grip = null;
  const place = (event) => event.clientX - stage.getBoundingClientRect().left;
  const held = (event) => boundaries().find(({ ms: middle }) => Math.abs(x(middle) - place(event)) <= 5);
  stage.addEventListener("pointerdown", guard((event) => {
    if (event.button || !(grip = held(event) ?? null)) return;
    event.stopImmediatePropagation(); // no selection
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    grip = { ...grip, from: place(event) };
  }));
  stage.addEventListener("pointermove", guard((event) => {
    if (grip) grip.ms = ms(place(event));
    const onEdge = model.get("interval").some((edge) => Math.abs(x(edge) - place(event)) <= 5);
    stage.style.cursor = grip || held(event) || onEdge ? "ew-resize" : "";
    if (grip) drawOver();
  }));
  for (const kind of ["pointerup", "pointercancel"]) stage.addEventListener(kind, guard((event) => {
    const isClick = grip && Math.abs(place(event) - grip.from) <= 4;
    const by = grip && kind === "pointerup" && !isClick ? wordsMoved(passages, grip.at, grip.ms) : 0;
    if (by) editing.change(grip.at - 1, "move", { by, next: passages.turn[grip.at] });
    else if (isClick && kind === "pointerup") act.seek(ms(place(event)));
    if (grip) event.stopImmediatePropagation();
    grip = null;
    drawOver();
  }));
  const redraw = eachFrame(drawStrip);
  stage.addEventListener("wheel", guard((event) => {
    const along = event.shiftKey ? event.deltaY : event.deltaX;
    if (!event.ctrlKey && (!along || to - from >= until)) return; // the page scrolls
    event.preventDefault();
    if (event.ctrlKey) zoom((to - from) * 1.002 ** event.deltaY, ms(event.clientX - stage.getBoundingClientRect().left));
    else look(from + (along / width) * (to - from));
  }), { passive: false, signal });
  const moveTo = guard((px) => look((px / width) * until - (to - from) / 2));
  brush(map, { go: moveTo, drag: (range) => range && moveTo((range[0] + range[1]) / 2), select: () => {} });
  brush(stage, {
    edges: () => model.get("interval").map(x),
    go: guard((px) => act.seek(ms(px))),
    drag: guard((range) => {
      dragged = range && range.map(ms);
      drawOver();
    }),
    select: guard((range) => {
      dragged = null;
      act.select(range.map(ms));
    }),
  });

  // Playback position.
  let following = true;
  let scrolled = 0;
  function followAgain(jump = true) {
    following = true;
    follow.hidden = true;
    const word = passages.begun(sound.now);
    if (word >= 0) reader.show(passages.row[word], !jump);
    tell();
  }
  for (const kind of ["wheel", "touchmove"]) reader.list.addEventListener(kind, () => (scrolled = performance.now()), { passive: true, signal });
  reader.list.addEventListener("scroll", () => {
    if (performance.now() - scrolled > 400 || !sound.playing) return;
    following = false;
    follow.hidden = false;
  }, quietly);

  const tell = guard(() => {
    const now = sound.now;
    const word = passages.begun(now);
    const on = word >= 0 && now < passages.end[word] + 400 ? word : -1;
    if (on !== reader.on) reader.highlight(on);
    if (sound.playing && (now < from || now > to)) look(now - (to - from) * 0.1);
    if (session.skips && sound.playing && on < 0) {
      const next = passages.starts[below(passages.starts, now, true)];
      if (next - now > 1000) sound.place(next - 250);
    }
    if (word >= 0 && reader.atRow(passages.row[word]) && following) reader.show(passages.row[word]);
    const total = Math.max(sound.length, model.get("_until"));
    const text = `${clock(now)} / ${clock(total)}`;
    if (time.firstChild?.data !== text) {
      time.replaceChildren(text, h("span", { class: "vf-left-over", title: "Time left" }, `−${clock(total - now)}`));
      stage.setAttribute("aria-valuemax", Math.round(total / 1000));
      stage.setAttribute("aria-valuenow", Math.round(now / 1000));
      stage.setAttribute("aria-valuetext", `${text}${word >= 0 ? `, ${reader.person(passages.row[word]).name}` : ""}`);
    }
    const action = sound.playing ? "Pause" : "Play";
    if (play.title !== action) {
      play.replaceChildren(icon(action.toLowerCase()));
      play.setAttribute("aria-label", action);
      play.title = action;
    }
    play.disabled = !sound.ready;
    if (sound.fault) say(sound.fault);
    drawOver();
  });
  sound.addEventListener("tell", tell, { signal });
  sound.addEventListener("notice", (event) => {
    say(event.detail);
    sound.audio.addEventListener("playing", () => say(""), { once: true, signal });
  }, { signal });

  // Search.
  let hits = [];
  let hit = -1;
  function find(query) {
    hits = passages.find(query);
    reader.hits.clear();
    for (const [n, [first, last]] of hits.entries()) for (let i = first; i <= last; i++) reader.hits.set(i, n);
    const from = sound.now;
    const next = hits.findIndex(([word]) => passages.start[word] >= from);
    visit(hits.length ? Math.max(0, next) : -1, Boolean(query.trim()));
    redraw();
  }
  function visit(n, hasQuery = true) {
    hit = reader.hit = n;
    reader.again();
    found.textContent = !hasQuery ? "" : hits.length ? `${n + 1} of ${hits.length}` : "No matches";
    if (n >= 0) {
      following = !sound.playing;
      follow.hidden = following;
      reader.show(passages.row[hits[n][0]], false);
    }
  }
  search.addEventListener("input", guard(() => {
    find(search.value);
    put(model, { query: search.value });
  }));
  search.addEventListener("keydown", guard((event) => {
    event.stopPropagation();
    if (event.key === "Enter" && hits.length) visit((hit + (event.shiftKey ? -1 : 1) + hits.length) % hits.length);
    if (event.key === "Enter" && event.ctrlKey && hits.length && passages.start[hits[hit][0]] >= 0) act.seek(passages.start[hits[hit][0]]);
    if (event.key === "Escape") {
      search.value = "";
      search.dispatchEvent(new Event("input"));
      stage.focus();
    }
  }));

  /** Goes to the next word with a low confidence after the current time, or to the first one. */
  function nextDoubt() {
    const doubtful = passages.order.filter((i) => passages.confidence[i] < 0.6);
    const word = doubtful.find((i) => passages.start[i] > sound.now + 1) ?? doubtful[0];
    if (word === undefined) return;
    if (!shown("confidence")) put(model, { layers: [...model.get("layers"), "confidence"] });
    act.seek(passages.start[word]);
    reader.show(passages.row[word], false);
  }

  // Names and corrections.
  const renamed = guard(() => {
    reader.people = people();
    lanes = speakerLanes();
    reader.again();
    redraw();
    tell();
  });
  for (const trait of ["names", "turn_names", "_colors"]) model.on(`change:${trait}`, renamed);
  model.on("change:corrections", guard(() => reader.again()));

  const settings = guard(() => {
    for (const layer of Object.keys(LAYERS)) root.classList.toggle(`vf-show-${layer}`, shown(layer));
    for (const chip of chips.children) chip.setAttribute("aria-pressed", String(shown(chip.dataset.layer)));
    loop.setAttribute("aria-pressed", String(model.get("loop")));
    loop.disabled = model.get("interval").length !== 2;
    speed.value = model.get("speed");
    redraw();
  });
  for (const trait of ["layers", "loop", "interval", "speed", "_peaks"]) model.on(`change:${trait}`, settings);
  model.on("change:query", guard(() => {
    if (search.value !== model.get("query")) find((search.value = model.get("query")));
  }));

  root.addEventListener("keydown", guard((event) => {
    const { target, key } = event;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.tagName === "BUTTON" && (key === " " || key === "Enter")) return;
    const row = () => {
      const had = document.activeElement;
      if (!reader.list.contains(had)) return Math.max(0, reader.current);
      return had.closest(".vf-row")?.passage ?? reader.cursor; // a click has the focus in another row than the keys
    };
    const faster = (by) => {
      const rates = SPEEDS.filter((rate) => (rate - model.get("speed")) * by > 0);
      if (rates.length) put(model, { speed: by > 0 ? rates[0] : rates[rates.length - 1] });
    };
    const go = (by) => {
      const now = Math.round(sound.now);
      const next = Math.min(until, Math.max(0, now + Math.sign(by) * 1000));
      if (event.shiftKey) act.select(extended(model.get("interval"), now, next));
      act.seek(event.shiftKey ? next : now + by);
    };
    const keys = {
      " ": () => sound.toggle(), ArrowLeft: () => go(-5000), ArrowRight: () => go(5000),
      ArrowUp: () => (event.shiftKey ? louder(0.1) : (reader.cursor = row(), reader.step(-1))),
      ArrowDown: () => (event.shiftKey ? louder(-0.1) : (reader.cursor = row(), reader.step(1))),
      k: () => skip.click(),
      Enter: () => {
        const [from] = passages.span(row());
        if (from >= 0) act.seek(from), sound.play();
      },
      n: nextDoubt, "+": () => zoomBy(0.5), "-": () => zoomBy(2), "0": () => zoom(until, 0), "[": () => faster(-1), "]": () => faster(1), "/": () => (search.focus(), search.select()),
      l: () => model.get("interval").length && put(model, { loop: !model.get("loop") }),
      e: () => act.correct(row()), r: () => act.rename(row()),
      Escape: () => put(model, { interval: [], loop: false }),
    };
    // Only from the text: elsewhere, a key of JupyterLab such as M would merge turns.
    if (editable && reader.list.contains(document.activeElement)) for (const [letter, [, change]] of Object.entries(editing.turns(row(), event.shiftKey))) keys[letter] = () => (reshapable ? change?.() : warn());
    const action = keys[key.length === 1 ? key.toLowerCase() : key];
    if (!action) return;
    event.preventDefault();
    action();
  }));

  const sizes = new ResizeObserver(redraw);
  sizes.observe(stage);
  onTheme(redraw, signal);
  signal.addEventListener("abort", () => sizes.disconnect());
  search.value = model.get("query");
  settings();
  reader.start();
  if (search.value) find(search.value);
  tell();
  root.dataset.ready = "true";
  return reader;
}

/** Returns the model with listeners that are removed when the signal aborts. */
const listening = (model, signal) => new Proxy(model, {
  get(_, name) {
    const value = model[name];
    if (name !== "on") return typeof value === "function" ? value.bind(model) : value;
    return (event, listener) => {
      model.on(event, listener);
      signal.addEventListener("abort", () => model.off(event, listener));
    };
  },
});

/** Draws the player, and again when the kernel sends other words, with the same place and focus. */
function drawPlayer(context, sound) {
  const { model, el, signal } = context;
  let drawn = null;
  let reader = null;
  // `edited` is true from the first edit on that no corpus stores; `changes` are those that a corpus stores.
  const session = { edited: false, changes: [] };
  const onMessage = (message) => message.do === "changes" && (session.changes = message.rows);
  model.on("msg:custom", onMessage);
  const draw = () => {
    const before = reader;
    const top = before?.list.scrollTop;
    const had = el.contains(document.activeElement) ? document.activeElement : null;
    const row = had?.closest(".vf-row");
    const key = had?.closest("[data-back]")?.dataset.back || had?.dataset.key;
    const same = row ? key && `[data-key="${key}"]` : had?.ariaLabel ? `[aria-label="${CSS.escape(had.ariaLabel)}"]` : key && `[data-key="${CSS.escape(key)}"]`;
    drawn?.abort();
    el.querySelector(":scope > .vf-player")?.remove();
    drawn = new AbortController();
    reader = renderPlayer({ ...context, model: listening(model, drawn.signal), signal: drawn.signal, session }, sound);
    if (!before) return;
    reader.list.scrollTop = top;
    if (!reader.rows.length) return;
    const at = row ? row.passage : before.cursor;
    const p = reader.passages.turn.indexOf(before.passages.turn[at]);
    reader.cursor = p < 0 ? Math.min(at, reader.rows.length - 1) : p;
    if (!had) return;
    // The focus stays on the control; if that is gone or disabled, it goes to the turn.
    const find = (part) => same && part.querySelector(`${same}:not([hidden], :disabled)`);
    const control = !row && find(el);
    if (control) return control.focus({ preventScroll: true });
    reader.place(reader.cursor);
    const now = reader.rows[reader.cursor];
    ((row && find(now)) || now).focus({ preventScroll: true });
  };
  draw();
  model.on("change:_columns", draw);
  if (model.get("_editable") && !kernelGone(model)) model.send({ do: "changes" });
  signal.addEventListener("abort", () => {
    drawn.abort();
    model.off("change:_columns", draw);
    model.off("msg:custom", onMessage);
  });
}

export default () => {
  let sound;
  return {
    initialize({ model, signal }) {
      sound = new Sound(model, signal);
    },
    render: (context) => drawPlayer(context, sound),
  };
};
