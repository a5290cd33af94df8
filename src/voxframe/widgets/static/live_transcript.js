// LiveTranscript: sends microphone samples to the kernel and shows the transcribed text.

const CAPTURE = `registerProcessor("voxframe-capture", class extends AudioWorkletProcessor {
  constructor() { super(); this.held = new Int16Array(Math.round(sampleRate / 10)); this.count = 0; this.peak = 0; }
  process([input]) {
    for (const value of input[0] ?? []) {
      const clipped = Math.max(-1, Math.min(1, value));
      this.peak = Math.max(this.peak, Math.abs(clipped));
      this.held[this.count++] = clipped * 32767;
      if (this.count === this.held.length) {
        this.port.postMessage([this.held.buffer, this.peak], [this.held.buffer]);
        this.held = new Int16Array(Math.round(sampleRate / 10));
        this.count = this.peak = 0;
      }
    }
    return true;
  }
});`;

/** The microphone, shared by all views of a widget. */
class BrowserMicrophone extends EventTarget {
  constructor(model, signal) {
    super();
    this.model = model;
    this.signal = signal;
    this.stream = null;
    this.asking = false; // for permission
    this.level = 0;
    model.on("msg:custom", (message) => message.do === "stop" && this.stop());
    signal.addEventListener("abort", () => this.stop());
  }

  async start() {
    if (this.asking || this.stream || this.model.get("running")) return;
    if (!navigator.mediaDevices?.getUserMedia)
      throw new Error("This page cannot use the microphone: browsers allow it only on https and localhost.");
    this.asking = true;
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } finally {
      this.asking = false;
    }
    if (this.signal.aborted || this.model.get("running")) return this.stop(); // closed or started elsewhere meanwhile
    try {
      this.context = new AudioContext();
      const code = URL.createObjectURL(new Blob([CAPTURE], { type: "text/javascript" }));
      await this.context.audioWorklet.addModule(code).finally(() => URL.revokeObjectURL(code));
      this.model.send({ do: "listen", rate: this.context.sampleRate });
      const capture = new AudioWorkletNode(this.context, "voxframe-capture", { numberOfOutputs: 0 });
      capture.port.onmessage = ({ data: [samples, peak] }) => {
        if (!this.stream) return;
        this.level = peak;
        this.dispatchEvent(new Event("level"));
        this.model.send({ do: "sound" }, undefined, [samples]);
      };
      this.context.createMediaStreamSource(this.stream).connect(capture);
      await this.context.resume();
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  stop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    this.context?.close();
    this.context = null;
    this.level = 0;
    this.dispatchEvent(new Event("level"));
  }
}

const MICROPHONE_ERRORS = { NotAllowedError: "Microphone access was denied. Allow it for this page, then press Microphone again.", NotFoundError: "No microphone was found." };

const LIVE_KEYS = [
  ["M", "Start the microphone, or stop"],
  ["S", "Save to the corpus"],
  ["↑ ↓", "Scroll the transcript, when it has the focus"],
];

function renderLiveTranscript({ model, el, signal }, microphone) {
  const root = frame("vf-live", model.get("title"));
  const { pane, say, guard, send } = errorPane(model, { needsKernel: true });
  const listen = h("button", { type: "button", class: "vf-button vf-do", onclick: guard(() => {
    say("");
    microphone.start().catch((error) => say(MICROPHONE_ERRORS[error.name] ?? error.message));
  }) }, "Microphone");
  const path = h("input", { class: "vf-input vf-path", type: "text", placeholder: "or a file on the kernel's machine", "aria-label": "File", oninput: guard(() => put(model, { file: path.value })) });
  const stream = h("button", { type: "button", class: "vf-button", onclick: guard(() => send({ do: "file", file: path.value })) }, "Stream file");
  const stop = h("button", { type: "button", class: "vf-button", onclick: guard(() => send({ do: "stop" })) }, "Stop");
  const clear = h("button", { type: "button", class: "vf-button", onclick: guard(() => send({ do: "clear" })) }, "Clear");
  const save = h("button", { type: "button", class: "vf-button", title: "Add the transcript and its sound to the corpus", onclick: guard(() => send({ do: "save" })) }, "Save");
  const elapsed = h("span", { class: "vf-status vf-elapsed", role: "timer", "aria-label": "Time of the session" });
  const meter = h("meter", { min: "0", max: "1", value: "0", "aria-label": "Microphone level" });
  const busy = h("span", { class: "vf-status", role: "status" });
  const help = keyHelp(LIVE_KEYS, root);
  const bar = h("div", { class: "vf-bar" }, h("strong", { class: "vf-title" }, model.get("title")), listen, path, stream, stop, elapsed, meter, busy, h("span", { class: "vf-space" }), save, clear, help.button);
  const finals = h("div", { class: "vf-finals", role: "log", "aria-label": "Transcript", tabindex: "0" });
  const partial = h("p", { class: "vf-partial", "aria-hidden": "true" });
  const paper = h("div", { class: "vf-paper" }, finals, partial);
  root.append(bar, help.list, paper, pane);
  el.append(root);

  root.addEventListener("keydown", guard((event) => {
    if (event.target === path || event.ctrlKey || event.metaKey || event.altKey) return;
    const button = { m: model.get("running") ? stop : listen, s: save }[event.key.toLowerCase()];
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }));
  /** Scrolls to new text, unless the user has scrolled up. */
  function follow(change) {
    const near = paper.scrollHeight - paper.scrollTop - paper.clientHeight < 40;
    change();
    if (near) paper.scrollTop = paper.scrollHeight;
  }
  const showFinals = guard(() => follow(() => {
    const given = model.get("_finals");
    if (given.length < finals.children.length) finals.replaceChildren();
    for (const [n, final] of given.entries()) {
      if (n < finals.children.length) continue;
      const before = given[n - 1]?.session ?? final.session;
      finals.append(h("p", { class: final.session === before ? null : "vf-session", "data-session": `Session ${final.session}` }, h("time", { class: "vf-status" }, final.start_ms == null ? "" : clock(final.start_ms)), h("span", {}, final.text)));
    }
    empty();
  }));
  const showPartial = guard(() => follow(() => {
    partial.textContent = model.get("_partial");
    empty();
  }));
  const empty = () => root.classList.toggle("vf-nothing", !finals.children.length && !partial.textContent);
  const showState = guard(() => {
    const running = model.get("running");
    const had = document.activeElement;
    for (const button of [listen, stream, clear, path]) button.disabled = running;
    stop.disabled = !running;
    save.disabled = running || !model.get("_finals").length;
    if (root.contains(had) && had.disabled) (running ? stop : listen).focus(); // a disabled button loses the focus
    busy.textContent = model.get("busy") ? `${model.get("busy")} …` : model.get("_saved");
    if (document.activeElement !== path) path.value = model.get("file");
  });
  const tick = () => {
    if (model.get("running") && model.get("_since")) elapsed.textContent = clock(Math.max(0, Date.now() - model.get("_since")));
  };
  const timer = setInterval(tick, 250);
  signal.addEventListener("abort", () => clearInterval(timer));
  const level = () => {
    meter.hidden = !microphone.stream;
    meter.value = microphone.level;
  };
  microphone.addEventListener("level", level, { signal });
  model.on("change:_finals", showFinals);
  model.on("change:_partial", showPartial);
  for (const name of ["running", "busy", "file", "_finals", "_saved"]) model.on(`change:${name}`, showState);
  showFinals();
  showPartial();
  showState();
  level();
}

export default () => {
  let microphone;
  return {
    initialize: ({ model, signal }) => void (microphone = new BrowserMicrophone(model, signal)),
    render: (given) => renderLiveTranscript(given, microphone),
  };
};
