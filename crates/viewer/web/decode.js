// One recording in the browser: its columns, unpacked when they are drawn (docs/view.md has the
// bytes),
// and what a live stream adds to them.
import { bytesOf, jsonOf } from "./dom.js";

/** @typedef {{offset: number, length: number}} Column */
/**
 * @typedef {{name: string, unit: string, kind: "counter" | "gauge", source: string, refresh_ns:
 * number | null, meaning: string} & Partial<Column>} Line
 */
/** @typedef {{kind: string, text: string, start_ns: number, end_ns: number}} Span */
/**
 * @typedef {{from_sample: number, ticks_ns: number[], series: Line[], changes: [number, number,
 * number | null][], spans: Span[], who: any, explain: any, ended?: boolean}} Growth
 */

// Newest samples of a live page: an hour at 10 a second.
const KEPT_SAMPLES = 36_000;

/**
 * Calls `visit` for every change of a column: the sample, and the value or NaN if absent.
 * @param {Uint8Array} block @param {Column} column
 * @param {(sample: number, value: number) => void} visit
 */
export function eachChange(block, { offset, length }, visit) {
  const lengths = [];
  let at = offset,
    sample = 0,
    last = 0,
    lowest = 0;
  for (let sum = 0; at + sum < offset + length; sum += lengths[lengths.length - 1]) {
    let size = 0;
    for (let scale = 1, byte = 128; byte > 127; scale *= 128)
      size += ((byte = block[at++]) & 127) * scale;
    lengths.push(size);
  }
  // Position of the next first byte of a number, of the next second byte, and so on.
  const next = lengths.map(size => (at += size) - size),
    end = next[1] ?? at;
  const number = () => {
    let byte = (lowest = block[next[0]++]),
      value = byte & 127;
    for (let place = 1, scale = 128; byte > 127; place++, scale *= 128)
      value += ((byte = block[next[place]++]) & 127) * scale;
    return value;
  };
  while (next[0] < end) {
    sample += number();
    for (let count = number(); count > 0; count--, sample++) {
      const code = number();
      // A code is 1 + zigzag: even ones are negative. Its lowest bit is asked for, since a double
      // forgets it beyond 2^53.
      if (code !== 0) last += lowest & 1 ? (code - 1) / 2 : -code / 2;
      visit(sample, code === 0 ? NaN : last);
    }
  }
}

/**
 * Growth per second since the sample before; NaN where either is absent or the counter fell. What
 * is read more rarely than it is sampled grew over all the time since it was read last. Samples
 * that nearly coincide, as the last two often do, give no rate: it goes on as it was.
 * @param {Float64Array} values @param {Float64Array} seconds @param {number} refresh_s
 */
export function rates(values, seconds, refresh_s) {
  const rate = new Float64Array(values.length).fill(NaN);
  const near = (seconds[seconds.length - 1] - seconds[0]) / seconds.length / 5;
  for (let now = 1, changed = 0; now < values.length; now++) {
    const growth = values[now] - values[now - 1];
    if (now > 1 && seconds[now] - seconds[now - 1] < near && growth >= 0) rate[now] = rate[now - 1];
    else if (Number.isNaN(growth) || growth < 0) changed = now;
    else if (growth === 0) rate[now] = 0;
    else {
      let since = now - 1;
      // It is read with the first sample after that time: a sample later at ten a second.
      while (since > changed && seconds[now] - seconds[since - 1] <= refresh_s * 1.15) since--;
      rate.fill(growth / (seconds[now] - seconds[since]), since + 1, now + 1);
      changed = now;
    }
  }
  return rate;
}

/** A recording: what it holds, and its columns as they are wanted. */
export class Timeline {
  /** @param {any} view `terrace.view/1` @param {Uint8Array} block */
  constructor(view, block) {
    this.view = view;
    this.block = block;
    /** The number of the first sample that is kept. */
    this.first = 0;
    /** @type {{sample: number[], value: number[]}[]} what came after the block, by series */
    this.added = [];
    /** When each sample was read, in seconds since the start. */
    this.clock = this.unpacked(view.ticks, undefined, view.samples).map(us => us / 1e6);
    /** Where each sample is drawn. */
    this.seconds = this.clock;
    /** Where an instant of the clock is drawn, both in seconds. */
    this.place = (/** @type {number} */ seconds) => seconds;
    /** Who did it, where that is drawn. @type {{grow: (news: any) => void} | null} */
    this.who = null;
    /** @type {Map<number, Float64Array>} */
    this.drawn = new Map();
    /** @type {Map<string, number>} */
    this.index = new Map(
      view.series.map((/** @type {Line} */ line, /** @type {number} */ at) => [line.name, at]),
    );
  }

  /**
   * Draws samples when they were read, or when the first recording had done as much of the work.
   * @param {{first_ns: number, second_ns: number}[] | null} sections how long each side took for
   * pieces of the work
   */
  align(sections) {
    const knots = [[0, 0]];
    for (const { first_ns, second_ns } of sections ?? []) {
      const [at, from] = knots[knots.length - 1];
      knots.push([at + second_ns / 1e9, from + first_ns / 1e9]);
    }
    this.place = (/** @type {number} */ seconds) => {
      const next = knots.findIndex(([at]) => at > seconds);
      const [[at, from], [until, to]] =
        next > 0 ? [knots[next - 1], knots[next]] : [knots[knots.length - 1], [Infinity, Infinity]];
      return from + (next > 0 ? ((seconds - at) / (until - at)) * (to - from) : seconds - at);
    };
    this.seconds = this.clock.map(this.place);
  }

  /** Draws all so much earlier. @param {number} seconds */
  shift(seconds) {
    this.place = (/** @type {number} */ at) => at - seconds;
    this.seconds = this.clock.map(this.place);
  }

  /** Marks, intervals and moments that stood out, where they are drawn. */
  get spans() {
    const spans = /** @type {Span[]} */ ([...this.view.spans, ...this.moments]);
    return spans.map(({ kind, text, start_ns, end_ns }) => ({
      kind,
      text,
      from: this.place(start_ns / 1e9),
      to: this.place(end_ns / 1e9),
    }));
  }

  /** What stood out against the usual level, as intervals. @returns {Span[]} */
  get moments() {
    return (this.view.explain.moments ?? []).map((/** @type {any} */ moment) => ({
      kind: "moment",
      text: `${moment.time} ${moment.claim || moment.figures[0]?.title}`,
      start_ns: moment.from_ns,
      end_ns: moment.to_ns,
    }));
  }

  /** @param {number} index @returns {Line} */
  line(index) {
    return this.view.series[index];
  }

  /** When the last sample was read, in seconds. */
  get end() {
    return this.seconds.length ? this.seconds[this.seconds.length - 1] : 0;
  }

  /**
   * How often a series is read, in nanoseconds, where that is not each time. Many processes are
   * read once a second, as a span says.
   * @param {number} index
   */
  refresh(index) {
    const { name, refresh_ns } = this.line(index);
    const isSlow = (/** @type {Span} */ { kind, text }) =>
      kind === "rate" && text.includes("process tree");
    return (
      refresh_ns ?? (/^(tree|leader)\./.test(name) && this.view.spans.some(isSlow) ? 1e9 : null)
    );
  }

  /**
   * Whether a series has something to say: it moves, or is a level other than 0.
   * @param {number} index
   */
  speaks(index) {
    const { offset = 0, length = 0, kind } = this.line(index);
    // One change takes 30 bytes at most.
    if (length > 30 || this.added[index]?.value.length) return true;
    /** @type {Set<number>} */
    const seen = new Set();
    eachChange(
      this.block,
      { offset, length },
      (_, value) => void (Number.isNaN(value) || seen.add(value)),
    );
    return seen.size > 1 || (kind === "gauge" && seen.size === 1 && !seen.has(0));
  }

  /**
   * The values of a series as they are drawn: a level, or growth per second.
   * @param {number} index
   */
  values(index) {
    const known = this.drawn.get(index);
    if (known) return known;
    const { kind, offset = 0, length = 0 } = this.line(index);
    const level = this.unpacked({ offset, length }, this.added[index], this.seconds.length);
    const values =
      kind === "counter" ? rates(level, this.clock, (this.refresh(index) ?? 0) / 1e9) : level;
    this.drawn.set(index, values);
    return values;
  }

  /**
   * @param {Column} column @param {{sample: number[], value: number[]} | undefined} added
   * @param {number} samples
   */
  unpacked(column, added, samples) {
    const values = new Float64Array(samples);
    let from = 0,
      last = NaN;
    const change = (/** @type {number} */ sample, /** @type {number} */ value) => {
      const to = Math.max(0, sample - this.first);
      values.fill(last, from, to);
      [from, last] = [to, value];
    };
    eachChange(this.block, column, change);
    added?.sample.forEach((sample, at) => change(sample, added.value[at]));
    return values.fill(last, from);
  }

  /** Takes in what a live recording grew by. @param {Growth} growth */
  grow(growth) {
    for (const line of growth.series) this.index.set(line.name, this.view.series.push(line) - 1);
    for (const [index, sample, value] of growth.changes) {
      const added = (this.added[index] ??= { sample: [], value: [] });
      added.sample.push(sample);
      added.value.push(value ?? NaN);
    }
    const known = Math.max(0, growth.from_sample - this.first);
    const seconds = new Float64Array(known + growth.ticks_ns.length);
    seconds.set(this.seconds.subarray(0, known));
    seconds.set(
      growth.ticks_ns.map(ns => ns / 1e9),
      known,
    );
    this.clock = this.seconds = seconds;
    this.view.spans.push(...growth.spans);
    if (growth.who) this.who?.grow(growth.who);
    if (growth.explain) this.view.explain = growth.explain;
    if (seconds.length > KEPT_SAMPLES * 1.25) this.forget(seconds.length - KEPT_SAMPLES);
    this.drawn.clear();
  }

  /** Drops the oldest samples. @param {number} count */
  forget(count) {
    this.first += count;
    this.clock = this.seconds = this.seconds.slice(count);
    for (const added of this.added) {
      // The change that still holds at the first sample is kept.
      const kept = added?.sample.findIndex(sample => sample > this.first) ?? 0;
      const gone = kept < 0 ? added.sample.length - 1 : kept - 1;
      if (gone > 0) (added.sample.splice(0, gone), added.value.splice(0, gone));
    }
  }
}

/**
 * The recording in the page's elements of this ending; null if absent.
 * @param {"" | "-2" | "-3" | "-4"} ending
 */
export async function recordingOf(ending) {
  const view = jsonOf(`view${ending}`);
  return view && new Timeline(view, await bytesOf(`columns${ending}`));
}

/**
 * What is drawn of the samples between two instants: all of them, or for each bucket its lowest and
 * its highest value in their order, so that a spike of one sample survives. With a `key` all
 * columns are taken where that one is extreme, so that what is stacked stays stacked.
 * @param {Float64Array} seconds @param {Float64Array[]} columns @param {number} from
 * @param {number} to @param {number} buckets @param {Float64Array} [key]
 * @returns {[number[], ...(number | null)[][]]}
 */
export function reduced(seconds, columns, from, to, buckets, key) {
  // One sample more on either side, so that lines go to the edges.
  const start = Math.max(0, firstAfter(seconds, from) - 1),
    stop = Math.min(seconds.length, firstAfter(seconds, to) + 1);
  const shown = (/** @type {number} */ value) => (Number.isNaN(value) ? null : value);
  if (stop - start <= 2 * buckets)
    return [
      Array.from(seconds.subarray(start, stop)),
      ...columns.map(column => Array.from(column.subarray(start, stop), shown)),
    ];
  const edge = (/** @type {number} */ bucket) =>
    start + Math.floor(((stop - start) * bucket) / buckets);
  /** @type {number[]} */
  const times = [];
  for (let bucket = 0; bucket < buckets; bucket++)
    times.push(seconds[edge(bucket)], seconds[(edge(bucket) + edge(bucket + 1)) >> 1]);
  const lines = columns.map(column => {
    /** @type {(number | null)[]} */
    const line = [];
    for (let bucket = 0; bucket < buckets; bucket++) {
      const [lowest, highest] = extremes(key ?? column, edge(bucket), edge(bucket + 1));
      line.push(shown(column[Math.min(lowest, highest)]), shown(column[Math.max(lowest, highest)]));
    }
    return line;
  });
  return [times, ...lines];
}

/**
 * Parts lines where nothing was recorded: a row without values goes before each of these instants.
 * @param {[number[], ...(number | null)[][]]} rows @param {number[]} instants
 */
export function parted(rows, instants) {
  for (const instant of instants) {
    const at = rows[0].findIndex(time => time >= instant);
    if (at <= 0) continue;
    const between = (rows[0][at - 1] + rows[0][at]) / 2;
    rows.forEach((row, number) => row.splice(at, 0, number ? null : between));
  }
  return rows;
}

/**
 * The positions of the lowest and the highest value.
 * @param {Float64Array} column @param {number} from @param {number} to
 */
export function extremes(column, from, to) {
  let lowest = from,
    highest = from;
  for (let at = from; at < to; at++) {
    if (column[at] < column[lowest] || Number.isNaN(column[lowest])) lowest = at;
    if (column[at] > column[highest] || Number.isNaN(column[highest])) highest = at;
  }
  return [lowest, highest];
}

/** The first sample after an instant. @param {Float64Array} seconds @param {number} instant */
export function firstAfter(seconds, instant) {
  let low = 0,
    high = seconds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (seconds[middle] > instant) high = middle;
    else low = middle + 1;
  }
  return low;
}
