// Shows the jobs of the server and updates them. Transcripts are untrusted text: they reach the page only through
// textContent. The API key is stored only in `key`.

import { build, fill } from "./job.js";

const PERIOD_MS = 1000, STEP = 20, MOST = 200; // the maximum of the API
const INVALID_KEY = "This is not the API key of this server.";
const at = (id) => document.getElementById(id);
const shown = new Map(); // element of each job, by id

let key = null;
let limit = STEP;
let turn = 0; // number of the current loop; older loops end

class Unauthorized extends Error {}

async function request(path, method = "GET") {
  const response = await fetch(path, {
    method,
    headers: { Authorization: key },
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  if (response.status === 401) throw new Unauthorized();
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

const api = {
  transcript: (id) => request(`/v2/transcript/${encodeURIComponent(id)}`),
  paragraphs: (id) => request(`/v2/transcript/${encodeURIComponent(id)}/paragraphs`),
  remove: (id, name) => {
    at("confirm-text").textContent = `Delete ${name}?`;
    at("delete").dataset.id = id;
    at("confirm").showModal();
  },
};

async function refresh(mine) {
  const filter = at("filter").value;
  const query = new URLSearchParams(filter ? { limit, status: filter } : { limit });
  const [page, queue] = await Promise.all([request(`/v2/transcript?${query}`), request("/queue")]);
  if (mine !== turn) return;
  const { result_count: total } = page.page_details;
  put(at("count"), `${total} ${total === 1 ? "job" : "jobs"}`);
  at("none").hidden = total > 0;
  put(at("none"), filter ? "No job has this status." : "There are no jobs yet. New jobs appear here automatically.");
  at("older").hidden = total <= page.transcripts.length || limit >= MOST;
  showJobs(page.transcripts, queue);
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showJobs(jobs, queue) {
  const list = at("list"), here = new Set(jobs.map((job) => job.id));
  for (const [id, element] of shown) {
    if (!here.has(id)) {
      element.remove();
      shown.delete(id);
    }
  }
  jobs.forEach((job, place) => {
    let element = shown.get(job.id);
    if (element === undefined) {
      element = build(job, api);
      shown.set(job.id, element);
    }
    // Elements are only inserted, because moving an element would remove the focus from it.
    if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
    fill(element, job, queue);
  });
}

async function watch() {
  const mine = ++turn;
  while (mine === turn) {
    if (!document.hidden) {
      try {
        await refresh(mine);
        if (mine !== turn) return;
        showConnection("connected");
        open(true);
      } catch (error) {
        if (mine !== turn) return;
        if (error instanceof Unauthorized || at("jobs").hidden) {
          forget(error instanceof Unauthorized ? INVALID_KEY : `No response: ${error.message}`);
          return;
        }
        showConnection("no response; retrying", true);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
  }
}

function showConnection(text, lost = false) {
  put(at("connection"), text);
  at("connection").classList.toggle("lost", lost);
}

function open(yes) {
  if (at("jobs").hidden !== yes) return;
  for (const id of ["jobs", "connection", "forget"]) at(id).hidden = !yes;
  at("login").hidden = yes;
  (yes ? at("filter") : at("key")).focus();
}

function forget(reason = "") {
  turn += 1;
  key = null;
  limit = STEP;
  shown.clear();
  at("list").replaceChildren();
  at("count").textContent = "";
  at("key-error").textContent = reason;
  at("confirm").close();
  open(false);
}

at("login").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  at("key").value = "";
  at("key-error").textContent = "";
  watch();
});
at("forget").addEventListener("click", () => forget());
at("filter").addEventListener("change", watch);
at("older").addEventListener("click", () => {
  limit = Math.min(limit + STEP, MOST);
  watch();
});
at("cancel").addEventListener("click", () => at("confirm").close());
at("delete").addEventListener("click", async () => {
  try {
    await request(`/v2/transcript/${encodeURIComponent(at("delete").dataset.id)}`, "DELETE");
    at("confirm").close();
    watch();
  } catch (error) {
    if (error instanceof Unauthorized) forget(INVALID_KEY);
    else at("confirm-text").textContent = `The job could not be deleted: ${error.message}`;
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && key !== null) watch();
});
