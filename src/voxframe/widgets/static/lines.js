// A list of passages in context: arrow keys move, and Enter or a click plays a passage.

/**
 * Creates the list. `show` replaces the lines by objects with name, when, who, more, left, match, right and title;
 * `none` is shown if there are none; `top: false` keeps the place in the list. `play(n)` is called for a line.
 */
function passageLines(label, guard, play) {
  const lines = h("div", { class: "vf-lines", role: "listbox", tabindex: "0", "aria-label": label, id: `vf-lines-${Math.random().toString(36).slice(2)}` });
  let current = 0;

  /** Marks the current line, which Enter plays. */
  function mark(scroll = true) {
    for (const line of lines.querySelectorAll('[aria-selected="true"]')) line.setAttribute("aria-selected", "false");
    const line = lines.children[current];
    if (!line?.id) return lines.removeAttribute("aria-activedescendant");
    line.setAttribute("aria-selected", "true");
    lines.setAttribute("aria-activedescendant", line.id);
    if (scroll) line.scrollIntoView({ block: "nearest" });
  }
  function act(n) {
    current = n;
    mark(false);
    play(n);
  }
  function show(rows, none, { top = true } = {}) {
    const made = rows.map(({ name, when, who, more, left, match, right, title }, n) =>
      h(
        "div",
        { class: "vf-line", role: "option", id: `${lines.id}-${n}`, "aria-selected": "false", title, "aria-label": `${[name, when, who, more].filter(Boolean).join(", ")}: ${left} ${match} ${right}`, "data-row": n },
        h("span", { class: "vf-where" }, h("span", {}, name), who ? h("span", {}, who) : "", h("time", {}, when)),
        ...(more === undefined ? [] : [h("span", { class: "vf-more-columns" }, more)]),
        h("span", { class: "vf-left" }, h("bdi", {}, left)),
        h("strong", {}, h("bdi", {}, match)),
        h("span", {}, h("bdi", {}, right)),
      ),
    );
    const scrolled = lines.scrollTop;
    lines.replaceChildren(...(made.length ? made : [h("p", { class: "vf-empty" }, none)]));
    if (top) current = 0;
    lines.scrollTop = top ? 0 : scrolled;
    mark(false);
  }
  lines.addEventListener("click", guard((event) => {
    const line = event.target.closest("[data-row]");
    if (line) act(Number(line.dataset.row));
  }));
  lines.addEventListener("keydown", guard((event) => {
    const last = lines.querySelectorAll("[data-row]").length - 1;
    const to = { ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + 10, PageUp: current - 10, Home: 0, End: last }[event.key];
    if (to !== undefined && last >= 0) {
      current = Math.max(0, Math.min(last, to));
      mark();
    } else if ((event.key === "Enter" || event.key === " ") && last >= 0) act(current);
    else return;
    event.preventDefault();
  }));
  return { lines, show };
}
