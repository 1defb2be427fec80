// Which series are drawn together, by the question that they answer.
import { jsonOf } from "./dom.js";
/**
 * @typedef {import("./decode.js").Timeline} Timeline
 * @typedef {import("./decode.js").Line} Line
 * @typedef {import("./charts.js").Trace} Trace
 */
/** @typedef {import("./charts.js").Picture} Picture */

/**
 * `series`: the name (`*` is any word; after `|` what is taken where the first has nothing to say),
 * the label (`*` is that word), a colour if it has a meaning of its own. `layers`: the same name,
 * label and colour, and the names whose values are taken out of it. `lane`: what a terminal puts
 * before the labels.
 * @typedef {{id: string, title: string, lane: string, unit?: string, stacked?: boolean, series:
 * [string, string, string?][], layers?: [string, string, string, string[]][]}} Want
 */
/**
 * As questions.json has them, which `terrace top` reads, too.
 * @type {{id: string, title: string, still: string, charts: Want[]}[]}
 */
export const QUESTIONS = jsonOf("questions");

// More lines in one chart cannot be distinguished; those that change most stay.
const MOST_LINES = 8;
const PALETTE = 8;

/** The unit in which a series is drawn: a counter grows by so much a second. @param {Line} line */
export function drawnUnit({ kind, unit }) {
  if (kind === "gauge") return unit || "count";
  return unit === "ns" ? "share" : unit === "count" || !unit ? "per_s" : `${unit}_per_s`;
}

/**
 * @param {Timeline} timeline @param {number} index @param {string} label @param {string} colour
 * @returns {Trace}
 */
export function traceOf(timeline, index, label, colour) {
  const { name, meaning, kind } = timeline.line(index),
    refresh_ns = timeline.refresh(index);
  const slow =
    refresh_ns && refresh_ns > 1.5e9 * (timeline.end / timeline.seconds.length) ? refresh_ns : null;
  return {
    label,
    names: [name],
    meaning,
    timeline,
    values: () => timeline.values(index),
    colour,
    refresh_ns: slow,
    grows: kind === "counter",
    second: false,
  };
}

/**
 * The pictures of these series, one for each unit and for each family of counters of requests.
 * @param {Timeline} timeline @param {string[]} names @param {string} id @param {string} [title]
 * @returns {Picture[]}
 */
export function picturesOf(timeline, names, id, title) {
  /** @type {Map<string, Picture>} */
  const pictures = new Map();
  const known = [...new Set(names)]
    .map(name => timeline.index.get(name))
    .filter(index => index !== undefined);
  const speaking = known.filter(index => timeline.speaks(index));
  for (const index of speaking.length ? speaking : known) {
    const { name } = timeline.line(index),
      unit = drawnUnit(timeline.line(index)),
      family = FAMILY.exec(name);
    const key = family ? family[1] : unit,
      { traces } = pictures.get(key) ?? { traces: [] };
    if (!family)
      pictures.set(key, {
        id: `${id}-${unit}`,
        title: title ?? name,
        unit,
        traces: [...traces, traceOf(timeline, index, name, `--c${traces.length % PALETTE}`)],
      });
    else if (!traces.length)
      pictures.set(key, {
        id: `${id}-${key}`,
        title: `How long each ${family[3]} of ${family[2]} took`,
        unit: "ns",
        traces: durations(timeline, key),
      });
  }
  return [...pictures.values()];
}

/** Requests that took at most so long: their family, the device, the direction, the time. */
const FAMILY = /^(.+\.([^.]+)\.(read|write))_le_(\d+)us$/;
const SHARES = /** @type {const} */ ([
  [0.5, "half within", "--c0"],
  [0.9, "90 % within", "--c1"],
  [1, "the slowest within", "--c5"],
]);

/**
 * Within how long the requests of each sample were done, by the counters of their family.
 * @param {Timeline} timeline @param {string} family @returns {Trace[]}
 */
function durations(timeline, family) {
  const counters = [...timeline.index]
    .flatMap(([name, index]) =>
      FAMILY.exec(name)?.[1] === family
        ? [{ name, index, up: Number(FAMILY.exec(name)?.[4]) * 1e3 }]
        : [],
    )
    .sort((a, b) => a.up - b.up);
  const within = (/** @type {number} */ share) => () => {
    const rates = counters.map(({ index }) => timeline.values(index));
    return Float64Array.from(timeline.seconds, (_, at) => {
      const wanted = share * rates[rates.length - 1][at],
        here = wanted > 0 ? rates.findIndex(rate => rate[at] >= wanted * (1 - 1e-9)) : -1;
      if (here < 0) return NaN;
      // Inside of a step, which goes from the half of its time, they are spread evenly.
      const before = here ? rates[here - 1][at] || 0 : 0;
      return (counters[here].up / 2) * (1 + (wanted - before) / (rates[here][at] - before));
    });
  };
  return SHARES.map(([share, label, colour]) => ({
    ...traceOf(timeline, counters[0].index, label, colour),
    names: counters.map(({ name }) => name),
    values: within(share),
    grows: false,
    sparse: true,
  }));
}

/**
 * The picture that is wanted, of one recording; null where it has nothing to say.
 * @param {Timeline} timeline @param {Want} want @returns {Picture | null}
 */
export function pictureOf(timeline, want) {
  if (want.layers) return layered(timeline, want);
  const found = want.series.flatMap(([pattern, label, colour]) => {
    const some =
      pattern
        .split("|")
        .map(one => matching(timeline, one))
        .find(indices => indices.length) ?? [];
    return some.map(([index, word]) => ({ index, label: label.replace("*", word), colour }));
  });
  const weight = (/** @type {number} */ index) => timeline.line(index).length ?? 0;
  const liveliest =
    found.length > MOST_LINES
      ? found.sort((a, b) => weight(b.index) - weight(a.index)).slice(0, MOST_LINES)
      : found;
  const traces = liveliest.map(({ index, label, colour }, at) =>
    traceOf(timeline, index, label, colour ?? `--c${at % PALETTE}`),
  );
  const unit = want.unit ?? (found.length ? drawnUnit(timeline.line(found[0].index)) : "");
  return traces.length
    ? { id: want.id, title: want.title, unit, stacked: want.stacked, traces }
    : null;
}

/**
 * The series of a pattern that have something to say, and the word that `*` is.
 * @param {Timeline} timeline @param {string} pattern @returns {[number, string][]}
 */
function matching(timeline, pattern) {
  const match = new RegExp(`^${pattern.replaceAll(".", "\\.").replace("*", "(.+)")}$`);
  return [...timeline.index].flatMap(([name, index]) => {
    const found = match.exec(name);
    return found && timeline.speaks(index) ? [[index, found[1]]] : [];
  });
}

/**
 * Levels that add up, as the kernel reports them once a second: what is in two layers is subtracted
 * out of one, and what has no other name is used. Null where one of them is not known.
 * @param {Timeline} timeline @param {Want} want @returns {Picture | null}
 */
function layered(timeline, want) {
  const level = (/** @type {string} */ name) => timeline.values(timeline.index.get(name) ?? -1);
  /** @type {(pattern: string) => [string, string][]} */
  const named = pattern =>
    pattern.includes("*")
      ? matching(timeline, pattern).map(([index, word]) => [timeline.line(index).name, word])
      : [[pattern, ""]];
  const layers = want.layers ?? [],
    names = layers.flatMap(([name, , , less]) => [name, ...less]).flatMap(named);
  if (!names.every(([name]) => timeline.index.has(name))) return null;
  const less = (/** @type {string} */ whole, /** @type {string[]} */ parts) => () => {
    const left = level(whole).slice();
    for (const part of parts.map(level))
      for (let at = 0; at < left.length; at++) left[at] = Math.max(0, left[at] - part[at]);
    return left;
  };
  const traces = layers.flatMap(([pattern, label, colour, without]) =>
    named(pattern).map(([name, word]) => {
      const parts = without.flatMap(named).map(([part]) => part);
      const trace = traceOf(
        timeline,
        timeline.index.get(name) ?? 0,
        label.replace("*", word),
        colour,
      );
      return parts.length ? { ...trace, values: less(name, parts) } : trace;
    }),
  );
  return {
    id: want.id,
    title: want.title,
    unit: want.unit ?? "bytes",
    stacked: want.stacked,
    traces,
  };
}
