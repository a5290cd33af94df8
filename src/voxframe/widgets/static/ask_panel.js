// AskPanel: a form with transcripts and a prompt, and answers with numbered citations that play the recording.

const ASK_TASKS = {
  "question-answer": ["Questions", "Questions, one per line"],
  summary: ["Summary", "Format (optional), for example: three bullet points"],
  task: ["Task", "Task for the model"],
  "action-items": ["Action items", "Format (optional)"],
};
/** Usual prompts by task: a name and the text. */
const ASK_TEMPLATES = {
  "question-answer": [
    ["Main points", "What are the main points?"], ["Decisions", "What was decided, and by whom?"], ["Open questions", "Which questions stay open?"],
    ["Numbers", "Which numbers and dates are named?"], ["Disagreement", "Where do the speakers disagree?"],
  ],
  summary: [["Bullets", "five bullet points"], ["One paragraph", "one paragraph"], ["Headline", "one headline of at most ten words"]],
  task: [["E-mail", "Write an e-mail that tells people who were not there what they need to know."], ["Table", "List each topic with the position of every speaker, one line per topic."]],
  "action-items": [["Who, what, when", "one line per item: who, what, until when"]],
};
const ASK_KEYS = [
  ["Ctrl + Enter", "Ask"],
  ["Alt + ↑ ↓", "Earlier or later prompt"],
  ["Tab", "Move to the transcripts, answers and citations"],
];

function renderAskPanel({ model, el, signal }) {
  const root = frame("vf-ask", model.get("title"));
  const { pane, guard, send } = errorPane(model, { needsKernel: true });
  const serial = Math.random().toString(36).slice(2);
  const kinds = h("div", { class: "vf-chips", role: "group", "aria-label": "Task" });
  for (const [task, [name]] of Object.entries(ASK_TASKS))
    kinds.append(h("button", { type: "button", class: "vf-button", "data-task": task, onclick: guard(() => put(model, { task })) }, name));
  const prompt = h("textarea", { class: "vf-input vf-prompt", rows: "3", oninput: guard(() => write(prompt.value)) });
  const context = h("input", { class: "vf-input", type: "text", oninput: guard(() => put(model, { context: context.value })) });
  const size = h("input", { class: "vf-input vf-small", type: "number", min: "1", max: "4000", onchange: guard(() => put(model, { max_output_size: Math.min(4000, Math.max(1, Math.round(Number(size.value) || 2000))) })) });
  const heat = h("input", { class: "vf-input vf-small", type: "number", min: "0", max: "1", step: "0.1", onchange: guard(() => put(model, { temperature: Math.min(1, Math.max(0, Number(heat.value) || 0)) })) });
  const ask = h("button", { type: "button", class: "vf-button vf-do", onclick: guard(() => request()) }, "Ask");
  const earlier = h("select", { class: "vf-input vf-earlier", "aria-label": "Earlier prompts", onchange: guard(() => recall(earlier.value)) });
  const limit = h("span", { class: "vf-status" });
  const busy = h("span", { class: "vf-status", role: "status" });
  const help = keyHelp(ASK_KEYS, root);
  const labelled = (text, field) => h("label", { class: "vf-labelled" }, text, field);

  const filter = h("input", { class: "vf-input", type: "search", placeholder: "Filter", "aria-label": "Filter transcripts", oninput: guard(() => showListed()) });
  const all = h("button", { type: "button", class: "vf-button", onclick: guard(() => tickAll()) }, "All");
  const ticked = h("span", { class: "vf-hint", role: "status" });
  const list = h("ul", { class: "vf-ticks" });
  const chosen = h("div", { class: "vf-about", role: "group", "aria-label": "Transcripts" }, h("div", { class: "vf-bar" }, filter, all, ticked), list);
  const templates = h("div", { class: "vf-chips", role: "group", "aria-label": "Usual prompts" });
  const settings = h("details", { class: "vf-settings" }, h("summary", {}, "Settings"),
    h("div", { class: "vf-options" }, labelled("Background information", context), labelled("Longest answer (tokens)", size), labelled("Creativity, 0 to 1", heat)));
  const writer = h("span", { class: "vf-status vf-writer" });
  const form = h(
    "div", { class: "vf-asking" }, kinds, prompt, templates,
    h("div", { class: "vf-options" }, ask, earlier, busy, h("span", { class: "vf-space" }), writer, limit),
    settings,
  );
  const again = h("button", { type: "button", class: "vf-button vf-again", hidden: true, onclick: guard(() => request({ again: true })) }, "Ask again (may be charged twice)");
  const answers = h("div", { class: "vf-answers", role: "log", "aria-label": "Answers" });
  const note = h("p", { class: "vf-hint vf-note-below", hidden: true },
    "Numbers play the passages behind an answer: those that it names or quotes, otherwise those that are closest to it in meaning.");
  const place = h("div", { class: "vf-embedded", hidden: true });
  root.append(h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, model.get("title")), h("span", { class: "vf-space" }), help.button), help.list, h("div", { class: "vf-two" }, form, chosen), pane, again, answers, note, place);
  el.append(root);

  /** Sends the form with the request, because traits may reach the kernel after the message. */
  const request = (more = {}) => send({ do: "ask", ...more, form: Object.fromEntries(["task", "prompts", "context", "chosen"].map((name) => [name, model.get(name)])) });
  const prompts = () => [...new Set([...model.get("_answers").map((answer) => answer.prompt), ...model.get("_earlier")].filter(Boolean))];
  /** Stores the prompt of the current task; each task has its own. */
  const write = (text) => put(model, { prompts: { ...model.get("prompts"), [model.get("task")]: text } });
  let recalled = -1;
  function recall(text) {
    if (!text) return;
    prompt.value = text;
    write(text);
    prompt.focus();
  }

  function showListed() {
    const wanted = filter.value.trim().toLowerCase();
    const now = new Set(model.get("chosen"));
    const shown = model.get("_listed").filter(({ name, id }) => `${name} ${id}`.toLowerCase().includes(wanted));
    list.replaceChildren(
      ...shown.map(({ id, name }) => {
        const tick = h("input", { type: "checkbox", onchange: guard(() => {
          const left = model.get("chosen").filter((other) => other !== id);
          put(model, { chosen: tick.checked ? [...left, id] : left });
        }) });
        tick.checked = now.has(id);
        tick.dataset.id = id;
        return h("li", {}, h("label", { title: id }, tick, name));
      }),
    );
    showTicked();
  }
  function showTicked() {
    const now = new Set(model.get("chosen"));
    for (const tick of list.querySelectorAll("input")) tick.checked = now.has(tick.dataset.id);
    ticked.textContent = `${now.size} of ${model.get("_listed").length} selected`;
    all.textContent = now.size ? "None" : "All";
  }
  function tickAll() {
    const shown = Array.from(list.querySelectorAll("input"), (tick) => tick.dataset.id);
    put(model, { chosen: model.get("chosen").length ? [] : shown });
  }

  /** Renders an answer with a numbered button after each part with a citation, and in place of a mark such as [3]. */
  function reading(reply) {
    const text = h("div", { class: "vf-answer" });
    const cited = h("ol", { class: "vf-cited" });
    // Offsets count code points, as in Python.
    const letters = Array.from(reply.answer);
    const marks = reply.citations.some((found) => letters[found.begin] === "[");
    const part = (from, to) => {
      const said = letters.slice(from, Math.max(from, to)).join("");
      return marks ? said.replace(/\s*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*[^\]\n]*\]/g, "") : said; // a mark that is named again
    };
    let at = 0;
    for (const [n, found] of reply.citations.entries()) {
      const go = guard(() => send({ do: "cite", transcript_id: found.transcript_id, start_ms: found.start_ms, end_ms: found.end_ms }));
      const when = found.start_ms == null ? "" : clock(found.start_ms);
      const source = `${found.name} ${when}${found.speaker ? ` ${found.speaker}` : ""}`;
      text.append(part(at, letters[found.begin] === "[" ? found.begin : found.end), h("button", { type: "button", class: "vf-cite", "aria-label": `Play ${source}: ${found.text}`, title: source, onclick: go }, n + 1));
      cited.append(h("li", {}, h("button", { type: "button", class: "vf-source", onclick: go }, source), h("span", {}, ` “${found.text}”`)));
      at = Math.max(at, found.end);
    }
    text.append(part(at, letters.length));
    return [text, ...(reply.citations.length ? [cited] : [])];
  }

  const writtenBy = ({ quoted, model: name }) => (quoted ? "quotes from the transcripts, no language model" : name ?? "");
  /** Renders a response as a card. */
  const card = (answer) => {
    const { input_tokens: input, output_tokens: output } = answer.usage;
    const tokens = input == null && output == null ? "" : `${input ?? "?"} + ${output ?? "?"} tokens`;
    const purge = h("button", { type: "button", class: "vf-button", "data-key": answer.request_id, "aria-label": `Delete this answer here and at the service`, onclick: guard(once(() => send({ do: "purge", request_id: answer.request_id }))) }, "Delete");
    const about = answer.about.length > 3 ? `${answer.about.slice(0, 3).join(", ")} and ${answer.about.length - 3} more` : answer.about.join(", ");
    const head = h("div", { class: "vf-bar" }, h("strong", {}, ASK_TASKS[answer.task][0]), h("span", { class: "vf-status" }, about), h("span", { class: "vf-space" }), h("span", { class: "vf-status" }, [writtenBy(answer), tokens].filter(Boolean).join(" · ")), purge);
    const asked = answer.task === "question-answer" ? "" : answer.prompt;
    const article = h("article", { class: "vf-card", "aria-label": ASK_TASKS[answer.task][0] }, head);
    if (asked) article.append(h("p", { class: "vf-prompted" }, asked));
    for (const reply of answer.replies) {
      if (reply.question) article.append(h("p", { class: "vf-prompted" }, reply.question));
      article.append(...reading(reply));
    }
    return article;
  };
  const showAnswers = guard(() => {
    const given = model.get("_answers");
    keepFocus(answers, () => answers.replaceChildren(...given.map(card)));
    note.hidden = !given.length;
    writer.textContent = given.length ? `Answers: ${writtenBy(given[0]) || "a language model"}` : "";
  });
  const showEarlier = guard(() => {
    earlier.replaceChildren(h("option", { value: "" }, "Earlier prompts"), ...prompts().map((text) => h("option", { value: text }, text.length > 60 ? `${text.slice(0, 59)}…` : text)));
    earlier.hidden = !prompts().length;
    recalled = -1;
  });
  let shownTask = null;
  const showForm = guard(() => {
    const task = model.get("task");
    for (const button of kinds.children) button.setAttribute("aria-pressed", String(button.dataset.task === task));
    if (shownTask !== task) templates.replaceChildren(...ASK_TEMPLATES[task].map(([name, text]) => h("button", { type: "button", class: "vf-button", title: text, onclick: guard(() => {
      const lines = prompt.value.split("\n").filter((line) => line.trim() && line.trim() !== text);
      recall(task === "question-answer" ? [...lines, text].join("\n") : text);
    }) }, name)));
    prompt.placeholder = ASK_TASKS[task][1];
    prompt.setAttribute("aria-label", ASK_TASKS[task][1]);
    const text = model.get("prompts")[task] ?? "";
    if (document.activeElement !== prompt || shownTask !== task) prompt.value = text;
    shownTask = task;
    for (const [field, name] of [[context, "context"], [size, "max_output_size"], [heat, "temperature"]])
      if (document.activeElement !== field) field.value = model.get(name);
  });
  const showState = () => {
    again.hidden = !model.get("_lost");
    busy.textContent = model.get("busy") ? `${model.get("busy")} …` : "";
    if (model.get("busy") !== "deleting") allowAgain(answers);
    const { remaining, limit: most } = model.get("_limit");
    limit.textContent = remaining == null ? "" : `${remaining}${most ? ` of ${most}` : ""} requests left this minute`;
  };
  root.addEventListener("keydown", guard((event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form.contains(event.target)) request();
    else if (event.target === prompt && event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key)) {
      recalled = Math.max(-1, Math.min(prompts().length - 1, recalled + (event.key === "ArrowUp" ? 1 : -1)));
      recall(prompts()[recalled]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }));
  list.id = `vf-ticks-${serial}`;
  for (const name of ["task", "prompts", "context", "max_output_size", "temperature"]) model.on(`change:${name}`, showForm);
  for (const name of ["busy", "_limit", "_lost"]) model.on(`change:${name}`, showState);
  model.on("change:chosen", showTicked);
  model.on("change:_listed", showListed);
  model.on("change:_answers", showAnswers);
  for (const name of ["_answers", "_earlier"]) model.on(`change:${name}`, showEarlier);
  embedPlayer(model, place, signal, guard);
  showForm();
  showListed();
  showAnswers();
  showEarlier();
  showState();
}

export default () => ({ render: renderAskPanel });
