// Replaces the kernel in an exported page: keeps a widget's traits and renders it.

function startPage(widget) {
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const revive = (_, value) => (value && typeof value === "object" && "$bytes" in value ? bytes(value.$bytes) : value);
  const state = JSON.parse(document.getElementById("state").textContent, revive);
  const listeners = new EventTarget();
  const model = {
    get: (name) => state[name],
    set(name, value) {
      if (JSON.stringify(state[name]) === JSON.stringify(value)) return;
      state[name] = value;
      listeners.dispatchEvent(new Event(`change:${name}`));
    },
    save_changes() {},
    send() {},
    on: (name, callback) => listeners.addEventListener(name, callback),
    off: (name, callback) => listeners.removeEventListener(name, callback),
  };
  const signal = new AbortController().signal;
  widget.initialize?.({ model, signal });
  widget.render({ model, el: document.getElementById("widget"), signal });
}
