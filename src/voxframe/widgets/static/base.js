// What every widget here is made of. Text from a transcript reaches the page as text nodes only: `h` never parses markup.

/**
 * An element: attributes by name, `on*` as listeners, children as nodes or text.
 * What can have the focus carries Lumino's mark: else JupyterLab's own keys (a, b, x, m, ...) answer what is typed on it.
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

/** Columns come as bytes that may begin anywhere in a message; typed arrays need their own aligned copy. */
const aligned = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
const int32 = (view) => (view ? new Int32Array(aligned(view)) : new Int32Array(0));
const float32 = (view) => (view ? new Float32Array(aligned(view)) : new Float32Array(0));

/** Texts as `columns.texts` packs them: UTF-8 bytes, and where each text begins and ends. Decoded when asked for. */
function texts(data, offsets) {
  const bytes = data ? new Uint8Array(aligned(data)) : new Uint8Array(0);
  const edges = int32(offsets);
  const decoder = new TextDecoder();
  return {
    length: Math.max(0, edges.length - 1),
    at: (i) => (i + 1 < edges.length ? decoder.decode(bytes.subarray(edges[i], edges[i + 1])) : ""),
  };
}

/** How many of the sorted values are below `value` (or equal to it, with `equal`). */
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

/** Milliseconds as m:ss or h:mm:ss, with `digits` of a second where one looks that closely. */
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

/** The root of a widget. */
function frame(kind, label) {
  return h("section", { class: `voxframe ${kind}`, "aria-label": label });
}

/** The pane below a widget that says in words what went wrong, in the kernel or here. */
function errorPane(model) {
  const pane = h("div", { class: "vf-error", role: "alert", hidden: true });
  let own = "";
  const show = () => {
    const said = [model.get("error"), own].filter(Boolean).join("\n");
    pane.textContent = said;
    pane.hidden = !said;
  };
  model.on("change:error", show);
  show();
  return {
    pane,
    say(message) {
      own = message;
      show();
    },
    /** A listener whose failure is shown instead of lost in the console. */
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

/** A colour of the style sheet as the canvas wants it: resolved for the theme that is on. */
function resolver(root) {
  const probe = h("i", { class: "vf-probe", "aria-hidden": "true" });
  root.append(probe);
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
}

/**
 * Calls back when the theme of the notebook or of the system changes, until `signal` aborts. And once more a frame later:
 * JupyterLab hides its page for one while it changes its theme, and what is hidden has no width to draw in.
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

/** Runs a drawing at most once a frame, however often it is asked for. */
function eachFrame(draw) {
  let asked = 0;
  return () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      draw();
    });
  };
}

/** A canvas as sharp as the screen; returns its context and size in CSS pixels. */
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

/** Sets traits and sends them to the kernel, where there is one. */
function put(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

/** The list of keys that a widget answers to, folded away behind a button. */
function keyHelp(keys) {
  const list = h("dl", { class: "vf-keys", hidden: true });
  for (const [key, does] of keys) list.append(h("dt", {}, h("kbd", {}, key)), h("dd", {}, does));
  const button = h("button", { type: "button", class: "vf-button", "aria-label": "Keys", "aria-expanded": "false" }, "?");
  button.addEventListener("click", () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
  });
  return { button, list };
}

/** Pictures on buttons, drawn so that no font has to have them; 16 units wide and high. */
const ICONS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z",
  loop: "M11 1l4 3-4 3V5H5Q4 5 4 6v1H2V6Q2 3 5 3h6zM5 15l-4-3 4-3v2h6q1 0 1-1V9h2v1q0 3-3 3H5z",
  pen: "M11.5 1.5l3 3-9 9-4 1 1-4z",
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
