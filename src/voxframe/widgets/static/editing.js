// Editing names and corrections in place; undo, redo and the list of changes; boundaries moved on the waveform.

/** `rename` and `correct` open a field in a passage and send the input to the kernel, which confirms it when saved. */
function makeEditing(model, reader, passages, speakers, say, session) {
  const prepare = (p) => {
    const row = reader.rows[p];
    reader.fill(row);
    getSelection().removeAllRanges();
    return row;
  };
  /** Replaces a part of a row by a field; `edit(text)` returns the message for the input, or null if nothing changed. */
  function open(row, part, form, field, edit) {
    const { key } = row.contains(document.activeElement) ? document.activeElement.dataset : {};
    form.dataset.back = key ?? ""; // where the focus goes if the player is drawn again
    editInPlace(part, form, field, (text, { close, reopen }) => {
      const message = text === null ? null : edit(text);
      if (!message) return close();
      askKernel(model, { do: "edit", ...message }, close, (reason) => {
        say(reason);
        reopen();
      });
    }, (inside) => {
      say("");
      reader.again();
      const control = key && row.querySelector(`[data-key="${key}"]:not([hidden])`);
      if (inside) (control || row).focus({ preventScroll: true });
    });
  }

  function rename(p) {
    const row = prepare(p);
    const place = row.querySelector(".vf-name");
    const [label, turn, before] = [speakers[passages.speaker[p]], String(passages.turn[p]), reader.person(p).name];
    const known = h("datalist", { id: `vf-people-${Math.random().toString(36).slice(2)}` });
    for (const { name } of reader.people.list) known.append(h("option", { value: name }));
    const field = h("input", { class: "vf-field", "aria-label": `Name of ${before}`, value: before, maxlength: "200", list: known.id });
    const once = h("input", { type: "checkbox" });
    // A speaker without a label can only be named turn by turn.
    once.checked = !label || turn in model.get("turn_names");
    once.disabled = !label;
    open(row, place, h("span", { class: "vf-naming" }, field, known, h("label", {}, once, " This turn only")), field, (text) => {
      const given = text.trim().replace(/\s+/g, " ");
      if (given === before && once.checked === turn in model.get("turn_names")) return null;
      const names = { ...model.get("names") };
      const turnNames = { ...model.get("turn_names") };
      delete turnNames[turn];
      if (!once.checked && given && given !== label) names[label] = given;
      else if (!once.checked) delete names[label];
      else if (given && given !== (names[label] ?? label)) turnNames[turn] = speakers.find((other) => other && (names[other] ?? other) === given) ?? given;
      return { names, turn_names: turnNames };
    });
  }

  function correct(p) {
    const row = prepare(p);
    const line = row.querySelector(".vf-text");
    if (!line) return;
    const before = passages.plain(p);
    const field = h("textarea", { class: "vf-field", "aria-label": "Corrected text; Enter saves, Escape cancels", rows: Math.max(2, Math.ceil(before.length / 70)), dir: "auto" });
    field.value = before;
    open(row, line, field, field, (text) => {
      const given = text.trim().replace(/\s+/g, " ");
      if (given === before) return null;
      const corrections = { ...model.get("corrections") };
      const whole = passages.turnText(p, given);
      if (whole) corrections[passages.turn[p]] = whole;
      else delete corrections[passages.turn[p]];
      return { corrections };
    });
    field.setSelectionRange(field.value.length, field.value.length);
  }
  /** Changes turns in the corpus; the kernel then sends the new words, with which the player is drawn again. */
  const change = (p, action, more = {}) =>
    askKernel(model, { do: "turn", action, turn: passages.turn[p] ?? -1, ...more }, () => say(""), say);

  function retime(p, i) {
    const row = prepare(p);
    const before = [passages.start[i], passages.end[i]].map((ms) => (ms / 1000).toFixed(3)).join(" – ");
    const field = h("input", { class: "vf-field", "aria-label": `Start and end of ${passages.text[i]} in seconds`, value: before });
    open(row, row.querySelector(".vf-time"), field, field, (text) => {
      const times = text.match(/\d+(\.\d+)?/g) ?? [];
      if (text.trim() === before) return null;
      const [start, end] = times.map((seconds) => Math.round(Number(seconds) * 1000));
      const word = passages.placeInTurn(i);
      return { do: "turn", action: "time", turn: passages.turn[p], word, start_ms: start ?? -1, end_ms: end ?? -1 };
    });
  }

  /** Returns the actions of a turn by key: a label, and a function that is null if the turn does not allow it. */
  function turns(p, shift = false) {
    const i = reader.wordOf(p);
    const word = i < 0 ? "a word (click it first)" : `“${passages.text[i]}”`;
    const [from, to] = passages.parts(p);
    const last = to >= passages.count;
    const count = passages.first[to] - passages.first[from];
    return {
      s: [`Split before ${word} (S)`, i > passages.first[from] ? () => change(p, "split", { word: passages.placeInTurn(i) }) : null],
      m: ["Merge with the next turn (M)", last ? null : () => change(p, "merge")],
      "<": ["Last word to the next turn (<)", last || count < 2 ? null : () => change(p, "move", { by: -1 })],
      ">": ["First word of the next turn to this one (>)", last ? null : () => change(p, "move", { by: 1 })],
      t: [`Time of ${word} (T)`, i < 0 ? null : () => retime(p, i)],
      u: ["Undo the last change (U)", session.changes.length ? () => change(p, shift ? "redo" : "undo") : null],
    };
  }
  return { rename, correct, turns, change };
}

/**
 * Replaces an element by a form until Enter, Escape, or the focus leaves it. `done` gets the field's text, or null for
 * Escape, and closes or reopens the form; `closed` gets true if the form had the focus.
 */
function editInPlace(element, form, field, done, closed) {
  let finished = false;
  const close = () => {
    if (!form.isConnected) return;
    const inside = form.contains(document.activeElement);
    finished = true;
    form.replaceWith(element);
    closed(inside);
  };
  const reopen = () => (finished = field.readOnly = false);
  const finish = (text) => {
    if (finished) return;
    finished = field.readOnly = true;
    done(text, { close, reopen });
  };
  form.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") finish(null);
    else if (event.key === "Enter" && !event.shiftKey) finish(field.value);
    else return;
    event.preventDefault();
  });
  form.addEventListener("focusout", (event) => form.contains(event.relatedTarget) || finish(field.value));
  element.replaceWith(form);
  field.focus();
  field.select?.();
}

const CHANGES = { text: "Text of turn", split: "Split of turn", merge: "Merge of turn", move: "Boundary of turn", time: "Time in turn", speakers: "Speakers of all turns" };

/** Creates the buttons and the list; `change(action, more)` asks the kernel. `lost` is called if a control with the focus is disabled. */
function changeHistory(model, guard, change, session, lost) {
  const button = (name, text, action) => h("button", { type: "button", class: "vf-button", "aria-label": text, title: text, onclick: guard(action) }, icon(name));
  const undo = button("undo", "Undo", () => change("undo"));
  const redo = button("redo", "Redo", () => change("redo"));
  const open = h("button", { type: "button", class: "vf-button", "aria-expanded": String(Boolean(session.history)), title: "List of changes", "data-key": "history", onclick: guard(() => {
    session.history = list.hidden;
    list.hidden = !list.hidden;
    open.setAttribute("aria-expanded", String(!list.hidden));
  }) }, "History");
  const list = h("ol", { class: "vf-changes", "aria-label": "Changes, the last one first", hidden: !session.history });
  const show = () => {
    const { changes } = session;
    const had = document.activeElement;
    undo.disabled = !changes.some((row) => !row.redo);
    redo.disabled = !changes.some((row) => row.redo);
    open.disabled = !changes.length;
    const active = changes.findLast((row) => !row.redo)?.change ?? 0;
    const rows = [{ change: 0, action: "", turn: -1, text: "As transcribed", author: "", made: "" }, ...changes].reverse().map((row) => {
      const what = row.change ? `${CHANGES[row.action] ?? row.action}${row.turn < 0 || row.action === "speakers" ? "" : ` ${row.turn}`}` : row.text;
      const when = row.made ? new Date(row.made).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
      const go = h("button", { type: "button", class: "vf-change", "data-key": `change ${row.change}`, "aria-current": row.change === active ? "step" : null, onclick: guard(() => change("return", { change: row.change })) },
        h("span", {}, what), h("span", { class: "vf-status" }, row.change && row.text ? `“${row.text}”` : ""), h("span", { class: "vf-status" }, [row.author, when].filter(Boolean).join(", ")));
      return h("li", { class: row.redo ? "vf-undone" : "" }, go);
    });
    keepFocus(list, () => list.replaceChildren(...rows));
    if (had.disabled && [undo, redo].includes(had)) lost();
  };
  model.on("msg:custom", guard((message) => message.do === "changes" && show()));
  show();
  return { buttons: [undo, redo, open], list };
}

/** Boundaries of the turn of a passage with its neighbours, of turns that do not overlap: time in ms, and the passage after it. */
function boundariesOf(passages, p) {
  const { start, end, first, turn } = passages;
  const isShared = (at) => at > 0 && at < passages.count && turn[at - 1] >= 0 && turn[at] >= 0;
  const isTimed = (next) => start[next - 1] >= 0 && start[next] >= end[next - 1];
  return passages.parts(p).filter((at) => isShared(at) && isTimed(first[at]))
    .map((at) => ({ at, ms: (Math.max(0, end[first[at] - 1]) + start[first[at]]) / 2 }));
}

/** Number of words that the turn before a boundary takes from the next one if the boundary moves to a time. */
function wordsMoved(passages, at, ms) {
  const [first] = passages.parts(at - 1);
  const [, last] = passages.parts(at);
  const middle = (i) => (passages.start[i] + passages.end[i]) / 2;
  let by = 0;
  const edge = passages.first[at];
  while (edge + by + 1 < passages.first[last] && passages.start[edge + by] >= 0 && middle(edge + by) < ms) by++;
  if (!by) while (edge + by - 1 > passages.first[first] && passages.start[edge + by - 1] >= 0 && middle(edge + by - 1) > ms) by--;
  return by;
}
