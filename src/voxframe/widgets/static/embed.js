// The player embedded in another widget, which the trait `player` refers to.

/** Shows the player of a widget in `place`, and starts it when the kernel sends `play`. */
function embedPlayer(model, place, signal, guard) {
  let [shown, view, pending] = [null, null, false];
  const play = () => {
    if (!pending || !view) return;
    pending = false;
    view.model.trigger("msg:custom", { do: "play" });
  };
  const show = async () => {
    const reference = model.get("player");
    if (reference === shown) return;
    shown = reference;
    view?.remove();
    view = null;
    place.hidden = !reference;
    if (!reference) return;
    const child = await model.widget_manager.get_model(reference.replace("IPY_MODEL_", ""));
    const created = await model.widget_manager.create_view(child);
    if (signal.aborted || shown !== reference) return created.remove();
    view = created;
    place.replaceChildren(created.el);
    play();
  };
  const shows = guard(() => show().catch(() => (place.hidden = true))); // a page without a kernel may not have the player
  const onMessage = (message) => {
    if (message.do !== "play") return;
    pending = true;
    play();
  };
  model.on("change:player", shows);
  model.on("msg:custom", onMessage);
  signal.addEventListener("abort", () => view?.remove());
  shows();
}
