// The page of advice: the answer first, then the curve of what more memory would have spared, the
// sizes in a table, of a trace what each policy would have hit, who waited, and what is measured
// and what is concluded.
import { drawn, element, jsonOf } from "./dom.js";
import { figure } from "./format.js";
import { curveAxis, curveFigureOf, curveFit, curveTable } from "./curves.js";

/** @typedef {{ns: number, low_ns: number, high_ns: number}} Spared */
/**
 * @typedef {{more_bytes: number, spared: Spared | null, kept_bytes: number | null,
 * cost?: Spared, unproven?: string}} MemoryGain
 */
/** @typedef {{bytes: number, spared: Spared, hits: number, reads: number}} FlashGain */

/**
 * @typedef {{bytes: number, served_reads: number, policies: {policy: string, hit_share: number}[]}}
 * TraceSize
 */

const advice = jsonOf("advise");
const adviceMemory = advice.memory;
const adviceTrace = advice.trace;
const adviceCurve = /** @type {MemoryGain[]} */ (adviceMemory.curve).filter(gain => gain.spared);
const adviceLess = adviceMemory.named_bytes < 0;
const ADVICE_GRADES = /** @type {Record<string, string>} */ ({
  helps: adviceLess ? "Less memory would have cost time" : "More memory would have helped",
  nothing: "It would have changed nothing",
  unproven: adviceTrace ? "This trace does not say" : "This recording does not say",
});
const adviceIsHits = adviceTrace?.times === "none" && adviceTrace.sizes.length > 0;
const adviceGrade = adviceIsHits
  ? "The hits are known, the seconds are not"
  : advice.state === "helps" && adviceMemory.state !== "helps"
    ? "A cache on another device would have helped"
    : (ADVICE_GRADES[adviceMemory.state] ?? adviceMemory.state);

/**
 * With a capital and a full stop, unless it ends in a command.
 * @param {string} text
 */
const adviceSentence = text =>
  text.charAt(0).toUpperCase() + text.slice(1) + (/: sudo [^:]*$/.test(text) ? "" : ".");
/** @param {string} title @param {...(Node | string | null)} children */
const adviceSection = (title, ...children) =>
  element("section", {}, element("h2", {}, title), ...children);
/**
 * In the unit of the estimate, as the answer has it.
 * @param {Spared} spared @param {...number} all
 */
function adviceTime(spared, ...all) {
  const most = Math.max(spared.ns, spared.high_ns);
  const [scale, unit] = most >= 7.2e12 ? [3.6e12, "h"] : most >= 6e11 ? [6e10, "min"] : [1e9, "s"];
  const number = (/** @type {number} */ ns) => {
    const value = ns / scale;
    return value < 99.95 ? String(Number(value.toFixed(1))) : value.toFixed(0);
  };
  return `${all.map(number).join(" to ")} ${unit}`;
}
/** @param {Spared | null} spared */
const adviceSpared = spared => (spared ? adviceTime(spared, spared.ns) : "\u2013");
/** @param {Spared | null} spared */
const adviceInterval = spared =>
  spared ? adviceTime(spared, spared.low_ns, spared.high_ns) : "\u2013";

/** Sizes of so few are drawn as dots. */
const DOTS_MAX = 12;

/**
 * The curve over the size, its interval as a band, the knee as a line.
 * @param {{at: number, spared: Spared}[]} points @param {number | null} knee
 * @param {string} axis @param {number} width
 */
function adviceDrawing(points, knee, axis, width) {
  const height = Math.round(Math.min(380, Math.max(250, width * 0.42)));
  const frame = { left: 62, right: width - 28, top: 30, bottom: height - 46 };
  const most = Math.max(...points.map(point => point.spared.high_ns), 1);
  const last = points[points.length - 1].at;
  const x = curveAxis(0, last, frame.left, frame.right, "bytes", false, 54);
  const y = curveAxis(0, most * 1.08, frame.bottom, frame.top, "ns", false, 26);
  const { at } = x;
  const line = (/** @type {(spared: Spared) => number} */ of) =>
    points.map(point => `${at(point.at)} ${y.at(of(point.spared))}`);
  const band = [...line(spared => spared.high_ns), ...line(spared => spared.low_ns).reverse()];
  const isLeft = knee !== null && at(knee) < (frame.left + frame.right) / 2;
  return drawn(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${advice.answer}. The figures are in the table below.`,
    },
    ...y.ticks.flatMap(tick => [
      drawn("path", { class: "curve-grid", d: `M${frame.left} ${y.at(tick)}H${frame.right}` }),
      drawn(
        "text",
        { x: frame.left - 6, y: y.at(tick) + 4, "text-anchor": "end" },
        tick ? figure(tick, "ns") : "0",
      ),
    ]),
    ...x.ticks.map(tick =>
      drawn(
        "text",
        { x: x.at(tick), y: frame.bottom + 18, "text-anchor": "middle" },
        figure(tick, "bytes"),
      ),
    ),
    drawn("text", { x: frame.left, y: 14 }, "time spared"),
    drawn("text", { x: frame.right, y: height - 6, "text-anchor": "end" }, `${axis} \u2192`),
    drawn("path", { class: "advice-band", d: `M${band.join("L")}Z` }),
    drawn("path", { class: "advice-line", d: `M${line(spared => spared.ns).join("L")}` }),
    // Of few sizes, so that the line between them is taken for no more than it is.
    ...(points.length <= DOTS_MAX
      ? points.map(point =>
          drawn("circle", {
            class: "advice-dot",
            cx: at(point.at),
            cy: y.at(point.spared.ns),
            r: 4,
          }),
        )
      : []),
    ...(knee
      ? [
          drawn("path", {
            class: "curve-claimed",
            d: `M${at(knee)} ${frame.top}V${frame.bottom}`,
          }),
          drawn(
            "text",
            {
              class: "advice-knee",
              x: at(knee) + (isLeft ? 6 : -6),
              y: frame.bottom - 8,
              "text-anchor": isLeft ? "start" : "end",
            },
            `above ${figure(knee, "bytes")} hardly more`,
          ),
        ]
      : []),
  );
}

/** @param {Parameters<typeof adviceDrawing>[0]} points @param {number | null} knee */
function adviceFigure(points, knee, /** @type {string} */ axis) {
  const box = element("div");
  curveFit(box, width => adviceDrawing(points, knee, axis, width));
  return element(
    "figure",
    {},
    element(
      "figcaption",
      {},
      `Line: what would have been spared of these ${figure(advice.span_ns, "ns")}. ` +
        "Band: the range." +
        (points.length <= DOTS_MAX ? " Dots: the sizes that were judged." : ""),
    ),
    box,
  );
}

/** @param {MemoryGain} gain */
function adviceRow(gain) {
  const sign = gain.more_bytes < 0 ? "\u2212" : "+";
  const time = gain.cost ?? gain.spared;
  const figures = [
    (gain.cost ? "\u2212" : "") + adviceSpared(time),
    adviceInterval(time),
    figure(gain.kept_bytes, "bytes"),
  ].map(text => element("td.number", {}, text));
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, sign + figure(Math.abs(gain.more_bytes), "bytes")),
    ...figures,
    element("td", {}, gain.unproven ? `unproven: ${gain.unproven}` : ""),
  );
}

/** What a cache on each device would have spared, by its size. */
function adviceFlash() {
  const devices = /** @type {{kind: string, times_from: string, sizes: FlashGain[]}[]} */ (
    advice.flash
  );
  const rows = devices.flatMap(device =>
    device.sizes.map(gain => {
      const figures = [
        figure(gain.bytes, "bytes"),
        adviceSpared(gain.spared),
        adviceInterval(gain.spared),
        figure(gain.hits / (gain.reads || 1), "ratio"),
      ].map(text => element("td.number", {}, text));
      const name = device.kind === "stick" ? "stick" : "SSD";
      return element("tr", {}, element("th", { scope: "row" }, name), ...figures);
    }),
  );
  const heads = ["device", "size", "spares", "range", "reads that it serves"];
  return rows.length
    ? adviceSection(
        "A cache on a stick or an SSD",
        curveTable(heads, rows),
        element("p.quiet", {}, devices.map(device => device.times_from).join("; ")),
      )
    : null;
}

/** What a cache would have hit of the reads of a trace, by its size and policy of eviction. */
function adviceHits() {
  const sizes = /** @type {TraceSize[]} */ (adviceTrace?.sizes ?? []);
  if (!sizes.length) return null;
  const names = sizes[0].policies.map(one => one.policy);
  const share = (/** @type {TraceSize} */ size, /** @type {string} */ name) =>
    size.policies.find(one => one.policy === name)?.hit_share ?? 0;
  const rows = sizes.map(size => {
    const shares = [
      size.served_reads / (adviceTrace.reads || 1),
      ...names.map(name => share(size, name)),
    ];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, figure(size.bytes, "bytes")),
      ...shares.map(value => element("td.number", {}, figure(value, "ratio"))),
    );
  });
  return adviceSection(
    "What a cache would have hit",
    sizes.length > 1
      ? curveFigureOf({
          id: "hits",
          title: "By size and policy of eviction",
          note: "The share of all blocks that were read.",
          x: { name: "size of the cache", unit: "bytes", log: true },
          y: { name: "hits", unit: "ratio", log: false },
          lines: names.map(name => ({
            name,
            points: sizes.map(size => ({ x: size.bytes, y: share(size, name) })),
            strong: name === "LRU",
          })),
        })
      : null,
    curveTable(["size", "reads that it serves", ...names], rows),
  );
}

/** What a trace has, and what its seconds are of. */
function adviceTraceGrounds() {
  const bytes = figure(adviceTrace.read_bytes, "bytes");
  const different = figure(adviceTrace.distinct_bytes, "bytes");
  const length = figure(adviceTrace.span_ns, "ns");
  return [
    [
      "measured",
      `${figure(adviceTrace.reads, "count")} reads of ${bytes}, ${different} of it different ` +
        `blocks, and ${figure(adviceTrace.writes, "count")} writes in ${length}.`,
    ],
    adviceTrace.times === "trace" && [
      "measured",
      `For ${figure(advice.disk_ns, "ns")} at least one read was under way; added up they took ` +
        `${figure(advice.threads_waited_ns, "ns")}.`,
    ],
    adviceTrace.times === "measured" && [
      "concluded",
      `One after the other its reads take ${figure(advice.disk_ns, "ns")}.`,
    ],
  ];
}

/** @param {string} title @param {{label: string, share: number, spared_ns: number}[]} users */
const adviceUsers = (title, users) =>
  users.length
    ? adviceSection(
        title,
        curveTable(
          ["", "share of the waits", "would be spared"],
          users.map(user =>
            element(
              "tr",
              {},
              element("th", { scope: "row" }, user.label),
              element("td.number", {}, figure(user.share, "ratio")),
              element("td.number", {}, figure(user.spared_ns, "ns")),
            ),
          ),
        ),
      )
    : null;

/** What a recording has. */
function adviceRecordingGrounds() {
  const { file, swap } = adviceMemory;
  return [
    ["measured", `${figure(advice.span_ns, "ns")} were recorded.`],
    [
      "measured",
      `For ${figure(advice.disk_ns, "ns")} of it nothing could run until a disk answered.`,
    ],
    [
      "measured",
      `Threads together waited ${figure(advice.threads_waited_ns, "ns")} for reads and swap.`,
    ],
    [
      "measured",
      `About ${figure(file.came_back_bytes, "bytes")} of files and ` +
        `${figure(swap.came_back_bytes, "bytes")} of swap came back after they had left memory ` +
        "(from one page in 16).",
    ],
  ];
}

/** What is measured, and what is concluded. */
function adviceGrounds() {
  const facts = [
    ...(adviceTrace ? adviceTraceGrounds() : adviceRecordingGrounds()),
    advice.per_day_ns && [
      "concluded",
      `If a whole day were like this: ${figure(advice.per_day_ns, "ns")} a day.`,
    ],
    ...advice.notes.map((/** @type {string} */ note) => ["note", adviceSentence(note)]),
  ];
  return element(
    "ul.advice-grounds",
    {},
    ...facts
      .filter(Boolean)
      .map(([grade, text]) => element("li", {}, element("span.badge", {}, grade), ` ${text}`)),
  );
}

const adviceTop = element(
  "header",
  {},
  element("h1", {}, "Would more memory have helped?"),
  element("p.quiet", {}, advice.subject),
  element(
    `div.advice-answer.advice-${advice.state}`,
    {},
    element("p.quiet", {}, adviceGrade),
    element("p.advice-words", {}, adviceSentence(advice.answer)),
  ),
);
document.body.append(
  element(
    "main",
    {},
    adviceTop,
    adviceCurve.length > 2
      ? adviceFigure(
          adviceCurve.map(gain => ({
            at: gain.more_bytes,
            spared: /** @type {Spared} */ (gain.spared),
          })),
          adviceMemory.knee_bytes,
          "more memory",
        )
      : null,
    adviceMemory.sizes.length && !adviceIsHits
      ? adviceSection(
          "Each size",
          curveTable(
            ["memory", "spares", "range", "would have stayed", ""],
            adviceMemory.sizes.map(adviceRow),
          ),
        )
      : null,
    adviceFlash(),
    adviceHits(),
    adviceUsers("Who waited for what came back", advice.processes),
    adviceUsers("By group", advice.groups),
    adviceSection("What this rests on", adviceGrounds()),
  ),
);
