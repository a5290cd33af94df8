// Names and corrections, typed in where they are read.

/** `rename` and `correct` open a field in a passage; what is typed goes to the model, which has it kept. */
function makeEditing(model, reader, passages, voices) {
  const free = (p) => {
    const row = reader.rows[p];
    reader.fill(row);
    getSelection().removeAllRanges();
    return row;
  };

  function rename(p) {
    const row = free(p);
    const place = row.querySelector(".vf-name");
    const [label, turn, before] = [voices[passages.voice[p]], String(passages.turn[p]), reader.person(p).name];
    const known = h("datalist", { id: `vf-people-${Math.random().toString(36).slice(2)}` });
    for (const { name } of reader.people.list) known.append(h("option", { value: name }));
    const field = h("input", { class: "vf-field", "aria-label": `Name of ${before}`, value: before, maxlength: "200", list: known.id });
    const once = h("input", { type: "checkbox" });
    // Who has no label can only be named turn by turn.
    once.checked = !label || turn in model.get("turn_names");
    once.disabled = !label;
    place.hidden = false;
    editInPlace(place, h("span", { class: "vf-naming" }, field, known, h("label", {}, once, " only this turn")), field, (text) => {
      const given = (text ?? "").trim().replace(/\s+/g, " ");
      if (text !== null && (given !== before || once.checked !== turn in model.get("turn_names"))) {
        const names = { ...model.get("names") };
        const turnNames = { ...model.get("turn_names") };
        delete turnNames[turn];
        if (!once.checked && given && given !== label) names[label] = given;
        else if (!once.checked) delete names[label];
        else if (given && given !== (names[label] ?? label)) turnNames[turn] = voices.find((other) => other && (names[other] ?? other) === given) ?? given;
        put(model, { names, turn_names: turnNames });
      }
      reader.again();
      row.focus({ preventScroll: true });
    });
  }

  function correct(p) {
    const row = free(p);
    const line = row.querySelector(".vf-text");
    if (!line) return;
    const before = passages.plain(p);
    const field = h("textarea", { class: "vf-field", "aria-label": "Corrected text; Enter keeps it, Escape does not", rows: Math.max(2, Math.ceil(before.length / 70)), dir: "auto" });
    field.value = before;
    editInPlace(line, field, field, (text) => {
      const given = (text ?? before).trim().replace(/\s+/g, " ");
      if (given === before) return;
      const corrections = { ...model.get("corrections") };
      const whole = passages.turnText(p, given);
      if (whole && whole !== passages.saidIn(p)) corrections[passages.turn[p]] = whole;
      else delete corrections[passages.turn[p]];
      put(model, { corrections });
      row.focus({ preventScroll: true });
    });
    field.setSelectionRange(field.value.length, field.value.length);
  }
  return { rename, correct };
}

/** Puts a form in place of an element until Enter, Escape, or the focus leaves it; `done` gets the field's text, or null. */
function editInPlace(element, form, field, done) {
  let over = false;
  const finish = (text) => {
    if (over) return;
    over = true;
    form.replaceWith(element);
    done(text);
  };
  form.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") finish(null);
    else if (event.key === "Enter" && !event.shiftKey) finish(field.value);
    else return;
    event.preventDefault();
  });
  form.addEventListener("focusout", (event) => form.contains(event.relatedTarget) || finish(field.value));
  element.replaceWith(form);
  field.focus();
  field.select?.();
}
