// SubmitForm: recordings, options in plain words, a plan with a row per recording, and the jobs.
// Files are sent to the kernel in chunks; each chunk is sent when the kernel requests it.

const CHUNK_BYTES = 1 << 20;
const SUBMIT_KEYS = [
  ["Ctrl + Enter", "Plan: show what would be sent"],
  ["Ctrl + Shift + Enter", "Send what was planned"],
  ["Tab", "Move to the fields, the plan and the jobs"],
];

function renderSubmitForm({ model, el, signal }) {
  const root = frame("vf-submit-form", model.get("title"));
  const { pane, guard, send } = errorPane(model, { needsKernel: true });
  const serial = Math.random().toString(36).slice(2);
  const help = keyHelp(SUBMIT_KEYS, root);
  const button = (text, action, more = {}) => h("button", { type: "button", class: "vf-button", onclick: guard(action), ...more }, text);
  const write = (name, value) => put(model, { _values: { ...model.get("_values"), [name]: value } });
  /** Sends the inputs with the request, because traits may reach the kernel after the message. */
  const request = (message) => send({ ...message, values: model.get("_values") });

  // Fields: each has a label, a control and an explanation with the name of the option.
  const fields = [];
  function field({ name, label, help: text, kind, choices = [], empty = "", hint = "" }) {
    const id = `vf-${serial}-${name}`;
    const control = {
      flag: () => h("input", { type: "checkbox", onchange: guard(() => write(name, control.checked)) }),
      choice: () => h("select", { class: "vf-input", onchange: guard(() => write(name, control.value)) }),
      choices: () => h("select", { class: "vf-input vf-tall", multiple: true, size: "6", onchange: guard(() => write(name, Array.from(control.selectedOptions, (one) => one.value))) }),
      list: () => h("textarea", { class: "vf-input vf-tall", rows: "3", oninput: guard(() => write(name, control.value)) }),
      secret: () => h("input", { class: "vf-input", type: "password", autocomplete: "off", spellcheck: "false" }),
    }[kind]?.() ?? h("input", { class: "vf-input", type: "text", placeholder: hint, oninput: guard(() => write(name, control.value)) });
    for (const [value, word] of choices) control.append(h("option", { value }, word));
    control.id = id;
    const row = h("div", { class: "vf-option" }, h("label", { for: id }, label), h("div", { class: "vf-entry" }, control));
    if (text) {
      control.setAttribute("aria-describedby", `${id}-help`);
      row.append(h("span", { class: "vf-hint", id: `${id}-help` }, text, " ", h("code", {}, name)));
    }
    if (kind === "secret") secret(name, control, row);
    else fields.push([control, () => {
      const value = model.get("_values")[name] ?? empty;
      if (kind === "flag") control.checked = value === true;
      else if (kind === "choices") for (const one of control.options) one.selected = value.includes(one.value);
      else if (document.activeElement !== control) control.value = value;
    }]);
    return row;
  }
  /** Sends the text of a password field to the kernel in one message; it is never in the model. */
  function secret(name, control, row) {
    const state = h("span", { class: "vf-hint", role: "status" });
    const pass = (text) => {
      send({ do: "secret", name, text });
      control.value = "";
    };
    const clear = button("Clear", () => pass(""), { "aria-label": `Clear ${row.firstChild.textContent}` });
    control.addEventListener("change", guard(() => control.value && pass(control.value)));
    control.addEventListener("keydown", guard((event) => event.key === "Enter" && control.value && pass(control.value)));
    row.querySelector(".vf-entry").append(state, clear);
    const show = () => {
      const set = model.get("_secrets_set").includes(name);
      state.textContent = set ? "Set (hidden, not saved)" : "";
      clear.hidden = !set;
    };
    model.on("change:_secrets_set", show);
    signal.addEventListener("abort", () => (control.value = ""));
    show();
  }

  // Recordings
  const picker = h("input", { type: "file", multiple: true, class: "vf-unseen", accept: "audio/*,video/*", tabindex: "-1", "aria-hidden": "true" });
  const zone = h("div", { class: "vf-zone" }, "Drop recordings here, or ", button("Choose files", () => picker.click()), picker);
  const paths = h("textarea", {
    class: "vf-input vf-tall", rows: "3", "aria-label": "Recordings", placeholder: "or paths, folders, patterns (calls/**/*.mp3) and URLs (https://...), one per line",
    oninput: guard(() => write("recordings", paths.value)), onchange: guard(() => request({ do: "look" })),
  });
  fields.push([paths, () => document.activeElement !== paths && (paths.value = model.get("_values").recordings ?? "")]);

  // Options in groups, presets and the service
  const chips = h("div", { class: "vf-chips", role: "group", "aria-label": "Options" });
  const pages = model.get("_groups").map(({ name, fields: options }) => {
    const page = h("div", { class: "vf-page", role: "group", "aria-label": name, hidden: true }, ...options.map(field));
    chips.append(button(name, () => open(page), { "aria-pressed": "false" }));
    return page;
  });
  function open(page) {
    for (const [n, other] of pages.entries()) {
      other.hidden = other !== page;
      chips.children[n].setAttribute("aria-pressed", String(other === page));
    }
  }
  const preset = h("select", { class: "vf-input", "aria-label": "Preset", onchange: guard(() => preset.value && send({ do: "load preset", name: preset.value })) });
  const name = h("input", { class: "vf-input", type: "text", placeholder: "Name", "aria-label": "Preset name" });
  const presets = h("div", { class: "vf-options" }, preset, name,
    button("Save preset", () => request({ do: "save preset", name: name.value })), button("Delete preset", () => send({ do: "delete preset", name: name.value })));
  const service = h("details", { class: "vf-settings", hidden: !model.get("_default_service") }, h("summary", {}, "Service"),
    field({ name: "service", label: "Service", hint: model.get("_default_service") }), field({ name: "api_key", label: "API key", kind: "secret" }));

  // Plan and jobs
  const plan = button("Plan", () => request({ do: "plan" }));
  const sendPlanned = () => go.getAttribute("aria-disabled") || request({ do: "send" });
  const go = button("Send", sendPlanned);
  const stop = button("Stop sending", () => send({ do: "stop" }), { title: "Up to 4 recordings in progress are still sent" });
  const busy = h("span", { class: "vf-status", role: "status" });
  const summary = h("p", { class: "vf-summary", role: "status" });
  const grid = (kind, caption, names) => {
    const body = h("tbody");
    const head = h("tr", {}, ...names.map((title) => h("th", { scope: "col" }, title || h("span", { class: "vf-unseen" }, "Actions"))));
    const table = h("table", { class: "vf-table" }, h("caption", { class: "vf-unseen" }, caption), h("thead", {}, head), body);
    return { body, part: h("div", { class: `vf-scroll ${kind}`, role: "region", "aria-label": caption, tabindex: "0" }, table) };
  };
  const chosen = grid("vf-recordings", "Plan by recording", ["Recording", "What happens", "Length", ""]);
  const sent = grid("vf-sent", "State of jobs", ["Recording", "State", "Length", "Time", ""]);
  const all = h("progress", { class: "vf-all", max: "1", value: "0", "aria-label": "All jobs" });
  const status = h("span", { class: "vf-status", role: "status" });
  const again = button("Retry all failed", () => send({ do: "retry all" }));
  root.append(
    h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, model.get("title")), h("span", { class: "vf-space" }), help.button), help.list,
    h("div", { class: "vf-inputs" }, zone, paths, chips, ...pages, presets, service, h("div", { class: "vf-options" }, plan, go, stop, busy)),
    pane, summary, chosen.part,
    h("div", { class: "vf-jobs", role: "group", "aria-label": "Jobs" }, h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, "Jobs"), all, status, h("span", { class: "vf-space" }), again), sent.part),
  );
  el.append(root);

  // Uploads
  const uploads = new Map(); // unfinished ones by key
  function take(files) {
    for (const file of files) {
      const key = Math.random().toString(36).slice(2);
      uploads.set(key, { file, bar: h("progress", { max: Math.max(1, file.size), value: "0", "aria-label": file.name }) });
      send({ do: "begin", key, name: file.name, size: file.size });
    }
    showRecordings();
  }
  const onMessage = guard((message) => {
    const upload = uploads.get(message.key);
    if (!upload) return;
    if (message.do === "next") {
      upload.bar.value = message.at;
      const discard = () => {
        uploads.delete(message.key);
        model.send({ do: "discard", key: message.key });
        showRecordings();
      };
      upload.file.slice(message.at, message.at + CHUNK_BYTES).arrayBuffer().then(
        (data) => model.send({ do: "chunk", key: message.key, at: message.at }, undefined, [data]), discard,
      );
      return;
    }
    uploads.delete(message.key);
    busy.textContent = `${upload.file.name} ${message.do === "done" ? "uploaded" : "could not be uploaded"}`;
    showRecordings();
  });

  // Rows
  const state = (text, problem, ...more) => h("td", {}, h("div", { class: "vf-said" }, text ? h("span", { class: "vf-state" }, text) : "", problem ? h("span", { class: "vf-why" }, problem) : ""), ...more);
  const recording = (row) => h(
    "tr", { "data-state": row.problem ? "error" : row.plan ? "planned" : "" },
    h("td", { title: row.source }, row.name), state(row.plan, row.problem), h("td", { class: "vf-number" }, row.length),
    h("td", {}, row.upload ? button(icon("close"), () => send({ do: "remove", source: row.source }), { "aria-label": `Remove ${row.name}`, title: "Remove", "data-key": row.source }) : ""),
  );
  const upload = ({ file, bar }) => h("tr", {}, h("td", {}, file.name), h("td", {}, bar), h("td"), h("td"));
  const showRecordings = guard(() => {
    const rows = [...model.get("_recordings").map(recording), ...Array.from(uploads.values(), upload)];
    keepFocus(chosen.body, () => chosen.body.replaceChildren(...rows));
    chosen.part.hidden = !rows.length;
  });
  const act = (what, row, text, label) => button(text, once(() => send({ do: what, key: row.key })), { "data-key": `${what} ${row.key}`, "aria-label": label });
  // The service may have a job whose response was lost.
  const retry = (row) => row.state === "error" ? act("retry", row, "Retry", `Retry ${row.name}`)
    : act("retry", row, "Send again (may be charged twice)", `Send ${row.name} again (may be charged twice)`);
  const job = (row) => {
    const since = h("td", { class: "vf-number" });
    if (!["completed", "error", "uncertain"].includes(row.state) && row.since) since.dataset.since = row.since;
    const percent = `${Math.floor(100 * row.progress)} %`;
    const progress = row.progress ? [h("div", { class: "vf-part" }, h("progress", { max: "1", value: row.progress, "aria-label": `${row.name}: ${percent}` }), percent)] : [];
    const buttons = h("td", {}, row.cancel ? act("cancel", row, "Cancel", `Cancel ${row.name}`) : "", row.retry ? retry(row) : "");
    return h("tr", { "data-state": row.state }, h("td", { title: row.source }, row.name), state(row.state_text, row.error, ...progress), h("td", { class: "vf-number" }, row.length), since, buttons);
  };
  const showJobs = guard(() => {
    const [rows, counts] = [model.get("_jobs"), model.get("_counts")];
    keepFocus(sent.body, () => sent.body.replaceChildren(...rows.map(job)));
    const count = counts.all ?? 0;
    all.max = Math.max(1, count);
    all.value = (counts.finished ?? 0) + rows.reduce((sum, row) => sum + row.progress, 0);
    const more = count > rows.length ? ` (${rows.length} shown)` : "";
    status.textContent = count ? `${counts.finished} of ${count} finished${counts.error ? `, ${counts.error} failed` : ""}${more}` : "No jobs yet";
    again.hidden = !(counts.error > 1);
    sent.part.hidden = !rows.length;
    all.hidden = !count;
    tick();
  });
  const tick = () => {
    for (const cell of sent.body.querySelectorAll("[data-since]")) cell.textContent = clock(Date.now() - Number(cell.dataset.since));
  };
  const timer = setInterval(tick, 1000);
  const showFields = guard(() => fields.forEach(([, show]) => show()));
  const showPresets = guard(() => {
    preset.replaceChildren(h("option", { value: "" }, "Select a preset"), ...model.get("_preset_names").map((text) => h("option", { value: text }, text)));
    preset.value = model.get("_preset");
    if (preset.value) name.value = preset.value;
  });
  const showState = guard(() => {
    const count = model.get("_to_send");
    go.textContent = count == null ? "Send" : count ? `Send ${count}` : "Nothing to send";
    if (count) go.removeAttribute("aria-disabled");
    else go.setAttribute("aria-disabled", "true"); // a disabled button loses the focus
    (count ? go : plan).classList.add("vf-do");
    (count ? plan : go).classList.remove("vf-do");
    if (document.activeElement === stop && !model.get("_sending")) plan.focus();
    stop.hidden = !model.get("_sending");
    busy.textContent = model.get("busy") ? `${model.get("busy")} …` : "";
    summary.textContent = model.get("_summary");
    summary.hidden = !summary.textContent;
    if (!["cancelling", "retrying"].includes(model.get("busy"))) allowAgain(sent.body);
  });

  picker.addEventListener("change", guard(() => {
    take(picker.files);
    picker.value = "";
  }));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("vf-over-it");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("vf-over-it"));
  zone.addEventListener("drop", guard((event) => {
    event.preventDefault();
    event.stopPropagation();
    zone.classList.remove("vf-over-it");
    take(event.dataTransfer.files);
  }));
  root.addEventListener("keydown", guard((event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    if (event.shiftKey) sendPlanned();
    else request({ do: "plan" });
    event.preventDefault();
    event.stopPropagation();
  }));
  model.on("change:_values", showFields);
  model.on("change:_recordings", showRecordings);
  for (const trait of ["_jobs", "_counts"]) model.on(`change:${trait}`, showJobs);
  for (const trait of ["_preset_names", "_preset"]) model.on(`change:${trait}`, showPresets);
  for (const trait of ["busy", "_to_send", "_sending", "_summary"]) model.on(`change:${trait}`, showState);
  model.on("msg:custom", onMessage);
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    for (const key of uploads.keys()) model.send({ do: "discard", key });
  });
  open(pages[0]);
  showFields();
  showPresets();
  showRecordings();
  showJobs();
  showState();
}

export default () => ({ render: renderSubmitForm });
