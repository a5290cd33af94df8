// The words of a transcript in passages (turns; long turns are split), with corrections applied.

class PassageWords {
  /** `applied` has the corrected texts that the words already have. */
  constructor(columns, corrections, applied) {
    this.applied = applied;
    this.given = {
      start: int32(columns.start), end: int32(columns.end), confidence: float32(columns.confidence),
      first: int32(columns.first), text: [],
    };
    const read = texts(columns.text, columns.offsets);
    for (let i = 0; i < read.length; i++) this.given.text.push(read.at(i));
    this.turn = Array.from(int32(columns.turn));
    this.speaker = Array.from(int32(columns.speaker));
    this.count = this.speaker.length;
    this.correct(corrections);
  }

  /** Rebuilds all words; those of corrected turns come from the corrected text. */
  correct(corrections) {
    const { start, end, confidence, first, text } = this.given;
    Object.assign(this, { start: [], end: [], confidence: [], text: [], row: [], first: [] });
    for (let p = 0; p < this.count; ) {
      const past = this.parts(p)[1];
      let words = [];
      for (let part = p; part < past; part++)
        for (let i = first[part]; i < first[part + 1]; i++) words.push([text[i], start[i], end[i], confidence[i], part]);
      if (this.turn[p] in corrections && corrections[this.turn[p]] !== this.applied[this.turn[p]]) words = retimed(words, corrections[this.turn[p]]);
      for (const [word, from, to, confidence, part] of words) {
        while (this.first.length <= part) this.first.push(this.text.length);
        this.text.push(word);
        this.start.push(from);
        this.end.push(to);
        this.confidence.push(confidence);
        this.row.push(part);
      }
      p = past;
    }
    while (this.first.length <= this.count) this.first.push(this.text.length);
    this.order = Array.from(this.text.keys()).filter((i) => this.start[i] >= 0);
    this.order.sort((a, b) => this.start[a] - this.start[b] || a - b);
    this.starts = Int32Array.from(this.order, (i) => this.start[i]);
    this.lower = null;
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
    return Array.from({ length: to - from }, (_, n) => (from + n === p ? text : this.plain(from + n))).filter(Boolean).join(" ");
  }

  /** Original text of the turn of a passage. */
  originalText(p) {
    const [from, to] = this.parts(p);
    return this.given.text.slice(this.given.first[from], this.given.first[to]).filter(Boolean).join(" ");
  }

  plain(p) { return this.text.slice(this.first[p], this.first[p + 1]).join(" "); }

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

  /** Finds a text, ignoring case: [first word, last word] of each occurrence. */
  find(query) {
    const wanted = query.toLowerCase().trim().replace(/\s+/g, " ");
    if (!wanted) return [];
    this.lower ??= Array.from({ length: this.count }, (_, p) => {
      const edges = [];
      let whole = "";
      for (let i = this.first[p]; i < this.first[p + 1]; i++) {
        edges.push(whole.length);
        whole += this.text[i].toLowerCase() + " ";
      }
      return { whole, edges };
    });
    const found = [];
    for (const [p, { whole, edges }] of this.lower.entries()) {
      for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + wanted.length)) {
        const word = (offset) => this.first[p] + below(edges, offset, true) - 1;
        found.push([word(at), word(at + wanted.length - 1)]);
      }
    }
    return found;
  }
}

/** Words of a corrected text: unchanged words keep time and passage, new words share the time of those they replace. */
function retimed(old, text) {
  const fresh = text.split(/\s+/).filter(Boolean);
  const found = [];
  let [i, j] = [0, 0];
  for (const [a, b] of [...common(old.map((word) => word[0]), fresh), [old.length, fresh.length]]) {
    found.push(...between(old, i, a, fresh.slice(j, b)));
    if (a < old.length) found.push(old[a]);
    [i, j] = [a + 1, b + 1];
  }
  return found;
}

/** New words in place of old[i..a); each gets time in proportion to its length. */
function between(old, i, a, words) {
  const timed = old.slice(i, a).filter((word) => word[1] >= 0);
  const from = timed.length ? timed[0][1] : old[i - 1]?.[2] ?? old[0]?.[1] ?? -1;
  const to = timed.length ? timed[timed.length - 1][2] : Math.max(from, old[a]?.[1] ?? from);
  const part = (i < a ? old[i] : old[i - 1] ?? old[a])?.[4] ?? 0;
  const letters = words.join("").length || 1;
  let done = 0;
  return words.map((word) => {
    const begin = from + ((to - from) * done) / letters;
    done += word.length;
    return [word, Math.round(begin), Math.round(from + ((to - from) * done) / letters), NaN, part];
  });
}

/** Index pairs of a longest common subsequence; for very long turns only the common prefix and suffix. */
function common(a, b) {
  let head = 0;
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < Math.min(a.length, b.length) - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [m, n] = [a.length - head - tail, b.length - head - tail];
  const pairs = Array.from({ length: head }, (_, k) => [k, k]);
  if (m * n < 4e6) {
    const best = Array.from({ length: m + 1 }, () => new Uint16Array(n + 1)); // of a[i..] and b[j..]
    for (let i = m - 1; i >= 0; i--)
      for (let j = n - 1; j >= 0; j--)
        best[i][j] = a[head + i] === b[head + j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    for (let i = 0, j = 0; i < m && j < n; ) {
      if (a[head + i] === b[head + j]) pairs.push([head + i++, head + j++]);
      else if (best[i + 1][j] >= best[i][j + 1]) i++;
      else j++;
    }
  }
  for (let k = tail; k > 0; k--) pairs.push([a.length - k, b.length - k]);
  return pairs;
}
