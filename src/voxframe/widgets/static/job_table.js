// Jobs as a table: where each is, how long it takes, a button to cancel it or to try again.

function renderJobTable({ model, el, signal }) {
  const { pane, guard } = errorPane(model);
  const root = frame("vf-jobs", "Jobs");
  const bar = h("progress", { class: "vf-all", max: "1", value: "0", "aria-label": "All jobs" });
  const status = h("span", { class: "vf-status", role: "status" });
  const busy = h("span", { class: "vf-hint" });
  const again = h("button", { type: "button", class: "vf-button", onclick: guard(() => model.send({ do: "retry all" })) }, "Retry all that failed");
  const head = h("tr", {}, ...["Recording", "State", "Length", "Time", ""].map((name) => h("th", { scope: "col" }, name || h("span", { class: "vf-unseen" }, "Actions"))));
  const body = h("tbody");
  const table = h("table", { class: "vf-table" }, h("caption", { class: "vf-unseen" }, "Jobs"), h("thead", {}, head), body);
  root.append(h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, "Jobs"), bar, status, busy, h("span", { class: "vf-space" }), again), h("div", { class: "vf-scroll" }, table), pane);
  el.append(root);

  const action = (what, row) =>
    h("button", {
      type: "button", class: "vf-button", "data-key": row.key, "data-do": what, "aria-label": `${what === "cancel" ? "Cancel" : "Retry"} ${row.name}`,
      onclick: guard((event) => {
        event.currentTarget.disabled = true;
        model.send({ do: what, key: row.key });
      }),
    }, what === "cancel" ? "Cancel" : "Retry");

  const show = guard(() => {
    const [rows, counts] = [model.get("_rows"), model.get("_counts")];
    const had = document.activeElement?.dataset;
    body.replaceChildren(
      ...rows.map((row) => {
        const going = !["completed", "error", "uncertain"].includes(row.state);
        const since = h("td", { class: "vf-number" });
        if (going && row.since) since.dataset.since = row.since;
        const said = h("td", {}, h("span", { class: `vf-state vf-${row.state}` }, row.said));
        if (row.share) {
          const percent = `${Math.floor(100 * row.share)} %`;
          said.append(h("div", { class: "vf-part" }, h("progress", { max: "1", value: row.share, "aria-label": `${row.name}: ${percent}` }), percent));
        }
        if (row.error) said.append(h("div", { class: "vf-why" }, row.error));
        const buttons = h("td", {}, row.cancel ? action("cancel", row) : "", row.retry ? action("retry", row) : "");
        return h("tr", { "data-state": row.state }, h("td", { title: row.source }, row.name), said, h("td", { class: "vf-number" }, row.length), since, buttons);
      }),
    );
    if (had?.key) body.querySelector(`[data-key="${CSS.escape(had.key)}"][data-do="${CSS.escape(had.do)}"]`)?.focus();
    const all = counts.all ?? 0;
    bar.max = Math.max(1, all);
    bar.value = (counts.over ?? 0) + rows.reduce((sum, row) => sum + row.share, 0);
    const more = all > rows.length ? ` (${rows.length} shown)` : "";
    status.textContent = all ? `${counts.over} of ${all} over${counts.error ? `, ${counts.error} failed` : ""}${more}` : "none yet";
    again.hidden = !(counts.error > 1);
    table.hidden = !rows.length;
    bar.hidden = !all;
    tick();
  });
  const tick = () => {
    for (const cell of body.querySelectorAll("[data-since]")) cell.textContent = clock(Date.now() - Number(cell.dataset.since));
  };
  const timer = setInterval(tick, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  const tell = () => (busy.textContent = model.get("busy"));
  model.on("change:_rows", show);
  model.on("change:_counts", show);
  model.on("change:busy", tell);
  show();
  tell();
}

export default () => ({ render: renderJobTable });
