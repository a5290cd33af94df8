// The text of a player and its speakers. Every passage has a row; only rows near the visible part are filled, the others keep their height.

class Reader {
  /** `act` has the actions of clicks: seek, select, rename, correct, and those of turns. `people` has the speakers; it changes with names. */
  constructor(passages, model, people, act, signal) {
    Object.assign(this, { passages, model, people, act });
    this.list = h("div", { class: "vf-reader", role: "list", "aria-label": "Transcript", tabindex: "-1" });
    this.rows = [];
    this.filled = new Set();
    this.marked = []; // word elements that are highlighted
    this.current = -1;
    this.chosen = -1; // the word clicked last
    this.cursor = 0;
    this.hits = new Map();
    this.layers = this.readLayers();
    const chapters = this.layers.chapters;
    let chapter = 0;
    for (let p = 0; p < passages.count; p++) {
      const [from] = passages.span(p);
      while (chapter < chapters.start.length && from >= 0 && chapters.start[chapter] <= from + 1)
        this.list.append(this.heading(chapter++));
      const row = h("div", { class: "vf-row", role: "listitem", tabindex: "-1" });
      row.passage = p;
      row.setAttribute("aria-label", this.label(p));
      this.rows.push(row);
      this.list.append(row);
    }
    this.nearby = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting, boundingClientRect } of seen)
        isIntersecting ? this.fill(target) : this.empty(target, boundingClientRect.height);
    }, { root: this.list, rootMargin: "500px 0px" });
    this.sizes = new ResizeObserver(() => this.estimate());
    this.sizes.observe(this.list);
    signal.addEventListener("abort", () => (this.nearby.disconnect(), this.sizes.disconnect()));
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("pointerup", () => this.selected());
    this.list.addEventListener("dblclick", (event) => {
      const row = event.target.closest(".vf-row");
      if (row && event.target.closest(".vf-text")) this.act.correct(row.passage);
    });
  }

  /** Call when the list is in the page: estimates heights from text lengths, then fills visible rows. */
  start() {
    this.estimate();
    for (const row of this.rows) this.nearby.observe(row);
  }

  estimate() {
    const width = this.list.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    const narrow = width < 620;
    const letters = Math.max(20, (width - (narrow ? 80 : this.fitNames() + 100)) / 7.9);
    for (const [p, row] of this.rows.entries()) {
      if (this.filled.has(row)) continue;
      const lines = Math.max(1, Math.ceil(this.passages.plain(p).length / letters));
      row.style.height = `${lines * 25 + (narrow ? 34 : 8)}px`;
    }
    if (this.current >= 0) this.show(this.current, false); // an element that is moved in the page has lost its place
  }

  /** Makes the column of names as wide as the longest one needs, so that names are near their text. */
  fitNames() {
    const longest = Math.max(0, ...this.people.list.map(({ name }) => name.length));
    const who = this.act.named ? Math.round(Math.min(200, 76 + 7.5 * longest)) : 60;
    this.list.style.setProperty("--vf-who", `${who}px`);
    return who;
  }

  /** Reads chapters, entities and safety labels, and the entity of each word. */
  readLayers() {
    const columns = this.model.get("_columns");
    const layers = { chapters: bandsOf(columns, "chapter"), entities: bandsOf(columns, "entity"), safety: bandsOf(columns, "safety") };
    this.entity = new Map();
    for (let n = 0; n < layers.entities.start.length; n++) {
      const name = layers.entities.text.at(n);
      for (const word of this.passages.touching(layers.entities.start[n], layers.entities.end[n])) this.entity.set(word, name);
    }
    return layers;
  }

  /** Returns the speaker of a passage. */
  person(p) { return this.people.list[this.people.at[p]]; }

  /** Returns the name of a passage for screen readers; rows that are not filled have one, too. */
  label(p) {
    const [from] = this.passages.span(p);
    return from < 0 ? this.person(p).name : `${this.person(p).name}, ${clock(from)}`;
  }

  heading(n) {
    const { start, text } = this.layers.chapters;
    const time = h("button", { type: "button", class: "vf-time" }, clock(start[n]));
    time.addEventListener("click", () => this.act.seek(start[n]));
    return h("div", { class: "vf-chapter", role: "listitem" }, h("strong", {}, text.at(n)), time);
  }

  fill(row) {
    if (this.filled.has(row)) return;
    const p = row.passage;
    const { passages } = this;
    const [from, to] = passages.span(p);
    const { name, colour } = this.person(p);
    const when = from < 0 ? "–" : clock(from); // no word has a time
    const corrected = passages.turn[p] in this.model.get("corrections");
    const line = h("p", { class: "vf-text", dir: "auto" });
    for (let i = passages.first[p]; i < passages.first[p + 1]; i++) line.append(i > passages.first[p] ? passages.space(i) : "", this.word(i));
    line.append(" ");
    const tools = h("div", { class: "vf-tools" });
    const continues = p && this.person(p - 1) === this.person(p) && !row.previousSibling.classList.contains("vf-chapter");
    const who = h("button", {
      type: "button", class: "vf-name", tabindex: p === this.cursor ? "0" : "-1", "aria-label": `Rename ${name}`,
      title: "Rename this speaker", disabled: !this.act.editable,
    }, h("i", { class: "vf-dot" }), h("span", {}, name));
    who.firstChild.style.background = `var(--vf-speaker-${colour})`;
    who.hidden = continues || !this.act.named;
    row.classList.toggle("vf-continues", Boolean(continues));
    who.dataset.act = who.dataset.key = "rename";
    const time = h("button", { type: "button", class: "vf-time", tabindex: p === this.cursor ? "0" : "-1", "aria-label": from < 0 ? "No time" : `Go to ${when}`, disabled: from < 0 }, when);
    time.dataset.act = time.dataset.key = "time";
    tools.append(who, time);
    if (corrected) tools.append(h("span", { class: "vf-corrected", title: "Corrected here; the original transcript is unchanged" }, "corrected"));
    for (const label of this.safety(from, to)) line.append(h("span", { class: "vf-safety" }, label));
    const edit = h("button", { type: "button", class: "vf-edit vf-button", tabindex: p === this.cursor ? "0" : "-1", "aria-label": "Correct this passage", title: "Correct (E)" }, icon("pen"));
    edit.dataset.act = edit.dataset.key = "correct";
    const buttons = h("span", { class: "vf-actions" }, edit);
    if (this.act.editable) {
      const more = h("button", { type: "button", class: "vf-turn vf-button", tabindex: p === this.cursor ? "0" : "-1", "aria-label": "Change this turn", title: "Split, merge, move, undo", "aria-expanded": "false" }, icon("more"));
      more.dataset.act = more.dataset.key = "turn";
      buttons.append(more);
    }
    keepFocus(row, () => row.replaceChildren(tools, line, ...(this.act.editable ? [buttons] : [])));
    row.style.height = "";
    this.filled.add(row);
    if (p === this.passages.row[this.on]) this.highlight(this.on);
  }

  safety(from, to) {
    const { start, end, text } = this.layers.safety;
    const labels = new Set();
    for (let n = 0; n < start.length && start[n] < to; n++) if (end[n] > from) labels.add(text.at(n));
    return labels;
  }

  word(i) {
    const { confidence, text } = this.passages;
    const classes = ["vf-w"];
    if (confidence[i] < 0.8) classes.push(confidence[i] < 0.4 ? "vf-c3" : confidence[i] < 0.6 ? "vf-c2" : "vf-c1");
    if (this.entity.has(i)) classes.push("vf-entity");
    if (this.hits.has(i)) classes.push(this.hits.get(i) === this.hit ? "vf-hit vf-this" : "vf-hit");
    const span = h("span", { class: classes.join(" "), title: this.entity.get(i) }, text[i]);
    span.word = i;
    return span;
  }

  /** `height` is passed in, because reading it between changes would force a layout each time. */
  empty(row, height) {
    if (!this.filled.has(row) || row.contains(document.activeElement) || row.querySelector("textarea, input")) return;
    row.style.height = `${height}px`;
    row.replaceChildren();
    this.filled.delete(row);
  }

  /** Redraws the filled rows after names, corrections or hits changed. */
  again() {
    this.fitNames();
    for (const [p, row] of this.rows.entries()) row.setAttribute("aria-label", this.label(p));
    for (const row of [...this.filled]) {
      if (row.querySelector("textarea, input")) continue;
      this.filled.delete(row);
      this.fill(row);
    }
  }

  element(i) {
    const row = this.rows[this.passages.row[i]];
    return this.filled.has(row) ? row.querySelectorAll(".vf-w")[i - this.passages.first[row.passage]] : null;
  }

  /** Highlights the word being played. */
  highlight(i) {
    for (const element of this.marked) element.classList.remove("vf-on");
    this.on = i;
    const element = i >= 0 ? this.element(i) : null;
    element?.classList.add("vf-on");
    this.marked = element ? [element] : [];
  }

  /** Marks the current passage; returns true if it changed. */
  atRow(p) {
    if (p === this.current) return false;
    this.rows[this.current]?.removeAttribute("aria-current");
    this.rows[p]?.setAttribute("aria-current", "true");
    this.current = p;
    return true;
  }

  /** Scrolls the text, never the notebook, so that a passage is one third from the top. */
  show(p, calm = true) {
    const row = this.rows[p];
    if (!row) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const { list } = this;
    const [top, bottom] = [row.offsetTop - list.scrollTop, row.offsetTop + row.offsetHeight - list.scrollTop];
    if (top >= 8 && bottom <= list.clientHeight - 24) return;
    for (let n = Math.max(0, p - 8); n < Math.min(this.rows.length, p + 9); n++) this.fill(this.rows[n]); // to get their real heights
    const to = row.offsetTop - list.clientHeight / 3;
    const far = Math.abs(to - list.scrollTop) > list.clientHeight * 1.5;
    list.scrollTo({ top: to, behavior: calm && !still && !far ? "smooth" : "instant" });
  }

  /** Moves the keyboard cursor to a passage: Tab then reaches its buttons. */
  step(by) {
    this.place(Math.min(this.rows.length - 1, Math.max(0, this.cursor + by)));
    this.rows[this.cursor].focus({ preventScroll: true });
  }
  place(p) {
    for (const button of this.rows[this.cursor]?.querySelectorAll("button") ?? []) button.tabIndex = -1;
    this.cursor = p;
    this.show(p, false);
    this.fill(this.rows[p]);
    for (const button of this.rows[p].querySelectorAll("button")) button.tabIndex = 0;
  }

  clicked(event) {
    const row = event.target.closest(".vf-row");
    if (!row) return;
    const { passages } = this;
    const what = event.target.closest("[data-act]")?.dataset.act;
    if (what === "rename") this.act.rename(row.passage);
    else if (what === "correct") this.act.correct(row.passage);
    else if (what === "turn") this.menu(row);
    else if (what === "time") this.act.seek(passages.span(row.passage)[0]);
    else if (event.target.classList.contains("vf-w")) this.chosen = event.target.word;
    if (event.target.classList.contains("vf-w") && getSelection().isCollapsed && passages.start[event.target.word] >= 0)
      this.act.play(passages.start[event.target.word]);
  }

  /** Returns the word of a turn that its actions are about: the one clicked last, otherwise the one being played, or -1. */
  wordOf(p) {
    const { passages } = this;
    const inside = (i) => i >= 0 && passages.turn[passages.row[i]] === passages.turn[p];
    return [this.chosen, this.on].find(inside) ?? -1;
  }

  /** Shows or hides the actions of a turn below its text. */
  menu(row) {
    const button = row.querySelector("[data-act=turn]");
    const open = row.querySelector(".vf-menu");
    button.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    const p = row.passage;
    const list = h("div", { class: "vf-menu", role: "group", "aria-label": "Change this turn" });
    if (this.act.notStored) list.append(h("p", { class: "vf-note" }, this.act.notStored));
    for (const [label, act] of this.act.turns(p)) {
      const item = h("button", { type: "button", class: "vf-button", disabled: !act }, label);
      item.addEventListener("click", (event) => (event.stopPropagation(), act()));
      list.append(item);
    }
    row.append(list);
    list.querySelector("button:enabled")?.focus({ preventScroll: true });
  }

  /** Turns text selected with the mouse into the selected interval. */
  selected() {
    const selection = getSelection();
    if (selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    const words = [...this.filled].flatMap((row) => [...row.querySelectorAll(".vf-w")]).filter((word) => range.intersectsNode(word));
    const timed = words.map((word) => word.word).filter((i) => this.passages.start[i] >= 0);
    if (timed.length < 2) return;
    this.act.select([Math.min(...timed.map((i) => this.passages.start[i])), Math.max(...timed.map((i) => this.passages.end[i]))]);
  }
}

/**
 * Returns `list`, the people as `{ name, colour }` in order of their first passage, and `at`: the person of each passage.
 * `colours` has the kernel's colour index of each label, and of each name that only single turns have.
 */
function peopleOf(passages, speakers, names, turnNames, colours) {
  const own = (given, key) => (Object.hasOwn(given, key) ? given[key] : null); // a label may be called "constructor"
  const numbers = new Map();
  const list = [];
  const at = passages.speaker.map((speaker, p) => {
    const label = own(turnNames, passages.turn[p]) ?? speakers[speaker];
    const name = own(names, label) ?? (label || null);
    const colour = own(colours, label) ?? Object.keys(colours).length % 8; // new name, the kernel has not responded yet
    if (!numbers.has(name)) numbers.set(name, list.push({ name: name ?? "(unknown)", colour }) - 1);
    const person = list[numbers.get(name)];
    person.colour = Math.min(person.colour, colour);
    return numbers.get(name);
  });
  return { at, list };
}
