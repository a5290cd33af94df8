// A place to drop recordings. Each goes to the kernel piece by piece, the next when the last was taken.

const PIECE_BYTES = 1 << 20;

function renderFileDrop({ model, el, signal }) {
  const { pane, guard } = errorPane(model);
  const root = frame("vf-drop", "Recordings");
  const picker = h("input", { type: "file", multiple: true, class: "vf-unseen", accept: "audio/*,video/*", tabindex: "-1", "aria-hidden": "true" });
  const button = h("button", { type: "button", class: "vf-button", onclick: guard(() => picker.click()) }, "Choose files");
  const zone = h("div", { class: "vf-zone" }, "Drop recordings here, or ", button, picker);
  const list = h("ul", { class: "vf-files", "aria-label": "Files" });
  const status = h("div", { class: "vf-unseen", role: "status" });
  root.append(zone, list, status, pane);
  el.append(root);
  const going = new Map(); // files on their way, by key

  function take(files) {
    for (const file of files) {
      const key = Math.random().toString(36).slice(2);
      const bar = h("progress", { max: Math.max(1, file.size), value: "0", "aria-label": `${file.name}, on its way` });
      going.set(key, { file, bar });
      model.send({ do: "begin", key, name: file.name, size: file.size });
    }
    show();
  }
  const said = guard((message) => {
    const own = going.get(message.key);
    if (!own) return;
    if (message.do === "next") {
      own.bar.value = message.at;
      own.file.slice(message.at, message.at + PIECE_BYTES).arrayBuffer().then(
        (data) => model.send({ do: "piece", key: message.key, at: message.at }, undefined, [data]),
        () => {
          going.delete(message.key);
          model.send({ do: "stop", key: message.key });
          show();
        },
      );
      return;
    }
    going.delete(message.key);
    status.textContent = message.do === "done" ? `${own.file.name} is here` : `${own.file.name} could not be taken`;
    show();
  });

  function show() {
    const here = model.get("names").map((name, n) =>
      h("li", {}, h("span", {}, name), h("button", { type: "button", class: "vf-button", "aria-label": `Leave out ${name}`, title: "Leave out", onclick: guard(() => model.send({ do: "leave", n })) }, icon("close"))),
    );
    const coming = Array.from(going.values(), ({ file, bar }) => h("li", {}, h("span", {}, file.name), bar));
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
  model.on("msg:custom", said);
  signal.addEventListener("abort", () => {
    for (const key of going.keys()) model.send({ do: "stop", key });
  });
  show();
}

export default () => ({ render: renderFileDrop });
