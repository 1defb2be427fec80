// Three or four recordings over each other: a colour for each, the same in all charts; what was
// read, written and not yet on disk as one line each, memory as one stack each.
import { element } from "./dom.js";
import { figure } from "./format.js";
import { Chart } from "./charts.js";
import { QUESTIONS, pictureOf } from "./questions.js";

/**
 * @typedef {import("./decode.js").Timeline} Timeline
 * @typedef {import("./charts.js").Picture} Picture
 * @typedef {import("./charts.js").Viewport} Viewport
 */

/**
 * What has one line for each recording: the sum of the series that match the first pattern that
 * speaks, of disks only of real ones. `isSum`: added up since the start.
 * @type {{id: string, title: string, unit: string, says: string, patterns: RegExp[], isSum?:
 * boolean}[]}
 */
const QUANTITIES = [
  {
    id: "over-read",
    title: "Read from disks, each second",
    unit: "bytes_per_s",
    says: "bytes that disks gave, all programs together",
    patterns: [/^disk\.(.+)\.read_bytes$/],
  },
  {
    id: "over-written",
    title: "Written to disks, each second",
    unit: "bytes_per_s",
    says: "bytes that disks took, all programs together",
    patterns: [/^disk\.(.+)\.write_bytes$/],
  },
  {
    id: "over-unwritten",
    title: "Not yet on disk",
    unit: "bytes",
    says: "written by programs and only in memory: lost if the power fails now",
    patterns: [/^meminfo\.(Dirty|Writeback)$/],
  },
  {
    id: "over-so-far",
    title: "Written to disks so far",
    unit: "bytes",
    says: "bytes that disks took since the start; the line that is flat first is done first",
    patterns: [/^disk\.(.+)\.write_bytes$/],
    isSum: true,
  },
  {
    id: "over-cached",
    title: "Files cached in memory",
    unit: "bytes",
    says: "file pages in memory; where it falls, others have to read from disk again",
    patterns: [/^meminfo\.(Active|Inactive)_file$/],
  },
  {
    id: "over-dropped",
    title: "Cache taken back, each second",
    unit: "pages_per_s",
    says: "file pages that the kernel took back to make room",
    patterns: [/^vmstat\.pgsteal_file$/],
  },
  {
    id: "over-copied",
    title: "Copied, each second",
    unit: "bytes_per_s",
    says: "bytes of writes that the copy has completed, durable or not",
    patterns: [/^copy\.written_bytes$/],
  },
];

// More lines of one recording in one chart cannot be distinguished by their dashes.
const MOST_LINES_EACH = 4;

/** @param {Timeline} timeline */
const nameOf = timeline => timeline.view.name;

/** The colour of a recording. @param {number} number */
const sideColour = number => `--c${number}`;

/**
 * The pictures of all recordings over each other; of what is stacked one for each.
 * @param {Timeline[]} timelines @param {(timeline: Timeline) => Picture[]} make
 */
export function laidOver(timelines, make) {
  /** @type {Map<string, Picture>} */
  const pictures = new Map();
  // What is drawn alike has the same dashes in all recordings.
  /** @type {Map<string, string[]>} */
  const labels = new Map();
  const dashOf = (/** @type {string} */ id, /** @type {string} */ label) => {
    const known = labels.get(id) ?? [];
    labels.set(id, known.includes(label) ? known : [...known, label]);
    return labels.get(id)?.indexOf(label) ?? 0;
  };
  timelines.forEach((timeline, number) => {
    for (const picture of make(timeline)) {
      const { id, title, stacked } = picture;
      if (stacked) {
        pictures.set(`${id}-${number}`, ofOne(picture, timeline, number));
        continue;
      }
      const traces = picture.traces.slice(0, MOST_LINES_EACH).map(trace => ({
        ...trace,
        label: `${trace.label}, ${nameOf(timeline)}`,
        colour: sideColour(number),
        dash: dashOf(id, trace.label),
      }));
      const known = pictures.get(id)?.traces ?? [];
      pictures.set(id, { ...picture, title, traces: [...known, ...traces] });
    }
  });
  return [...pictures.values()];
}

/** @param {Picture} picture @param {Timeline} timeline @param {number} number */
function ofOne(picture, timeline, number) {
  const { id, title } = picture;
  return {
    ...picture,
    id: `${id}-${number}`,
    title: `${title}: ${nameOf(timeline)}`,
    key: sideColour(number),
  };
}

/**
 * One quantity with a line for each recording that has it; null if none has.
 * @param {Timeline[]} timelines @param {typeof QUANTITIES[number]} quantity
 * @returns {Picture | null}
 */
function quantityOf(timelines, { id, title, unit, says, patterns, isSum }) {
  const traces = timelines.flatMap((timeline, number) => {
    const indices = patterns.map(pattern => seriesOf(timeline, pattern)).find(some => some.length);
    if (!indices) return [];
    const lines = indices.map(index => timeline.line(index));
    const values = () => {
      const total = new Float64Array(timeline.seconds.length);
      for (const index of indices)
        timeline.values(index).forEach((value, at) => (total[at] += value || 0));
      if (isSum)
        for (let at = 1, sum = 0; at < total.length; at++)
          total[at] = sum += total[at] * (timeline.clock[at] - timeline.clock[at - 1]);
      return total;
    };
    return [
      {
        label: nameOf(timeline),
        names: lines.map(({ name }) => name),
        meaning: says,
        timeline,
        values,
        colour: sideColour(number),
        refresh_ns: null,
        grows: lines[0].kind === "counter" && !isSum,
        second: false,
      },
    ];
  });
  return traces.some(({ names }) => names.length) ? { id, title, unit, says, traces } : null;
}

/**
 * The series of a pattern that a recording has: of devices the real disks, if there are any.
 * @param {Timeline} timeline @param {RegExp} pattern
 */
function seriesOf(timeline, pattern) {
  const found = [...timeline.index].flatMap(([name, index]) => {
    const match = pattern.exec(name);
    return match ? [{ index, word: match[1] }] : [];
  });
  const disks = new Set(
    timeline.view.devices.flatMap((/** @type {any} */ { name, kind }) =>
      kind === "disk" ? [name] : [],
    ),
  );
  const real = found.filter(({ word }) => disks.has(word));
  return (real.length ? real : found).map(({ index }) => index);
}

/**
 * What three or four recordings say together.
 * @param {Timeline[]} timelines @param {Viewport} viewport
 */
export function overlay(timelines, viewport) {
  const composition = QUESTIONS.flatMap(({ charts }) => charts).find(
    ({ id }) => id === "composition",
  );
  const stacks = timelines.map((timeline, number) => {
    const picture = composition && pictureOf(timeline, composition);
    return picture && ofOne({ ...picture, title: "Memory" }, timeline, number);
  });
  const pictures = QUANTITIES.map(quantity => quantityOf(timelines, quantity));
  const charts = (/** @type {(Picture | null | undefined)[]} */ some, kind = "") =>
    element(
      `div.charts${kind && `.${kind}`}`,
      {},
      ...some.flatMap(picture => (picture ? [new Chart(picture, viewport).element] : [])),
    );
  const shown = new Set(timelines);
  const show = (/** @type {Timeline} */ timeline, /** @type {HTMLElement} */ button) => {
    if (!shown.delete(timeline)) shown.add(timeline);
    button.setAttribute("aria-pressed", String(shown.has(timeline)));
    for (const chart of viewport.charts) chart.showOf(shown);
  };
  const names = timelines.map(nameOf);
  return {
    head: element(
      "header",
      {},
      element("h1", {}, titleOf(timelines)),
      element(
        "p.quiet",
        {},
        "Each has one colour in all charts; vertical lines are its marks. Press one to hide it.",
      ),
      element(
        "ul.recordings",
        { id: "recordings" },
        ...timelines.map((timeline, number) => card(timeline, number, show)),
      ),
    ),
    align: aligner(timelines, viewport),
    section: element(
      "section",
      { id: "overlay" },
      charts(pictures.slice(0, 4), "wide"),
      element("h2", {}, "What memory held"),
      charts(stacks),
      element("h2", {}, "What became of the cache"),
      charts(pictures.slice(4)),
      element("p.hidden-but-read", {}, `In each chart: ${names.join(", ")}.`),
    ),
  };
}

/** What is laid over each other. @param {Timeline[]} timelines */
function titleOf(timelines) {
  const copies = timelines.flatMap(({ view }) => view.explain.copy ?? []);
  if (copies.length < timelines.length) return `${timelines.length} recordings over each other`;
  const most = Math.max(...copies.map(({ written_bytes }) => written_bytes));
  return `${copies.length} ways to copy ${figure(most, "bytes")}, over each other`;
}

/**
 * When a copy said done and when it was, at what rate.
 * @param {any} copy
 */
function outcomeOf({ done_ns, durable_ns, durable_bytes }) {
  const said = done_ns == null ? "" : `Said done after ${figure(done_ns, "ns")}. `;
  if (durable_ns == null) return `${said}Not seen to reach the disk.`;
  const rate = figure(durable_bytes / (durable_ns / 1e9), "bytes_per_s");
  return `${said}On the disk after ${figure(durable_ns, "ns")}: ${rate}.`;
}

/**
 * One recording: its colour, its name, how long it took, how its copy went.
 * @param {Timeline} timeline @param {number} number
 * @param {(timeline: Timeline, button: HTMLElement) => void} show
 */
function card(timeline, number, show) {
  const { explain } = timeline.view;
  const button = element(
    "button",
    {
      "data-recording": number,
      "aria-pressed": true,
      click: () => show(timeline, button),
    },
    element("i", { "aria-hidden": true, style: `--key: var(${sideColour(number)})` }),
    nameOf(timeline),
  );
  return element(
    "li",
    {},
    button,
    ...(explain.copy
      ? [
          element("p", {}, element("strong", {}, outcomeOf(explain.copy))),
          element(
            "details",
            // On a narrow screen the charts come first.
            { open: matchMedia("(min-width: 700px)").matches },
            element("summary", {}, "How it went"),
            ...explain.copy.lines.map((/** @type {string} */ line) => element("p", {}, line)),
          ),
        ]
      : [element("p", {}, `${figure(explain.wall_ns, "ns")}: ${explain.subject}`)]),
  );
}

/**
 * A choice of where the recordings begin together: their start, or a mark that two of them have;
 * null where they have none in common.
 * @param {Timeline[]} timelines @param {Viewport} viewport
 */
function aligner(timelines, viewport) {
  const when = timelines.map(
    ({ view }) =>
      new Map(
        view.spans
          .filter((/** @type {any} */ { kind }) => kind === "mark")
          .map((/** @type {any} */ { text, start_ns }) => [text, start_ns / 1e9])
          .reverse(),
      ),
  );
  const texts = [...new Set(when.flatMap(marks => [...marks.keys()].reverse()))].filter(
    text => when.filter(marks => marks.has(text)).length > 1,
  );
  if (!texts.length) return null;
  const change = (/** @type {Event} */ event) => {
    const text = /** @type {HTMLSelectElement} */ (event.target).value;
    timelines.forEach((timeline, at) => timeline.shift(text ? (when[at].get(text) ?? 0) : 0));
    viewport.reset();
  };
  const options = texts.map(text => element("option", { value: text }, `the mark ${text}`));
  return element(
    "label",
    {},
    "Together at ",
    element(
      "select",
      { id: "align-mark", change },
      element("option", { value: "" }, "the start"),
      ...options,
    ),
  );
}
