// The words of a transcript in passages (turns; long turns are split).

/** Returns a word as searches compare it: without case, accents and punctuation, as `fold` does in the kernel. */
const searchForm = (word) =>
  word.normalize("NFKC").toLowerCase().replaceAll("ß", "ss")
    .replace(/(?<=\p{Nd}),(?=\p{Nd})|(?!(?<=\p{Nd})\.(?=\p{Nd}))(?!(?=[\u0900-\u1cff])\p{M})[^\p{L}\p{N}]/gu, "")
    .normalize("NFD").replace(/[\u0300-\u036f]/g, "").normalize("NFC");

const SEARCH_RULES = __SEARCH_RULES__; // filled in by the kernel
const [UNSPACED, HYPHEN] = [SEARCH_RULES.unspaced, SEARCH_RULES.hyphen].map((pattern) => new RegExp(pattern, "u"));
const CLUSTER = new RegExp(SEARCH_RULES.cluster, "gu");
const FUNCTION_WORDS = new Set(SEARCH_RULES.functionWords);

/** Returns the parts of a word between hyphens, and its characters in scripts without spaces, as `pieces` does. */
const pieces = (word) => word.normalize("NFKC").split(HYPHEN).flatMap((part) => part.match(CLUSTER) ?? []);

/** Returns the terms of a word of a query: the parts between wildcards of each. */
const termsOf = (word) => {
  const unspaced = UNSPACED.test(word);
  if (unspaced && word.includes("*"))
    return word.replace(/^\*+|\*+$/g, "").split("*").join(" * ").split(/\s+/).filter(Boolean)
      .flatMap((part) => (part === "*" ? [{ parts: ["", ""], hyphen: false }] : termsOf(part)));
  const terms = pieces(word).map((part) => ({ parts: part.split("*").map(searchForm), hyphen: !unspaced }))
    .filter(({ parts }) => parts.length > 1 || parts[0]);
  if (terms.length) terms.at(-1).hyphen = false;
  return terms;
};

/** Yields a phrase and its other forms, with compound words joined and divided; see `variants` of the kernel. */
function* variantsOf(terms, isUsed) {
  const plain = ({ parts }) => (parts.length === 1 ? parts[0] : "");
  const compounds = (a, b) => a && b && !(/^\p{Nd}+$/u.test(a) && /^\p{Nd}+$/u.test(b)) && !UNSPACED.test(a + b);
  yield [terms, null];
  for (let n = 0; n + 1 < terms.length; n++) {
    const [a, b] = [plain(terms[n]), plain(terms[n + 1])];
    if (compounds(a, b) && (terms[n].hyphen || !FUNCTION_WORDS.has(a)) && isUsed(a + b))
      yield [[...terms.slice(0, n), { parts: [a + b] }, ...terms.slice(n + 2)], null];
  }
  for (const [n, term] of terms.entries())
    for (let cut = 1; cut < plain(term).length; cut++) {
      const [a, b] = [plain(term).slice(0, cut), plain(term).slice(cut)];
      if (compounds(a, b) && isUsed(a) && isUsed(b))
        yield [[...terms.slice(0, n), { parts: [a] }, { parts: [b] }, ...terms.slice(n + 1)], FUNCTION_WORDS.has(a) ? n : null];
    }
}

class PassageWords {
  constructor(columns) {
    const read = texts(columns.text, columns.offsets);
    this.text = Array.from({ length: read.length }, (_, i) => read.at(i));
    this.spaced = int32(columns.spaced); // 1 if a space is before the word
    this.start = int32(columns.start);
    this.end = int32(columns.end);
    this.confidence = float32(columns.confidence);
    this.first = int32(columns.first);
    this.turn = Array.from(int32(columns.turn));
    this.speaker = Array.from(int32(columns.speaker));
    this.count = this.speaker.length;
    this.row = []; // passage of each word
    for (let p = 0; p < this.count; p++) for (let i = this.first[p]; i < this.first[p + 1]; i++) this.row.push(p);
    this.order = Array.from(this.text.keys()).filter((i) => this.start[i] >= 0);
    this.order.sort((a, b) => this.start[a] - this.start[b] || a - b);
    this.starts = Int32Array.from(this.order, (i) => this.start[i]);
    this.spoken = this.forms = null; // search form and index of each word; the forms
  }

  /** Start and end in ms of the timed words of a passage; [-1, -1] if there are none. */
  span(p) {
    let [from, to] = [Infinity, -1];
    for (let i = this.first[p]; i < this.first[p + 1]; i++) {
      if (this.start[i] < 0) continue;
      from = Math.min(from, this.start[i]);
      to = Math.max(to, this.end[i]);
    }
    return to < 0 ? [-1, -1] : [from, to];
  }

  /** Passages of the turn of a passage: first, and one past the last. */
  parts(p) {
    let [from, to] = [p, p + 1];
    while (from && this.turn[from - 1] === this.turn[p]) from--;
    while (to < this.count && this.turn[to] === this.turn[p]) to++;
    return [from, to];
  }

  /** Position of a word in its turn, from 0. */
  placeInTurn(i) { return i - this.first[this.parts(this.row[i])[0]]; }

  /** Text of the turn of a passage, with that passage replaced by `text`. */
  turnText(p, text) {
    const [from, to] = this.parts(p);
    let whole = "";
    for (let part = from; part < to; part++) {
      const own = part === p ? text : this.plain(part);
      if (own) whole += (whole && this.space(this.first[part])) + own;
    }
    return whole;
  }

  plain(p) {
    let whole = "";
    for (let i = this.first[p]; i < this.first[p + 1]; i++) whole += (whole && this.space(i)) + this.text[i];
    return whole;
  }

  /** What is between a word and the word before: a space, unless their script has none. */
  space(i) { return this.spaced[i] ? " " : ""; }

  /** Index of the last word that started at or before a time, or -1. */
  begun(ms) { return this.order[below(this.starts, ms, true) - 1] ?? -1; }

  /** Words that overlap a time span, in time order. */
  touching(from, to) {
    const found = [];
    for (let n = below(this.starts, to) - 1, far = 0; n >= 0 && far < 50; n--) {
      if (this.end[this.order[n]] > from) found.push(this.order[n]), (far = 0);
      else far++; // words overlap little: stop after fifty that ended earlier
    }
    return found.reverse();
  }

  /** Finds words by the rules of `Corpus.search`: [first word, last word] of each occurrence. */
  find(query) {
    const terms = query.split(/\s+/).filter(Boolean).flatMap(termsOf);
    if (!terms.some(({ parts }) => parts.some(Boolean))) return [];
    this.spoken ??= this.text.flatMap((text, i) => text.split(/\s+/).flatMap(pieces).map(searchForm).filter(Boolean).map((form) => [form, i]));
    this.forms ??= new Set(this.spoken.map(([form]) => form));
    const found = [];
    for (const [phrase, hyphen] of variantsOf(terms, (form) => this.forms.has(form))) {
      const patterns = phrase.map(({ parts }) => new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "su"));
      for (let at = 0; at + patterns.length <= this.spoken.length; at++) {
        if (!patterns.every((pattern, n) => pattern.test(this.spoken[at + n][0]))) continue;
        if (hyphen !== null && this.spoken[at + hyphen][1] !== this.spoken[at + hyphen + 1][1]) continue;
        found.push([at, at + patterns.length - 1]);
      }
    }
    return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((ends) => ends.map((n) => this.spoken[n][1]));
  }
}
