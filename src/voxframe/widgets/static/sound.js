// The sound of a player: one for all views, so that redrawing a view does not stop it.

/** Returns the URL if it may be played, else null: http, https, blob and data:audio; file only if the page is a file. */
function playable(source) {
  const url = URL.canParse(source, location.href) ? new URL(source, location.href) : null;
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
    this.audio.addEventListener("timeupdate", () => this.stopThere()); // hidden pages get no animation frames
    // One sound at a time. Scripts of other widgets share only the document with this one.
    const hush = (other) => other !== this.audio && !other.muted && this.audio.pause();
    document.addEventListener(PLAYS, (event) => hush(event.detail), { signal });
    document.addEventListener("play", (event) => hush(event.target), { capture: true, signal });
    for (const name of ["pause", "seeked"]) this.audio.addEventListener(name, () => this.report(true));
    this.audio.addEventListener("error", () => this.next());
    model.on("change:time", () => model.get("time") !== this.reported && this.place(model.get("time")));
    model.on("change:_stop_at", () => ([this.stopAt] = model.get("_stop_at")));
    model.on("change:speed", () => (this.audio.playbackRate = model.get("speed")));
    model.on("msg:custom", (message) => {
      if (message.do === "play") this.play();
      else if (message.do === "pause") this.audio.pause();
      else if (message.do === "seek" && Math.abs(this.now - message.time) > 1) this.seek(message.time);
    });
    signal.addEventListener("abort", () => {
      this.audio.pause();
      this.audio.removeAttribute("src");
    });
    this.next();
  }

  /** Tries the next URL; if none is left, sets the error. */
  next() {
    const url = this.tries.shift();
    if (url) this.audio.src = url;
    else if (this.given) {
      this.audio.removeAttribute("src");
      this.fault =
        "This browser cannot play the recording: it cannot be reached, or its format is not supported. " +
        "If the notebook runs on another machine, put the recording in the folder that Jupyter serves, or give an https URL.";
    }
    this.audio.playbackRate = this.model.get("speed");
    this.tell();
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
    this.silenceOthers();
    this.audio.play().catch((error) => {
      if (error.name === "AbortError") return; // paused before it began
      if (error.name === "NotAllowedError") this.dispatchEvent(new CustomEvent("notice", { detail: "The browser requires a click before playing. Press Play." }));
    });
  }
  /** A user who presses play continues past the passage that a search or an answer led to. */
  toggle() {
    this.stopAt = 0;
    this.playing ? this.audio.pause() : this.play();
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
