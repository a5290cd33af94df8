// The words of a transcript in passages (turns, long ones in parts), as they read with their corrections.

class Passages {
  constructor(columns, corrections) {
    this.given = {
      start: int32(columns.start), end: int32(columns.end), confidence: float32(columns.confidence),
      first: int32(columns.first), text: [],
    };
    const read = texts(columns.text, columns.offsets);
    for (let i = 0; i < read.length; i++) this.given.text.push(read.at(i));
    this.voice = int32(columns.voice);
    this.count = this.voice.length;
    this.correct(corrections);
  }

  /** Makes all words again, those of corrected passages from their new text. */
  correct(corrections) {
    const { start, end, confidence, first, text } = this.given;
    Object.assign(this, { start: [], end: [], confidence: [], text: [], row: [], first: [0] });
    for (let p = 0; p < this.count; p++) {
      let words = [];
      for (let i = first[p]; i < first[p + 1]; i++) words.push([text[i], start[i], end[i], confidence[i]]);
      if (p in corrections) words = retimed(words, corrections[p]);
      for (const [said, from, to, sure] of words) {
        this.text.push(said);
        this.start.push(from);
        this.end.push(to);
        this.confidence.push(sure);
        this.row.push(p);
      }
      this.first.push(this.text.length);
    }
    this.order = Array.from(this.text.keys()).filter((i) => this.start[i] >= 0);
    this.order.sort((a, b) => this.start[a] - this.start[b] || a - b);
    this.starts = Int32Array.from(this.order, (i) => this.start[i]);
    this.lower = null;
  }

  /** Start and end of a passage: of its words that have a time. */
  span(p) {
    let [from, to] = [Infinity, -1];
    for (let i = this.first[p]; i < this.first[p + 1]; i++) {
      if (this.start[i] < 0) continue;
      from = Math.min(from, this.start[i]);
      to = Math.max(to, this.end[i]);
    }
    return to < 0 ? [-1, -1] : [from, to];
  }

  plain(p) { return this.text.slice(this.first[p], this.first[p + 1]).join(" "); }

  /** The word that began last at a time, or -1. */
  begun(ms) { return this.order[below(this.starts, ms, true) - 1] ?? -1; }

  /** Words that touch a stretch of time, in time order. */
  touching(from, to) {
    const found = [];
    for (let n = below(this.starts, to) - 1, far = 0; n >= 0 && far < 50; n--) {
      if (this.end[this.order[n]] > from) found.push(this.order[n]), (far = 0);
      else far++; // words overlap little: fifty that ended before are enough
    }
    return found.reverse();
  }

  /** Where a text occurs, whatever its case: [first word, last word] of each occurrence. */
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
        const word = (place) => this.first[p] + below(edges, place, true) - 1;
        found.push([word(at), word(at + wanted.length - 1)]);
      }
    }
    return found;
  }
}

/** New words in place of old: those unchanged at both ends keep their times, what is between shares the rest by length. */
function retimed(old, text) {
  const fresh = text.split(/\s+/).filter(Boolean);
  const same = (a, b) => old[a]?.[0] === fresh[b];
  let head = 0;
  while (head < Math.min(old.length, fresh.length) && same(head, head)) head++;
  let tail = 0;
  while (tail < Math.min(old.length, fresh.length) - head && same(old.length - 1 - tail, fresh.length - 1 - tail)) tail++;
  const gone = old.slice(head, old.length - tail).filter((word) => word[1] >= 0);
  const from = gone.length ? gone[0][1] : old[head - 1]?.[2] ?? old[0]?.[1] ?? -1;
  const to = gone.length ? gone[gone.length - 1][2] : old[old.length - tail]?.[1] ?? from;
  const put = fresh.slice(head, fresh.length - tail);
  const letters = put.join("").length || 1;
  let done = 0;
  const middle = put.map((word) => {
    const begin = from + ((to - from) * done) / letters;
    done += word.length;
    return [word, Math.round(begin), Math.round(from + ((to - from) * done) / letters), NaN];
  });
  return [...old.slice(0, head), ...middle, ...old.slice(old.length - tail)];
}
