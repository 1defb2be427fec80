// The page of a survey: the terrace and what is odd first, then the curves, the findings, the
// checks, the machine.
import { choosing, element, jsonOf } from "./dom.js";
import { figure } from "./format.js";
import { curveFigureOf, curveFit, curveTable } from "./curves.js";
import {
  TERRACE_KINDS,
  terraceDrawing,
  terraceFile,
  terraceMissing,
  terraceName,
} from "./terrace.js";

/** @typedef {import("./terrace.js").Tier} Tier */
/** @typedef {import("./terrace.js").Measured} Measured */
/** @typedef {import("./curves.js").CurveChart} CurveChart */
/** @typedef {{name: string, value: number | null, unit: string, source: string}} Evidence */
/**
 * @typedef {{id: string, claim: string, tier: string | null, evidence: Evidence[], grade: string,
 * remedy: string | null, confirm: string | null}} Finding
 */
/**
 * @typedef {{level: number, measured: {fits_bytes: number, spills_bytes: number} | null,
 * sysfs_bytes: number | null, cpuid_bytes: number | null, libc_bytes: number | null}} Cache
 */
/** @typedef {{at_s: number, bytes_per_s: number, disturbed: boolean}[]} Rates */
/**
 * @typedef {{copies: {method: string, points: {size_bytes: number, bytes_per_s: Measured}[]}[],
 * caches: Cache[], latencies: {pages: string, points: {size_bytes: number, load_ns: Measured,
 * noisy: string | null}[]}[], faults: {pages: string, phase: string, bars: {from_ns: number, to_ns:
 * number, count: number}[]}[], devices: {tier: string, reads: Rates, writes: Rates}[]}} Curves
 */

/**
 * The charts, by the start of their ids, that show what a finding is about besides the level that
 * it names.
 */
const SURVEY_CHARTS = /** @type {const} */ ([
  [/^libc_copy/, "copies"],
  [/^(cache_size|thp_|translation)/, "latencies"],
  [/^memory_(backed|goes)/, "faults"],
  [/^(volume_limit_bandwidth|device_served|device_read_ahead)/, "rates"],
]);
const SURVEY_RATES = /** @type {const} */ ([
  ["read", "read_bytes_per_s"],
  ["write", "write_bytes_per_s"],
  ["copy", "copy_bytes_per_s"],
]);
const SURVEY_WORDS = /** @type {Record<string, string>} */ ({
  "4k": "4 KiB pages",
  thp: "huge pages",
  first: "first touch",
  again: "again",
  after_wait: "after a wait",
});

const surveyTold = jsonOf("survey");
const surveyTiers = /** @type {Tier[]} */ (surveyTold.tiers);
const surveyFindings = /** @type {Finding[]} */ (surveyTold.findings);

/** @param {Measured | null} measured @param {string} unit @returns {string} with its interval */
function surveyInterval(measured, unit) {
  if (!measured) return "\u2013";
  const { median, low, high, trials, discarded } = measured;
  const interval =
    low !== null && high !== null
      ? `95 %: ${figure(low, unit)} to ${figure(high, unit)}`
      : "no interval";
  const kept = `${trials} trial${trials === 1 ? "" : "s"}`;
  const dropped = discarded ? `, ${discarded} discarded` : "";
  return `${figure(median, unit)} (${interval}; ${kept}${dropped})`;
}

/** @param {Tier} tier @returns {[string, string][]} everything that is known of a level */
function surveyFacts(tier) {
  const rates = SURVEY_RATES.map(
    ([name, key]) =>
      /** @type {[string, string]} */ ([name, surveyInterval(tier[key], "bytes_per_s")]),
  );
  return [
    ["is", TERRACE_KINDS[tier.kind] ?? tier.kind],
    ["holds", figure(tier.capacity_bytes, "bytes")],
    ["one access", surveyInterval(tier.latency_ns, "ns")],
    ["99 % within", figure(tier.latency_ns?.p99, "ns")],
    ...rates,
    ["seen", tier.grade + (tier.noisy ? ", noisy: the trials disagree" : "")],
    ["how", tier.method || "\u2013"],
    ["note", tier.reason ?? "\u2013"],
  ];
}

/** @param {[string, string][]} facts */
const surveyList = facts =>
  element(
    "dl",
    {},
    ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
/** @param {string} title @param {...(Node | string | null)} children */
const surveySection = (title, ...children) =>
  element("section", {}, element("h2", {}, title), ...children);
/** @param {Tier} tier @returns {number[]} the numbers of the findings about a level */
const surveyAbout = tier =>
  surveyFindings.flatMap((finding, index) => (finding.tier === tier.name ? [index + 1] : []));
/** @param {number[]} numbers links from a picture back to its findings */
const surveyBack = numbers =>
  element(
    "p",
    {},
    ...numbers.flatMap(number => [
      element(
        "a",
        { href: `#finding-${number}` },
        `[${number}] ${surveyFindings[number - 1].id.replaceAll("_", " ")}`,
      ),
      " ",
    ]),
  );

/** The terrace, the numbers of one level, and what is odd. */
function surveyTerrace() {
  const [box, details] = [element("div"), element("div.survey-details")];
  const show = (/** @type {Tier} */ tier) =>
    details.replaceChildren(
      element("h3", {}, terraceName(tier)),
      surveyList(surveyFacts(tier)),
      surveyBack(surveyAbout(tier)),
    );
  const spoken = (/** @type {Tier} */ tier) =>
    [terraceName(tier), ...surveyFacts(tier).map(fact => fact.join(": "))].join("; ");
  surveyTiers
    .filter(tier => surveyAbout(tier).length)
    .concat(surveyTiers)
    .slice(0, 1)
    .forEach(show);
  curveFit(box, width => terraceDrawing(surveyTiers, width, surveyAbout, spoken, show));
  const save = () => {
    const file = new Blob([terraceFile(/** @type {Element} */ (box.firstElementChild))], {
      type: "image/svg+xml",
    });
    element("a", { href: URL.createObjectURL(file), download: "terrace.svg" }).click();
  };
  const missing = surveyTiers.flatMap(tier =>
    terraceMissing(tier) ? [`${terraceName(tier)} (${terraceMissing(tier)})`] : [],
  );
  const kinds = [
    ...new Set(surveyTiers.filter(tier => !terraceMissing(tier)).map(tier => tier.kind)),
  ];
  const odd = surveyFindings.map((finding, index) =>
    element(
      "li",
      {},
      element("a", { href: `#finding-${index + 1}` }, finding.claim.split(/(?<=[^.]\.) /)[0]),
    ),
  );
  const how = element(
    "figcaption",
    {},
    "Each step is a place where data can be. ",
    element("b", {}, "Further right"),
    " holds more, ",
    element("b", {}, "further down"),
    " answers later, ",
    element("b", {}, "thicker"),
    " reads more bytes a second. A thin line ends at the 99th percentile of the latency. " +
      `Hatched: not reliable. Dashed: no size of its own. ${choosing()} a step for its numbers.`,
  );
  return element(
    "div.survey-first",
    {},
    element(
      "figure",
      { id: "terrace" },
      how,
      box,
      element(
        "p.survey-kinds",
        {},
        ...kinds.map(kind => element(`span.kind-${kind}`, {}, TERRACE_KINDS[kind] ?? kind)),
        element("button", { click: save }, "Save the picture"),
      ),
      missing.length ? element("p.quiet", {}, `Not drawn: ${missing.join("; ")}.`) : null,
      details,
    ),
    element(
      "section.survey-odd",
      {},
      element("h2", {}, `${odd.length || "No"} odd thing${odd.length === 1 ? "" : "s"}`),
      element("ol", {}, ...odd),
    ),
  );
}

/** Every level with its figures, for those who read rather than look. */
function surveyTable() {
  const rows = surveyTiers.map((tier, index) => {
    const figures = [
      figure(tier.latency_ns?.median, "ns"),
      figure(tier.latency_ns?.p99, "ns"),
      ...SURVEY_RATES.map(([, key]) => figure(tier[key]?.median, "bytes_per_s")),
      figure(tier.capacity_bytes, "bytes"),
    ].map(text => element("td.number", {}, text));
    return element(
      "tr",
      { id: `row-${index}`, tabindex: -1 },
      element("th", { scope: "row" }, terraceName(tier)),
      ...figures,
      element("td", {}, tier.grade + (tier.noisy ? ", noisy" : "")),
      element("td.quiet", {}, [tier.method, tier.reason].filter(Boolean).join("; ")),
    );
  });
  return element(
    "div.survey-levels",
    {},
    curveTable(
      ["level", "one access", "99 % within", "read", "write", "copy", "holds", "seen", "how"],
      rows,
    ),
  );
}

/** @param {Cache} cache @returns {[string, number][]} who says how large it is */
const surveyClaims = cache =>
  /** @type {[string, number][]} */ (
    [
      ["sysfs", cache.sysfs_bytes],
      ["CPUID", cache.cpuid_bytes],
      ["the C library", cache.libc_bytes],
    ].filter(([, bytes]) => bytes)
  );

/** @returns {CurveChart[]} the charts that there are points for */
function surveyCharts() {
  const {
    copies = [],
    latencies = [],
    caches = [],
    faults = [],
    devices = [],
  } = /** @type {Partial<Curves>} */ (surveyTold.curves ?? {});
  const [size, rate, time] = [
    { name: "size", unit: "bytes", log: true },
    { name: "bytes a second", unit: "bytes_per_s", log: true },
    { name: "time", unit: "ns", log: true },
  ];
  const point = (
    /** @type {number} */ x,
    /** @type {Measured} */ { median, low, high },
    /** @type {string | null} */ doubt = null,
  ) => ({ x, y: median, low, high, doubt });
  const marks = caches.flatMap(cache => [
    ...surveyClaims(cache)
      .slice(0, 1)
      .map(([, bytes]) => ({ from: bytes, to: bytes, name: `L${cache.level}`, claimed: true })),
    ...(cache.measured
      ? [
          {
            from: cache.measured.fits_bytes,
            to: cache.measured.spills_bytes,
            name: `edge of L${cache.level}`,
            claimed: false,
          },
        ]
      : []),
  ]);
  const sentences = caches.map(cache =>
    element(
      "li",
      {},
      [
        `L${cache.level}: ${surveyClaims(cache)
          .map(([who, bytes]) => `${who} says ${figure(bytes, "bytes")}`)
          .join(", ")}`,
        cache.measured
          ? `measured, ${figure(cache.measured.fits_bytes, "bytes")} fits and ` +
            `${figure(cache.measured.spills_bytes, "bytes")} does not`
          : "no edge was found",
      ].join("; "),
    ),
  );
  /** @type {CurveChart[]} */
  const charts = [
    {
      id: "copies",
      title: "Copy rate against size",
      note:
        "Each method copies memory of each level; a copied byte counts once. " +
        "The thick line is the C library's.",
      x: size,
      y: rate,
      lines: copies.map(curve => ({
        name: curve.method,
        strong: curve.method === "memcpy",
        points: curve.points.map(at => point(at.size_bytes, at.bytes_per_s)),
      })),
    },
    {
      id: "latencies",
      title: "Latency against size",
      x: size,
      y: time,
      marks,
      after: [element("ul.quiet", {}, ...sentences)],
      note:
        "Each load depends on the load before it, in a buffer of each size. " +
        "Dashed: the size that a cache is said to have. Shaded: where its edge was found.",
      lines: latencies.map(curve => ({
        name: SURVEY_WORDS[curve.pages] ?? curve.pages,
        points: curve.points.map(at => point(at.size_bytes, at.load_ns, at.noisy)),
      })),
    },
    ...[...new Set(faults.map(fault => fault.pages))].map(pages => ({
      id: `faults-${pages}`,
      title: `New memory, ${SURVEY_WORDS[pages] ?? pages}`,
      stairs: true,
      x: time,
      note:
        "How long touches of memory took: as the kernel first gave it, " +
        "and after it was given back.",
      y: { name: "share of touches", unit: "ratio", log: false },
      lines: faults
        .filter(fault => fault.pages === pages && fault.bars.length)
        .map(({ phase, bars }) => {
          const all = bars.reduce((sum, bar) => sum + bar.count, 0);
          return {
            name: SURVEY_WORDS[phase] ?? phase,
            points: [
              { x: bars[0].from_ns, y: 0 },
              ...bars.map(bar => ({ x: bar.from_ns, y: bar.count / all })),
              { x: bars[bars.length - 1].to_ns, y: 0 },
            ],
          };
        }),
    })),
    ...devices.map(device => ({
      id: `rates-${surveyTiers.findIndex(tier => tier.name === device.tier)}`,
      title: `Speed of ${device.tier.replace(/\s+/g, " ")} over time`,
      note:
        "Sequential reads, and writes made durable, in short windows that take turns. " +
        "Hollow: something disturbed the window, and it does not count.",
      x: { name: "since the first window", unit: "ns", log: false },
      y: { ...rate, log: false },
      lines: [
        { name: "reads", rates: device.reads },
        { name: "writes", rates: device.writes },
      ].map(({ name, rates }) => ({
        name,
        points: rates.map(at => ({
          x: at.at_s * 1e9,
          y: at.bytes_per_s,
          doubt: at.disturbed ? "disturbed" : null,
        })),
      })),
    })),
  ];
  return charts
    .map(chart => ({ ...chart, lines: chart.lines.filter(line => line.points.length) }))
    .filter(chart => chart.lines.length);
}

/**
 * @param {CurveChart[]} charts @param {Finding} finding @returns {CurveChart[]} those that show it
 */
function surveyChartsOf(charts, finding) {
  const kind = SURVEY_CHARTS.find(([ids]) => ids.test(finding.id))?.[1];
  const id =
    kind === "rates" ? `rates-${surveyTiers.findIndex(tier => tier.name === finding.tier)}` : kind;
  return charts.filter(chart => id && chart.id.startsWith(id));
}

/** @param {Finding} finding @param {number} index @param {CurveChart[]} charts */
function surveyFinding(finding, index, charts) {
  const at = surveyTiers.findIndex(tier => tier.name === finding.tier);
  const level =
    at >= 0
      ? [
          {
            id: `${terraceMissing(surveyTiers[at]) ? "row" : "level"}-${at}`,
            title: `${terraceName(surveyTiers[at])} on the terrace`,
          },
        ]
      : [];
  const pictures = [...level, ...surveyChartsOf(charts, finding)].flatMap(({ id, title }) => [
    ", ",
    element("a", { href: `#${id}` }, title),
  ]);
  const evidence = finding.evidence.map(piece =>
    element(
      "tr",
      {},
      element("td", {}, piece.name),
      element("td.number", {}, figure(piece.value, piece.unit)),
      element("td.quiet", {}, piece.source),
    ),
  );
  return element(
    "article.survey-finding",
    { id: `finding-${index + 1}`, tabindex: -1 },
    element("h3", {}, `${index + 1}. ${finding.claim} `, element("span.badge", {}, finding.grade)),
    finding.remedy ? element("p", {}, element("b", {}, "Do: "), finding.remedy) : null,
    finding.confirm
      ? element("p", {}, element("b", {}, "Confirm: "), element("code", {}, finding.confirm))
      : null,
    pictures.length ? element("p", {}, element("b", {}, "See: "), ...pictures.slice(1)) : null,
    curveTable([], evidence),
  );
}

/** The machine, and what the survey itself cost. */
function surveyMachine() {
  const { machine, cost, control_step_ns: step, version } = surveyTold;
  /** @type {[string, string | null][]} */
  const facts = [
    ["host", machine.host],
    ["processor", machine.cpu],
    ["processors", `${machine.usable_cpus} of ${machine.online_cpus} usable`],
    ["memory", figure(machine.memory_bytes, "bytes")],
    ["runs in", machine.virtualization],
    ["kernel", machine.kernel],
    ["C library", machine.libc],
    ["huge pages", machine.thp],
    ["features", machine.features.join(", ")],
    ["as root", machine.root ? "yes" : "no: root sees more"],
    ["fractal control", step && `${surveyInterval(step, "ns")} a step`],
    [
      "survey",
      `terrace ${version}; ${figure(cost.wall_s * 1e9, "ns")}, ` +
        `${figure(cost.cpu_s * 1e9, "ns")} of processor time, ` +
        `${figure(cost.max_resident_bytes, "bytes")} of memory`,
    ],
    ["wrote", `${figure(cost.written_bytes, "bytes")}, all removed again`],
    [
      "clock",
      `${figure(cost.timer_ns, "ns")} a reading; ` +
        `${figure(cost.bracket_ns, "ns")} around each trial`,
    ],
  ];
  return surveySection(
    "Machine and method",
    surveyList(/** @type {[string, string][]} */ (facts.filter(([, value]) => value))),
    element(
      "p.quiet",
      {},
      "A figure is the median of the undisturbed trials, with the 95 % interval of that median " +
        "within this run; below 6 trials there is no interval. ",
      "Variants take turns, so that drift affects all alike. " +
        "A dash is a figure that is absent, never 0.",
    ),
  );
}

/** The whole page. */
function surveyPage() {
  const { machine, fine, unchecked, skipped, started_unix_s: started, interrupted } = surveyTold;
  const charts = surveyCharts();
  const drawn = charts.map(chart =>
    curveFigureOf({
      ...chart,
      after: [
        ...(chart.after ?? []),
        surveyBack(
          surveyFindings.flatMap((finding, index) =>
            surveyChartsOf(charts, finding).includes(chart) ? [index + 1] : [],
          ),
        ),
      ],
    }),
  );
  const reasons = (/** @type {{id?: string, name?: string, reason: string}[]} */ items) =>
    element(
      "ul",
      {},
      ...items.map(item =>
        element(
          "li",
          {},
          `${item.id?.replaceAll("_", " ") ?? item.name}: `,
          element("span.quiet", {}, item.reason),
        ),
      ),
    );
  const facts = [
    machine.host,
    machine.cpu,
    `${machine.usable_cpus} processor${machine.usable_cpus === 1 ? "" : "s"}`,
    figure(machine.memory_bytes, "bytes"),
    machine.virtualization,
    `${new Date(started * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`,
    interrupted ? "interrupted: only a part was measured" : null,
  ];
  return element(
    "main",
    {},
    element("h1", {}, "terrace survey"),
    element("p.quiet", {}, facts.filter(Boolean).join(" \u00b7 ")),
    surveyTerrace(),
    surveySection("All levels", surveyTable()),
    surveySection(
      "Curves",
      drawn.length
        ? element("div.survey-charts", {}, ...drawn)
        : "This survey kept no points of its curves.",
    ),
    surveySection(
      "Findings",
      ...(surveyFindings.length
        ? surveyFindings.map((finding, index) => surveyFinding(finding, index, charts))
        : ["Nothing is odd."]),
    ),
    surveySection(
      `Fine: ${fine.length}`,
      element(
        "p.quiet",
        {},
        fine.map((/** @type {string} */ id) => id.replaceAll("_", " ")).join(", "),
      ),
    ),
    unchecked.length
      ? surveySection(`Could not be checked: ${unchecked.length}`, reasons(unchecked))
      : null,
    skipped.length ? surveySection("Left out", reasons(skipped)) : null,
    surveyMachine(),
  );
}

document.body.prepend(surveyPage());
addEventListener("hashchange", () => document.getElementById(location.hash.slice(1))?.focus());
