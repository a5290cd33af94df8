// The sound of a player: one for all views, so that redrawing a view does not stop it.

/** The source that the kernel sends in messages; `media_server.KERNEL` in the kernel. */
const KERNEL = "kernel:";
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Returns the URL if it may be played, else null: http, https, blob and data:audio; file only if the page is a file.
 * An address of the kernel's machine only if the page was served there, too: elsewhere it is another machine's.
 */
function playable(source, _, sources) {
  if (source === KERNEL) return source;
  const url = URL.canParse(source, location.href) ? new URL(source, location.href) : null;
  if (url && sources.includes(KERNEL) && LOOPBACK.test(url.hostname) && !LOOPBACK.test(location.hostname)) return null;
  const allowed = url && (["http:", "https:", "blob:"].includes(url.protocol) || url.href.startsWith("data:audio/") ||
    (url.protocol === "file:" && location.protocol === "file:"));
  return allowed ? url.href : null;
}

/** Event by which a sound that starts stops the others on the page. */
const PLAYS = "voxframe-plays";

class Sound extends EventTarget {
  constructor(model, signal) {
    super();
    this.model = model;
    this.audio = new Audio();
    this.audio.preload = "metadata";
    this.tries = model.get("_sources").map(playable).filter(Boolean);
    this.given = model.get("_sources").length > 0;
    this.reported = model.get("time");
    this.sent = 0;
    [this.stopAt] = model.get("_stop_at");
    this.placed = false; // do not report the time before the first seek
    this.fault = "";
    this.asked = false; // true from the request to play until it plays or is paused
    this.inKernel = false; // true until the recording was fetched from the kernel
    this.parts = null;
    this.held = false; // true if the first part was received, and the others are loaded when it is to play
    for (const name of ["play", "pause", "ended", "seeked", "loadedmetadata", "durationchange", "waiting", "playing"])
      this.audio.addEventListener(name, () => this.tell());
    this.audio.addEventListener("loadedmetadata", () => {
      this.place(model.get("time"));
      this.placed = true;
    });
    this.audio.addEventListener("play", () => {
      if (this.playing) this.silenceOthers(); // otherwise another sound has started meanwhile
      this.tick();
    });
    this.audio.addEventListener("playing", () => (this.asked = false));
    this.audio.addEventListener("timeupdate", () => this.stopThere()); // hidden pages get no animation frames
    // One sound at a time. Scripts of other widgets share only the document with this one.
    const hush = (other) => other !== this.audio && !other.muted && this.pause();
    document.addEventListener(PLAYS, (event) => hush(event.detail), { signal });
    document.addEventListener("play", (event) => hush(event.target), { capture: true, signal });
    for (const name of ["pause", "seeked"]) this.audio.addEventListener(name, () => this.report(true));
    this.audio.addEventListener("error", () => this.next());
    model.on("change:time", () => model.get("time") !== this.reported && this.place(model.get("time")));
    model.on("change:_stop_at", () => ([this.stopAt] = model.get("_stop_at")));
    model.on("change:speed", () => (this.audio.playbackRate = model.get("speed")));
    model.on("msg:custom", (message, buffers) => {
      if (message.do === "play") this.play();
      else if (message.do === "pause") this.pause();
      else if (message.do === "part") this.take(message, buffers[0]);
      else if (message.do === "seek" && Math.abs(this.now - message.time) > 1) this.seek(message.time);
    });
    signal.addEventListener("abort", () => {
      this.pause();
      URL.revokeObjectURL(this.audio.src);
      this.audio.removeAttribute("src");
    });
    this.next();
  }

  /** Tries the next source; if none is left, sets the error. */
  next() {
    const url = this.tries.shift();
    this.inKernel = url === KERNEL;
    if (this.inKernel) { // the first part at once: it is all of a short recording, or of a damaged one
      this.audio.removeAttribute("src");
      this.parts = [];
      this.load();
    } else if (url) this.audio.src = url;
    else if (this.given) {
      this.audio.removeAttribute("src");
      this.fault = "This browser cannot play the recording: it cannot be reached, or its format is not supported.";
    }
    if (this.asked) this.play();
    this.audio.playbackRate = this.model.get("speed");
    this.tell();
  }

  /** Requests the part of the recording that follows those that were received. */
  load() {
    const received = this.parts.reduce((sum, part) => sum + part.byteLength, 0);
    this.model.send({ do: "part", from: received });
    return received;
  }
  /** Takes a part from the kernel. */
  take({ from, size, type }, part) {
    if (!this.inKernel || from !== this.parts?.reduce((sum, part) => sum + part.byteLength, 0)) return; // of another page
    if (part.byteLength) this.parts.push(part);
    if (part.byteLength && from + part.byteLength < size) {
      this.held = !this.asked;
      if (this.held) return;
      const percent = Math.floor((100 * this.load()) / size);
      this.dispatchEvent(new CustomEvent("notice", { detail: `Loading the recording from the kernel: ${percent} %` }));
      return;
    }
    if (this.parts.length) this.tries.unshift(URL.createObjectURL(new Blob(this.parts, { type })));
    this.parts = null;
    this.next();
  }

  get ready() { return this.given && !this.fault; }
  get playing() { return !this.audio.paused; }
  /** Current time in ms. */
  get now() { return this.audio.readyState ? this.audio.currentTime * 1000 : this.model.get("time"); }
  get length() { return Number.isFinite(this.audio.duration) ? this.audio.duration * 1000 : 0; }

  tell() { this.dispatchEvent(new Event("tell")); }

  place(ms) {
    if (this.audio.readyState) this.audio.currentTime = ms / 1000;
    this.tell();
  }

  /** Seeks to a time in ms. */
  seek(ms) {
    const to = Math.max(0, Math.round(this.length ? Math.min(ms, this.length) : ms));
    this.reported = to;
    put(this.model, { time: to });
    this.place(to);
  }

  play() {
    if (!this.ready) return;
    this.asked = true;
    this.silenceOthers();
    if (this.inKernel) {
      if (this.held) this.load(); // it plays when it is complete
      this.held = false;
      this.dispatchEvent(new CustomEvent("notice", { detail: "Loading the recording from the kernel" }));
      return;
    }
    this.audio.play().catch((error) => {
      if (error.name === "AbortError") return; // paused before it began
      if (error.name === "NotAllowedError") this.dispatchEvent(new CustomEvent("notice", { detail: "The browser requires a click before playing. Press Play." }));
    });
  }
  pause() {
    this.asked = false;
    this.audio.pause();
  }
  /** A user who presses play continues past the passage that a search or an answer led to. */
  toggle() {
    this.stopAt = 0;
    this.playing ? this.pause() : this.play();
  }

  silenceOthers() {
    document.dispatchEvent(new CustomEvent(PLAYS, { detail: this.audio }));
    for (const other of document.querySelectorAll("audio, video")) if (!other.muted) other.pause();
  }

  stopThere() {
    if (!this.stopAt || !this.playing || this.now < this.stopAt) return;
    this.stopAt = 0;
    this.audio.pause();
  }

  tick() {
    if (!this.playing) return;
    const [from, to] = this.model.get("interval");
    this.stopThere();
    if (this.model.get("loop") && to > from && this.now >= to) this.audio.currentTime = from / 1000;
    this.report(false);
    this.tell();
    requestAnimationFrame(() => this.tick());
  }

  /** Reports the time to the model, at most four times per second and when playing stops. */
  report(now) {
    if (!this.placed || !this.audio.readyState || (!now && performance.now() - this.sent < 250)) return;
    this.sent = performance.now();
    this.reported = Math.round(this.now);
    if (this.reported !== this.model.get("time")) put(this.model, { time: this.reported });
  }
}
