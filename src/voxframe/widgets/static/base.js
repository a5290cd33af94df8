// Functions that all widgets use. Transcript text reaches the page only as text nodes: `h` never parses markup.

/**
 * Creates an element: attributes by name, `on*` as listeners, children as nodes or text.
 * Focusable elements get Lumino's attribute that turns off JupyterLab's own shortcuts (a, b, x, m, ...) on them.
 */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if ("tabindex" in attributes || /^(button|input|select|textarea)$/.test(tag)) element.dataset.lmSuppressShortcuts = "true";
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** Column bytes may start at any offset of a message; typed arrays need an aligned copy. */
const aligned = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
const int32 = (view) => (view ? new Int32Array(aligned(view)) : new Int32Array(0));
const float32 = (view) => (view ? new Float32Array(aligned(view)) : new Float32Array(0));

/** Texts as `pack_texts` packs them: UTF-8 bytes and offsets. Each text is decoded on access. */
function texts(data, offsets) {
  const bytes = data ? new Uint8Array(aligned(data)) : new Uint8Array(0);
  const edges = int32(offsets);
  const decoder = new TextDecoder();
  return {
    length: Math.max(0, edges.length - 1),
    at: (i) => (i + 1 < edges.length ? decoder.decode(bytes.subarray(edges[i], edges[i + 1])) : ""),
  };
}

/** Number of sorted values below `value` (with `equal`: below or equal). */
function below(values, value, equal = false) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < value || (equal && values[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Milliseconds as m:ss or h:mm:ss, with `digits` decimals of a second. */
function clock(ms, digits = 0) {
  const unit = 10 ** digits;
  const parts = Math.round((Math.max(0, ms) / 1000) * unit);
  const seconds = Math.floor(parts / unit);
  const two = (n) => String(n).padStart(2, "0");
  const fraction = digits ? "." + String(parts % unit).padStart(digits, "0") : "";
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}${fraction}`;
  return `${minutes}:${two(seconds % 60)}${fraction}`;
}

/** Creates the root element of a widget. */
function frame(kind, label) {
  return h("div", { class: `voxframe ${kind}`, role: "group", "aria-label": label });
}

/** What `put` says if there is no kernel, by model; not of widgets whose changes work without one. */
const panes = new WeakMap();

/**
 * Creates the error pane below a widget: it shows errors of the kernel and of this page. With `needsKernel`, it also
 * says that a change of a trait had no effect.
 */
function errorPane(model, { needsKernel = false } = {}) {
  const pane = h("div", { class: "vf-error", role: "alert", hidden: true });
  let own = "";
  const show = () => {
    const text = [model.get("error"), own].filter(Boolean).join("\n");
    pane.textContent = text;
    pane.hidden = !text;
  };
  model.on("change:error", show);
  show();
  if (needsKernel) panes.set(model, () => {
    own = KERNEL_GONE;
    show();
  });
  return {
    pane,
    say(message) {
      own = message;
      show();
    },
    /** Sends a message to the kernel, or shows that no kernel is running or responds. */
    send(message) {
      const tell = (text) => {
        own = text;
        show();
      };
      const received = () => [KERNEL_GONE, KERNEL_WAITS].includes(own) && tell("");
      askKernel(model, message, received, (text) => tell(text === KERNEL_SILENT ? KERNEL_WAITS : text));
    },
    /** Wraps a listener so that its errors are shown, not only logged to the console. */
    guard: (listener) => (...given) => {
      try {
        return listener(...given);
      } catch (error) {
        own = `This widget failed: ${error.message}. Run its cell again.`;
        show();
        throw error;
      }
    },
  };
}

const KERNEL_GONE = "Not sent: the kernel is not running. Run the cell again, then repeat this.";
const KERNEL_SILENT =
  "Not saved yet: the kernel has not responded. If it is busy, it saves the change when it is free. If it is dead, run the cell again, then repeat the change.";
const KERNEL_WAITS = "The kernel has not responded. If it is busy, it does this when it is free. If it is dead, run the cell again, then repeat this.";
/** Milliseconds to wait for a response before showing that the kernel has not responded. */
const KERNEL_WAIT_MS = 3000;

/** True if no kernel is running, as far as the page can tell; only JupyterLab and Voila report it. */
function kernelGone(model) {
  const manager = model.widget_manager;
  if (!manager || !("kernel" in manager)) return false;
  const { kernel } = manager;
  return !kernel || kernel.isDisposed || ["dead", "terminating"].includes(kernel.status);
}

/** Sends a message to the kernel. Calls `saved` when the kernel confirms it, or `failed` with the reason. */
function askKernel(model, message, saved, failed) {
  const n = Math.random().toString(36).slice(2);
  if (kernelGone(model)) return failed(KERNEL_GONE);
  const timer = setTimeout(() => failed(KERNEL_SILENT), KERNEL_WAIT_MS);
  const responded = (response) => {
    if (response.do !== "received" || response.n !== n) return;
    clearTimeout(timer);
    model.off("msg:custom", responded);
    saved();
  };
  model.on("msg:custom", responded);
  try {
    model.send({ ...message, n });
  } catch {
    clearTimeout(timer);
    failed(KERNEL_GONE);
  }
}

/** A click listener that acts once per rendering. The button stays enabled, because a disabled one loses the focus. */
const once = (act) => ({ currentTarget: button }) => {
  if (button.getAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  act();
};

/** Lets the buttons of a part act again, for example after an action failed and nothing was rendered. */
function allowAgain(part) {
  for (const button of part.querySelectorAll("[aria-disabled]")) button.removeAttribute("aria-disabled");
}

/** Redraws a part. The focus stays on the control with the same `data-key`; if that is gone, on the part. */
function keepFocus(part, draw) {
  const had = document.activeElement;
  const inside = part !== had && part.contains(had);
  const key = had?.dataset.key;
  draw();
  if (!inside || part.contains(document.activeElement)) return;
  const same = [...part.querySelectorAll("[data-key]")].find((control) => control.dataset.key === key && !control.disabled && !control.hidden);
  if (!same && !part.hasAttribute("tabindex")) part.tabIndex = -1;
  (same ?? part).focus({ preventScroll: true });
}

/** Returns a function that resolves a CSS variable to a colour for a canvas, in the current theme. */
function resolver(root) {
  const probe = h("i", { class: "vf-probe", "aria-hidden": "true" });
  root.append(probe);
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
}

/**
 * Calls back when the theme of the notebook or the system changes, until `signal` aborts. It calls again a frame later,
 * because JupyterLab hides its page for one frame, and hidden elements have no width.
 */
function onTheme(callback, signal) {
  const changed = () => {
    callback();
    requestAnimationFrame(() => requestAnimationFrame(callback));
  };
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
}

/** Limits a drawing function to one call per frame. */
function eachFrame(draw) {
  let pending = 0;
  return () => {
    pending ||= requestAnimationFrame(() => {
      pending = 0;
      draw();
    });
  };
}

/** Sizes a canvas (CSS pixels) for the screen's resolution, clears it and returns its context. */
function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, t] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Sets traits and sends them to the kernel, if there is one. */
function put(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
  if (panes.has(model) && kernelGone(model)) panes.get(model)();
}

/** Creates the list of keyboard shortcuts of a widget and the button that shows it; the key "?" shows it, too. */
function keyHelp(keys, root) {
  const list = h("dl", { class: "vf-keys", hidden: true });
  for (const [key, action] of [...keys, ["?", "Show or hide this list"]]) list.append(h("dt", {}, h("kbd", {}, key)), h("dd", {}, action));
  const button = h("button", { type: "button", class: "vf-button", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts", "aria-expanded": "false" }, "?");
  button.addEventListener("click", () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "?" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    event.stopPropagation(); // an embedded player has its own list
    button.click();
  });
  return { button, list };
}

/** Icons as SVG paths, 16 by 16 units, so that they do not depend on fonts. */
const ICONS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z",
  loop: "M11 1l4 3-4 3V5H5Q4 5 4 6v1H2V6Q2 3 5 3h6zM5 15l-4-3 4-3v2h6q1 0 1-1V9h2v1q0 3-3 3H5z",
  pen: "M11.5 1.5l3 3-9 9-4 1 1-4z",
  undo: "M6 2v3h4q4 0 4 4t-4 4H5v-2h5q2 0 2-2t-2-2H6v3L1.5 6z",
  redo: "M10 2v3H6Q2 5 2 9t4 4h5v-2H6Q4 11 4 9t2-2h4v3l4.5-4z",
  more: "M2 7h2.5v2.5H2zM6.75 7h2.5v2.5h-2.5zM11.5 7H14v2.5h-2.5z",
  close: "M3 4.4L4.4 3 8 6.6 11.6 3 13 4.4 9.4 8 13 11.6 11.6 13 8 9.4 4.4 13 3 11.6 6.6 8z",
};
function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "vf-icon");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}
