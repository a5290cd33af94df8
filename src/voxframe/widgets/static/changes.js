// Changes of text and turns that a corpus stores: undo, redo, the list of them, and boundaries moved on the waveform.

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
