// One job of the list: a line with its status and, when opened, its text.

const STATES = ["queued", "processing", "completed", "error"];

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Return the name of a job: the last part of the URL of its media. */
function nameOf(job) {
  let url;
  try {
    url = new URL(job.audio_url);
  } catch {
    return String(job.audio_url);
  }
  if (url.hostname === "deleted_by_user") return "deleted";
  const last = url.pathname.split("/").filter(Boolean).pop();
  if (/^\/upload\/[0-9a-f-]{36}$/.test(url.pathname)) return `upload ${last.slice(0, 8)}`;
  try {
    return last === undefined ? url.host : decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** Return the URL of the media without its query, which may contain a signature. */
function withoutQuery(address) {
  return String(address).split(/[?#]/)[0];
}

function clock(ms) {
  const seconds = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return seconds >= 3600 ? `${Math.floor(seconds / 3600)}:${rest}` : rest;
}

export function build(job, api) {
  const item = make("li"), details = make("details"), summary = make("summary");
  const state = make("span", "state"), name = make("span", "name", nameOf(job)), time = make("time");
  const note = make("span", "note"), bar = make("progress"), said = make("span");
  const created = new Date(`${job.created}Z`);
  time.dateTime = created.toISOString();
  time.textContent = created.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  name.dir = "auto";
  bar.max = 1;
  bar.setAttribute("aria-label", "progress");
  note.append(bar, said);
  summary.append(state, name, time, note);
  const inside = make("div", "inside");
  details.append(summary, inside);
  item.append(details);
  item.parts = { api, details, state, name, note, bar, said, inside };
  details.addEventListener("toggle", () => {
    if (details.open) showDetails(item);
  });
  return item;
}

export function fill(item, job, queue) {
  const { details, state, name, note, bar, said } = item.parts;
  const before = item.job;
  item.job = job;
  item.className = STATES.includes(job.status) ? job.status : "";
  put(state, job.status);
  put(name, nameOf(job));
  const done = queue.progress[job.id], place = queue.waiting[job.id];
  bar.hidden = job.status !== "processing";
  if (done === undefined) bar.removeAttribute("value");
  else bar.value = done;
  let text = "";
  if (job.status === "processing") text = done === undefined ? "" : `${Math.round(100 * done)} %`;
  else if (job.status === "queued" && place !== undefined) text = place === 1 ? "next in the queue" : `number ${place} in the queue`;
  else if (job.status === "error") text = job.error ?? "";
  put(said, text);
  note.hidden = !text && bar.hidden;
  const changed = before === undefined || before.status !== job.status || before.audio_url !== job.audio_url;
  if (details.open && changed) showDetails(item);
}

async function showDetails(item) {
  const { api, inside } = item.parts, job = item.job;
  const turn = (item.turn = (item.turn ?? 0) + 1); // if two calls overlap, the result of the later one is shown
  const view = make("div");
  try {
    const transcript = await api.transcript(job.id);
    view.append(metadataLine(transcript));
    if (typeof transcript.summary === "string" && transcript.summary) view.append(make("p", "said", transcript.summary));
    if (transcript.status === "completed") view.append(await textOf(transcript, api));
    else if (transcript.status !== "error") view.append(make("p", "hint", "The text appears here when the job is completed."));
  } catch (error) {
    view.append(make("p", "wrong", `The transcript could not be loaded: ${error.message || "the API key is not valid"}`));
  }
  if (nameOf(job) !== "deleted") view.append(deleteButton(item));
  if (item.turn === turn) inside.replaceChildren(...view.children);
}

function metadataLine(transcript) {
  const line = make("p", "facts");
  const known = [transcript.id, withoutQuery(transcript.audio_url)];
  if (transcript.audio_duration) known.push(clock(1000 * transcript.audio_duration));
  if (transcript.language_code) known.push(transcript.language_code);
  for (const fact of known) line.append(make("span", "", String(fact)));
  return line;
}

async function textOf(transcript, api) {
  const box = make("div", "text");
  let turns = transcript.utterances;
  if (!turns?.length && transcript.words?.length) turns = (await api.paragraphs(transcript.id)).paragraphs;
  for (const one of turns ?? []) {
    const line = make("p"), speaker = one.speaker == null ? "" : `${one.speaker} `;
    const text = make("span", "said", one.text);
    text.dir = "auto";
    line.append(make("span", "who", `${speaker}${clock(one.start)}`), text);
    box.append(line);
  }
  if (!box.children.length) box.append(make("span", "said", transcript.text || "No speech was found."));
  box.tabIndex = 0; // it can be scrolled with the keyboard
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Text");
  return box;
}

function deleteButton(item) {
  const { api } = item.parts, { id, status } = item.job;
  const running = status === "queued" || status === "processing";
  const button = make("button", "quiet", running ? "Cancel and delete…" : "Delete…");
  button.type = "button";
  button.addEventListener("click", () => api.remove(id, nameOf(item.job)));
  return button;
}
