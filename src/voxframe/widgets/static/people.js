// Speakers by name. Labels with the same name are one person, with one lane and one colour.

/**
 * Returns `list`, the people as `{ name, colour }` in order of their first passage, and `at`: the person of each passage.
 * `colours` has the kernel's colour index of each label, and of each name that only single turns have.
 */
function peopleOf(passages, speakers, names, turnNames, colours) {
  const own = (given, key) => (Object.hasOwn(given, key) ? given[key] : null); // a label may be called "constructor"
  const numbers = new Map();
  const list = [];
  const at = passages.speaker.map((speaker, p) => {
    const label = own(turnNames, passages.turn[p]) ?? speakers[speaker];
    const name = own(names, label) ?? (label || null);
    const colour = own(colours, label) ?? Object.keys(colours).length % 8; // new name, the kernel has not responded yet
    if (!numbers.has(name)) numbers.set(name, list.push({ name: name ?? "(unknown)", colour }) - 1);
    const person = list[numbers.get(name)];
    person.colour = Math.min(person.colour, colour);
    return numbers.get(name);
  });
  return { at, list };
}
