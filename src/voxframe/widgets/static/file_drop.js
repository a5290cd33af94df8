// A drop zone for recordings. Files are sent to the kernel in chunks; each chunk is sent when the kernel requests it.

const CHUNK_BYTES = 1 << 20;

function renderFileDrop({ model, el, signal }) {
  const { pane, guard, send } = errorPane(model);
  const root = frame("vf-drop", "Recordings");
  const picker = h("input", { type: "file", multiple: true, class: "vf-unseen", accept: "audio/*,video/*", tabindex: "-1", "aria-hidden": "true" });
  const button = h("button", { type: "button", class: "vf-button", onclick: guard(() => picker.click()) }, "Choose files");
  const zone = h("div", { class: "vf-zone" }, "Drop recordings here, or ", button, picker);
  const list = h("ul", { class: "vf-files", "aria-label": "Files" });
  const status = h("div", { class: "vf-unseen", role: "status" });
  root.append(zone, list, status, pane);
  el.append(root);
  const uploads = new Map(); // unfinished uploads by key

  function take(files) {
    for (const file of files) {
      const key = Math.random().toString(36).slice(2);
      const bar = h("progress", { max: Math.max(1, file.size), value: "0", "aria-label": `${file.name}` });
      uploads.set(key, { file, bar });
      send({ do: "begin", key, name: file.name, size: file.size });
    }
    show();
  }
  const onMessage = guard((message) => {
    const own = uploads.get(message.key);
    if (!own) return;
    if (message.do === "next") {
      own.bar.value = message.at;
      own.file.slice(message.at, message.at + CHUNK_BYTES).arrayBuffer().then(
        (data) => model.send({ do: "chunk", key: message.key, at: message.at }, undefined, [data]),
        () => {
          uploads.delete(message.key);
          model.send({ do: "cancel", key: message.key });
          show();
        },
      );
      return;
    }
    uploads.delete(message.key);
    status.textContent = message.do === "done" ? `${own.file.name} uploaded` : `${own.file.name} could not be uploaded`;
    show();
  });

  const note = (n) => {
    const [bad, text] = model.get("_notes")[n] ?? [false, ""];
    return h("em", { class: bad ? "vf-damaged" : "vf-status" }, text);
  };
  function show() {
    const here = model.get("names").map((name, n) =>
      h("li", {}, h("span", { title: name }, name), note(n), h("button", { type: "button", class: "vf-button", "aria-label": `Remove ${name}`, title: "Remove", onclick: guard(() => send({ do: "remove", n })) }, icon("close"))),
    );
    const coming = Array.from(uploads.values(), ({ file, bar }) => h("li", {}, h("span", {}, file.name), bar));
    list.replaceChildren(...here, ...coming);
    list.hidden = !here.length && !coming.length;
  }

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
  model.on("change:names", show);
  model.on("msg:custom", onMessage);
  signal.addEventListener("abort", () => {
    for (const key of uploads.keys()) model.send({ do: "cancel", key });
  });
  show();
}

export default () => ({ render: renderFileDrop });
