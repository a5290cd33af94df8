// Who speaks: labels by their names. Labels with one name are one person, with one lane and one colour.

/** People by order of their first passage, as `{ name, colour }`; `at[p]` is the number of who speaks in passage `p`. */
function peopleOf(passages, voices, names, turnNames) {
  const numbers = new Map();
  const own = (given, key) => (Object.hasOwn(given, key) ? given[key] : null); // a label may be called "constructor"
  const at = passages.voice.map((voice, p) => {
    const label = own(turnNames, passages.turn[p]) ?? voices[voice];
    const name = own(names, label) ?? (label || null);
    if (!numbers.has(name)) numbers.set(name, numbers.size);
    return numbers.get(name);
  });
  // As in the plots: colours go by the names in order, whoever has none is last.
  const ordered = [...numbers.keys()].filter((name) => name !== null).sort((a, b) => (a < b ? -1 : 1));
  const colour = (name) => (name === null ? ordered.length : ordered.indexOf(name)) % 8;
  return { at, list: [...numbers.keys()].map((name) => ({ name: name ?? "(unknown)", colour: colour(name) })) };
}
