// PassageList: rows of a DataFrame as lines that play.

function renderPassageList({ model, el, signal }) {
  const root = frame("vf-passages", model.get("title"));
  const { pane, guard, send } = errorPane(model, { needsKernel: true });
  const { lines, show } = passageLines("Passages", guard, (row) => send({ do: "row", row }));
  const status = h("span", { class: "vf-status", role: "status" });
  const more = h("button", { type: "button", class: "vf-button vf-more", onclick: guard(() => put(model, { limit: model.get("limit") + 200 })) });
  const place = h("div", { class: "vf-embedded", hidden: true });
  const help = keyHelp([["↑ ↓ Home End", "Move through the passages"], ["Enter", "Play the passage"]], root);
  const bar = h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, model.get("title")), status, h("span", { class: "vf-space" }), help.button);
  root.append(bar, help.list, lines, more, place, pane);
  el.append(root);

  const draw = guard(() => {
    const now = model.get("_rows");
    const read = Object.fromEntries(["name", "speaker", "more", "left", "match", "right"].map((name) => [name, texts(now[name], now[`${name}_at`])]));
    let context = false;
    const rows = Array.from(int32(now.start), (ms, n) => {
      const [name, who, others, left, match, right] = Object.values(read).map((column) => column.at(n));
      context ||= Boolean(left || right);
      const when = ms >= 0 ? clock(ms, 1) : "";
      return { name, when, who, more: others, left, match, right, title: [name, when, who, others].filter(Boolean).join(" · ") };
    });
    root.classList.toggle("vf-plain", !context);
    root.classList.toggle("vf-with-columns", rows.some((row) => row.more));
    show(rows, "No rows.", { top: false });
    const left = now.of - rows.length;
    status.textContent = `${now.of.toLocaleString("en-US")} ${now.of === 1 ? "row" : "rows"}`;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(200, left)} more of ${left.toLocaleString("en-US")}`;
  });
  model.on("change:_rows", draw);
  embedPlayer(model, place, signal, guard);
  draw();
}

export default () => ({ render: renderPassageList });
