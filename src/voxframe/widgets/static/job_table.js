// Jobs as a table with state, elapsed time, and buttons to cancel or retry.

function renderJobTable({ model, el, signal }) {
  const { pane, guard, send } = errorPane(model);
  const root = frame("vf-jobs", "Jobs");
  const bar = h("progress", { class: "vf-all", max: "1", value: "0", "aria-label": "All jobs" });
  const status = h("span", { class: "vf-status", role: "status" });
  const busy = h("span", { class: "vf-hint" });
  const again = h("button", { type: "button", class: "vf-button", onclick: guard(() => send({ do: "retry all" })) }, "Retry all failed");
  const head = h("tr", {}, ...["Recording", "State", "Length", "Time", ""].map((name) => h("th", { scope: "col" }, name || h("span", { class: "vf-unseen" }, "Actions"))));
  const body = h("tbody");
  const table = h("table", { class: "vf-table" }, h("caption", { class: "vf-unseen" }, "Jobs"), h("thead", {}, head), body);
  root.append(h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, "Jobs"), bar, status, busy, h("span", { class: "vf-space" }), again), h("div", { class: "vf-scroll" }, table), pane);
  el.append(root);

  const action = (what, row, text, label) =>
    h("button", {
      type: "button", class: "vf-button", "data-key": `${what} ${row.key}`, "aria-label": label, onclick: guard(once(() => send({ do: what, key: row.key }))),
    }, text);
  const cancel = (row) => action("cancel", row, "Cancel", `Cancel ${row.name}`);
  // The service may have a job whose response was lost.
  const retry = (row) => row.state === "error" ? action("retry", row, "Retry", `Retry ${row.name}`)
    : action("retry", row, "Send again (may be charged twice)", `Send ${row.name} again (may be charged twice)`);

  const line = (row) => {
    const unfinished = !["completed", "error", "uncertain"].includes(row.state);
    const since = h("td", { class: "vf-number" });
    if (unfinished && row.since) since.dataset.since = row.since;
    const state = h("span", { class: "vf-state" }, row.state_text);
    const cell = h("td", {}, h("div", { class: "vf-said" }, state, row.error ? h("span", { class: "vf-why" }, row.error) : ""));
    if (row.progress) {
      const percent = `${Math.floor(100 * row.progress)} %`;
      cell.append(h("div", { class: "vf-part" }, h("progress", { max: "1", value: row.progress, "aria-label": `${row.name}: ${percent}` }), percent));
    }
    const buttons = h("td", {}, row.cancel ? cancel(row) : "", row.retry ? retry(row) : "");
    return h("tr", { "data-state": row.state }, h("td", { title: row.source }, row.name), cell, h("td", { class: "vf-number" }, row.length), since, buttons);
  };

  const show = guard(() => {
    const [rows, counts] = [model.get("_rows"), model.get("_counts")];
    keepFocus(body, () => body.replaceChildren(...rows.map(line)));
    const all = counts.all ?? 0;
    bar.max = Math.max(1, all);
    bar.value = (counts.finished ?? 0) + rows.reduce((sum, row) => sum + row.progress, 0);
    const more = all > rows.length ? ` (${rows.length} shown)` : "";
    status.textContent = all ? `${counts.finished} of ${all} finished${counts.error ? `, ${counts.error} failed` : ""}${more}` : "No jobs yet";
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
  const showBusy = () => {
    busy.textContent = model.get("busy");
    if (!["cancelling", "retrying"].includes(model.get("busy"))) allowAgain(body);
  };
  model.on("change:_rows", show);
  model.on("change:_counts", show);
  model.on("change:busy", showBusy);
  show();
  showBusy();
}

export default () => ({ render: renderJobTable });
