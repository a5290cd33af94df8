// A password field. Its text goes to the kernel in one message when the field is left, and is never in the model.

function renderSecretField({ model, el, signal }) {
  const { pane, guard, send: pass } = errorPane(model);
  const field = h("input", { class: "vf-input", type: "password", title: model.get("help") || false, autocomplete: "off", spellcheck: "false" });
  const state = h("span", { class: "vf-hint", role: "status" });
  const clear = h("button", { type: "button", class: "vf-button", onclick: guard(() => send("")) }, "Clear");
  const root = frame("vf-secret", model.get("title"));
  root.append(h("label", { class: "vf-labelled" }, h("span", { class: "vf-what" }, model.get("title")), field), state, clear, pane);
  el.append(root);
  const send = (text) => {
    pass({ text });
    field.value = "";
  };
  field.addEventListener("change", guard(() => field.value && send(field.value)));
  field.addEventListener("keydown", (event) => event.key === "Enter" && field.value && send(field.value));
  const show = () => {
    state.textContent = model.get("given") ? "Set (hidden, not saved)" : "";
    clear.hidden = !model.get("given");
  };
  model.on("change:given", show);
  signal.addEventListener("abort", () => (field.value = ""));
  show();
}

export default () => ({ render: renderSecretField });
