// Shows the jobs of the service, as they change. What the service holds is anybody's text: it reaches the page by
// textContent alone. The key is in `key` and nowhere else.

import { build, fill } from "./job.js";

const PERIOD_MS = 1000, STEP = 20, MOST = 200; // a page of the list holds 200 at most
const at = (id) => document.getElementById(id);
const shown = new Map(); // id of a job -> its element

let key = null;
let limit = STEP;
let turn = 0; // a loop whose turn is over ends

class Refused extends Error {}

async function ask(path, method = "GET") {
  const answer = await fetch(path, {
    method,
    headers: { Authorization: key },
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  if (answer.status === 401) throw new Refused();
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

const api = {
  transcript: (id) => ask(`/v2/transcript/${encodeURIComponent(id)}`),
  paragraphs: (id) => ask(`/v2/transcript/${encodeURIComponent(id)}/paragraphs`),
  remove: (id, name) => {
    at("sure-what").textContent = `Delete ${name}?`;
    at("delete").dataset.id = id;
    at("sure").showModal();
  },
};

async function look(mine) {
  const filter = at("filter").value;
  const query = new URLSearchParams(filter ? { limit, status: filter } : { limit });
  const [page, queue] = await Promise.all([ask(`/v2/transcript?${query}`), ask("/queue")]);
  if (mine !== turn) return;
  const { result_count: total } = page.page_details;
  put(at("count"), `${total} ${total === 1 ? "job" : "jobs"}`);
  at("none").hidden = total > 0;
  put(at("none"), filter ? "None is in this state." : "Nobody has asked for a transcript yet. What is asked for appears here by itself.");
  at("older").hidden = total <= page.transcripts.length || limit >= MOST;
  arrange(page.transcripts, queue);
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function arrange(jobs, queue) {
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
    // Only what is new is put into its place: moving an element would take the focus from it.
    if (list.children[place] !== element) list.insertBefore(element, list.children[place] ?? null);
    fill(element, job, queue);
  });
}

async function watch() {
  const mine = ++turn;
  while (mine === turn) {
    if (!document.hidden) {
      try {
        await look(mine);
        if (mine !== turn) return;
        link("live");
        open(true);
      } catch (error) {
        if (mine !== turn) return;
        if (error instanceof Refused || at("jobs").hidden) {
          forget(error instanceof Refused ? "This is not the key of this service." : `No answer: ${error.message}`);
          return;
        }
        link("no answer; trying again", true);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
  }
}

function link(text, lost = false) {
  put(at("link"), text);
  at("link").classList.toggle("lost", lost);
}

function open(yes) {
  if (at("jobs").hidden !== yes) return;
  for (const id of ["jobs", "link", "forget"]) at(id).hidden = !yes;
  at("ask").hidden = yes;
  (yes ? at("filter") : at("key")).focus();
}

function forget(why = "") {
  turn += 1;
  key = null;
  limit = STEP;
  shown.clear();
  at("list").replaceChildren();
  at("count").textContent = "";
  at("key-wrong").textContent = why;
  at("sure").close();
  open(false);
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  at("key").value = "";
  at("key-wrong").textContent = "";
  watch();
});
at("forget").addEventListener("click", () => forget());
at("filter").addEventListener("change", watch);
at("older").addEventListener("click", () => {
  limit = Math.min(limit + STEP, MOST);
  watch();
});
at("keep").addEventListener("click", () => at("sure").close());
at("delete").addEventListener("click", async () => {
  try {
    await ask(`/v2/transcript/${encodeURIComponent(at("delete").dataset.id)}`, "DELETE");
    at("sure").close();
    watch();
  } catch (error) {
    if (error instanceof Refused) forget("This is not the key of this service.");
    else at("sure-what").textContent = `It could not be deleted: ${error.message}`;
  }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && key !== null) watch();
});
