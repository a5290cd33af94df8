// The sound of a player: one for all its views, so that a view that is drawn again does not stop it.

/** Addresses that may be played: of the web, made in this page, sound itself, and files where the page is one. */
function playable(address) {
  const url = URL.canParse(address, location.href) ? new URL(address, location.href) : null;
  const allowed = url && (["http:", "https:", "blob:"].includes(url.protocol) || url.href.startsWith("data:audio/") ||
    (url.protocol === "file:" && location.protocol === "file:"));
  return allowed ? url.href : null;
}

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
    this.placed = false; // before it stands where it should, it has nothing to report
    this.fault = "";
    for (const name of ["play", "pause", "ended", "seeked", "loadedmetadata", "durationchange", "waiting", "playing"])
      this.audio.addEventListener(name, () => this.tell());
    this.audio.addEventListener("loadedmetadata", () => {
      this.place(model.get("time"));
      this.placed = true;
    });
    this.audio.addEventListener("play", () => this.tick());
    for (const name of ["pause", "seeked"]) this.audio.addEventListener(name, () => this.report(true));
    this.audio.addEventListener("error", () => this.next());
    model.on("change:time", () => model.get("time") !== this.reported && this.place(model.get("time")));
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

  /** Tries the next address; with none left, says so. */
  next() {
    const address = this.tries.shift();
    if (address) this.audio.src = address;
    else if (this.given) {
      this.audio.removeAttribute("src");
      this.fault =
        "The recording cannot be played in this browser: it is out of reach, or of a kind the browser does not play. " +
        "Where the notebook runs on another machine, put the recording in the folder Jupyter serves, or give an https address.";
    }
    this.audio.playbackRate = this.model.get("speed");
    this.tell();
  }

  get ready() { return this.given && !this.fault; }
  get playing() { return !this.audio.paused; }
  /** Where it stands, in ms. */
  get now() { return this.audio.readyState ? this.audio.currentTime * 1000 : this.model.get("time"); }
  get length() { return Number.isFinite(this.audio.duration) ? this.audio.duration * 1000 : 0; }

  tell() { this.dispatchEvent(new Event("tell")); }

  place(ms) {
    if (this.audio.readyState) this.audio.currentTime = ms / 1000;
    this.tell();
  }

  /** Jumps to a moment. */
  seek(ms) {
    const to = Math.max(0, Math.round(this.length ? Math.min(ms, this.length) : ms));
    this.reported = to;
    put(this.model, { time: to });
    this.place(to);
  }

  play() {
    if (!this.ready) return;
    this.audio.play().catch((error) => {
      if (error.name === "AbortError") return; // paused before it began
      if (error.name === "NotAllowedError") this.dispatchEvent(new CustomEvent("said", { detail: "The browser wants a click before it plays: press play." }));
    });
  }
  toggle() { this.playing ? this.audio.pause() : this.play(); }

  tick() {
    if (!this.playing) return;
    const [from, to] = this.model.get("interval");
    if (this.model.get("loop") && to > from && this.now >= to) this.audio.currentTime = from / 1000;
    this.report(false);
    this.tell();
    requestAnimationFrame(() => this.tick());
  }

  /** Sets the time for those linked to it: four times a second, and whenever it stops. */
  report(now) {
    if (!this.placed || !this.audio.readyState || (!now && performance.now() - this.sent < 250)) return;
    this.sent = performance.now();
    this.reported = Math.round(this.now);
    if (this.reported !== this.model.get("time")) put(this.model, { time: this.reported });
  }
}
