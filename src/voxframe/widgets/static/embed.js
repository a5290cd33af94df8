// A player inside another widget: the one that the trait `player` refers to.

/** Keeps the player of a widget in `place`, and has it play when the kernel says so. */
function embedPlayer(model, place, signal, guard) {
  let [shown, view, wanted] = [null, null, false];
  const play = () => {
    if (!wanted || !view) return;
    wanted = false;
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
    const made = await model.widget_manager.create_view(child);
    if (signal.aborted || shown !== reference) return made.remove();
    view = made;
    place.replaceChildren(made.el);
    play();
  };
  const shows = guard(() => show().catch(() => (place.hidden = true))); // without its kernel, a page may lack the player
  const said = (message) => {
    if (message.do !== "play") return;
    wanted = true;
    play();
  };
  model.on("change:player", shows);
  model.on("msg:custom", said);
  signal.addEventListener("abort", () => view?.remove());
  shows();
}
