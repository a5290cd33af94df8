// Drawing spans on lanes. The cost depends on the number of pixels, not on the number of spans.

/** The spans of one lane, sorted by start. */
class Lane {
  constructor(start, end) {
    this.start = start;
    this.end = end;
    const count = start.length;
    this.reach = new Int32Array(count); // latest end so far
    this.before = new Float64Array(count); // time covered up to the start of each span, overlaps counted once
    for (let i = 0, covered = 0; i < count; i++) {
      if (i) covered += Math.min(start[i], this.reach[i - 1]) - start[i - 1];
      this.before[i] = covered;
      this.reach[i] = i ? Math.max(this.reach[i - 1], end[i]) : end[i];
    }
  }

  /** Time covered by spans up to `t`. */
  covered(t) {
    const i = below(this.start, t, true) - 1;
    return i < 0 ? 0 : this.before[i] + Math.min(t, this.reach[i]) - this.start[i];
  }

  /** Indices of the spans that may overlap [from, to): first, and one past the last. */
  within(from, to) {
    return [below(this.reach, from, true), below(this.start, to)];
  }

  /** Index of the latest span that contains `t`, or -1. */
  at(t) {
    for (let i = below(this.start, t, true) - 1; i >= 0 && this.reach[i] > t; i--) if (this.end[i] > t) return i;
    return -1;
  }

  /** Index of the span that contains `t`, else of the closest one that starts within `reach` of it, or -1. */
  near(t, reach) {
    const inside = this.at(t);
    if (inside >= 0) return inside;
    const next = below(this.start, t);
    const close = (i) => (i >= 0 && i < this.start.length ? Math.abs(this.start[i] - t) : Infinity);
    const best = close(next) < close(next - 1) ? next : next - 1;
    return close(best) <= reach ? best : -1;
  }
}

/** Creates lanes from columns sorted by lane and start; `first` has the index of each lane's first span. */
function makeLanes(start, end, first) {
  return Array.from({ length: Math.max(0, first.length - 1) }, (_, n) => {
    return new Lane(start.subarray(first[n], first[n + 1]), end.subarray(first[n], first[n + 1]));
  });
}

/** Draws one lane. A few spans are drawn as bars with text, at least `least` wide; many as shades, one per pixel. */
function drawLane(context, lane, from, to, width, top, height, colour, label, least = 1) {
  const scale = width / (to - from);
  const [i0, i1] = lane.within(from, to);
  context.fillStyle = colour;
  if (i1 - i0 <= (least > 1 ? 4 * width : width / 4)) {
    for (let i = i0; i < i1; i++) {
      if (lane.end[i] < from) continue;
      const left = Math.max(-4, (lane.start[i] - from) * scale);
      const right = Math.min(width + 4, (lane.end[i] - from) * scale);
      const length = Math.max(least, right - left - (right - left > 4 ? 1 : 0));
      context.beginPath();
      context.roundRect(left, top, length, height, Math.min(3, length / 3));
      context.fill();
      if (label && length > 36 && height >= 14) label(context, i, Math.max(0, left), top, Math.min(width, right) - Math.max(0, left), height);
    }
    return;
  }
  let last = lane.covered(from);
  for (let x = 0; x < width; x++) {
    const now = lane.covered(from + (x + 1) / scale);
    const part = (now - last) * scale;
    if (part > 0) {
      context.globalAlpha = 0.3 + 0.7 * Math.min(1, part);
      context.fillRect(x, top, 1, height);
    }
    last = now;
  }
  context.globalAlpha = 1;
}

/** Draws text in a bar; what does not fit ends in an ellipsis. */
function barText(context, text, left, top, width, height, ink) {
  const room = width - 9;
  let fits = text.slice(0, 200);
  if (context.measureText(fits).width > room) {
    let [low, high] = [0, fits.length]; // the longest beginning that fits
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(fits.slice(0, middle).trimEnd() + "…").width <= room) low = middle;
      else high = middle - 1;
    }
    if (low < 3) return;
    fits = fits.slice(0, low).trimEnd() + "…";
  }
  context.save(); // the next bar has the colour of this one
  context.fillStyle = ink;
  context.textBaseline = "middle";
  context.fillText(fits, left + 5, top + height / 2 + 0.5);
  context.restore();
}

/** Steps between ticks that people count in, in ms. */
const TICKS = [50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 288e5, 864e5];

/** Positions and labels of ticks at round times, at least `least` ms apart. */
function timeTicks(from, to, least) {
  const step = TICKS.find((tick) => tick >= least) ?? Math.ceil(least / 864e5) * 864e5;
  const digits = step < 100 ? 2 : step < 1000 ? 1 : 0;
  const count = Math.max(0, Math.floor(to / step) - Math.ceil(from / step) + 1);
  return Array.from({ length: count }, (_, n) => (Math.ceil(from / step) + n) * step).map((tick) => [tick, clock(tick, digits)]);
}

/** Ticks at round values of an axis whose positions are steps from its low end. */
function valueTicks({ low, step: unit }, from, to, least) {
  const power = 10 ** Math.floor(Math.log10(least * unit));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least * unit);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const [first, last] = [Math.ceil((low + from * unit) / step), Math.floor((low + to * unit) / step)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => [((first + n) * step - low) / unit, ((first + n) * step).toFixed(digits)]);
}

/** Draws ticks with their labels; `height` is the height of the strip. */
function drawAxis(context, from, to, width, height, ink, line, ticks = timeTicks) {
  context.textBaseline = "middle";
  for (const [tick, text] of ticks(from, to, ((to - from) / width) * 84)) {
    const x = ((tick - from) / (to - from)) * width;
    context.fillStyle = line;
    context.fillRect(Math.round(x), height - 5, 1, 5);
    context.fillStyle = ink;
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(width - 2 * half, Math.max(0, x - half)), height / 2 - 2);
  }
}

/** Draws the mean of a lane as a dot, on a line from the low to the high end of its interval. */
function drawMean(context, [low, mean, high], x, middle, ink, paper) {
  context.lineCap = "round";
  for (const [colour, width, radius] of [[paper, 6, 7], [ink, 3, 5]]) {
    context.strokeStyle = context.fillStyle = colour; // a border of the colour of the page tells it from the strokes
    context.lineWidth = width;
    context.beginPath();
    if (low !== null && high !== null) context.moveTo(x(low), middle), context.lineTo(x(high), middle);
    context.stroke();
    context.beginPath();
    context.arc(x(mean), middle, radius, 0, 2 * Math.PI);
    context.fill();
  }
}

/** Draws bands (such as chapters) with titles. */
function drawBands(context, bands, from, to, width, height, ink, fill) {
  const scale = width / (to - from);
  for (let i = 0; i < bands.start.length; i++) {
    const left = Math.max(0, (bands.start[i] - from) * scale);
    const right = Math.min(width, (bands.end[i] - from) * scale);
    if (right - left < 1) continue;
    context.fillStyle = fill;
    context.beginPath();
    context.roundRect(left, 1, Math.max(1, right - left - 2), height - 2, 3);
    context.fill();
    if (right - left > 30) barText(context, bands.text.at(i), left, 1, right - left, height - 2, ink);
  }
}

/** Reads bands from a model's columns: start, end and text with one prefix. */
const bandsOf = (columns, prefix) => ({
  start: int32(columns[`${prefix}_start`]),
  end: int32(columns[`${prefix}_end`]),
  text: texts(columns[`${prefix}_text`], columns[`${prefix}_offsets`]),
});

/**
 * Handles clicks and drags along a time axis: `go(px)` on a click, `drag([px, px])` during and `select` after a drag.
 * A drag that starts at one of the `edges()` (px) of the selection moves that edge.
 */
function brush(element, { go, drag, select, edges = () => [] }) {
  let from = null;
  let range = null;
  const at = (event) => event.clientX - element.getBoundingClientRect().left;
  element.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    element.setPointerCapture(event.pointerId);
    const ends = edges();
    const held = ends.findIndex((edge) => Math.abs(edge - at(event)) <= 5);
    [from, range] = [held < 0 ? at(event) : ends[1 - held], null];
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (from === null || (!range && Math.abs(at(event) - from) <= 4)) return;
    range = [Math.min(from, at(event)), Math.max(from, at(event))];
    drag(range);
  });
  element.addEventListener("pointerup", (event) => {
    if (from !== null) range ? select(range) : go(at(event), event);
    from = null;
  });
  element.addEventListener("pointercancel", () => {
    from = null;
    drag(null);
  });
  return () => from !== null;
}

/** Draws the selection and the cursor over lanes. */
function drawOverlay(context, range, cursor, x, height, colour) {
  if (range?.length === 2) {
    const [left, right] = range.map(x);
    context.fillStyle = colour("--vf-accent");
    context.globalAlpha = 0.18;
    context.fillRect(left, 0, Math.max(1, right - left), height);
    context.globalAlpha = 1;
    context.fillRect(left - 1, 0, 2, height);
    context.fillRect(right - 1, 0, 2, height);
  }
  context.fillStyle = colour("--vf-cursor");
  context.fillRect(x(cursor) - 1, 0, 2, height);
}

/** Moves the end of a selection that is within 2 ms of the cursor `now` to `next`, or starts a new selection. */
function extended(range, now, next) {
  const near = (t) => Math.abs(t - now) <= 2;
  const fixed = range.length === 2 && range.some(near) ? range.find((t) => !near(t)) ?? now : now;
  return [Math.min(fixed, next), Math.max(fixed, next)];
}
