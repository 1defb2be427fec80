// The two bars: where the time went. A bar is a list; what a slice is made of is shown below it, on
// hover, focus or click.
import { element, jsonOf } from "./dom.js";
import { figure } from "./format.js";

/**
 * @typedef {{name: string, value: number, unit: string, source: string, series?: string[]}}
 * Evidence
 */
/** @typedef {{name: string, ns: number, grade: string, evidence: Evidence[]}} Slice */

/** The words of `TimeSlice` by id. @type {Record<string, {short: string, long: string}>} */
const WORDS = jsonOf("words");

/** @param {string} name */
export function sliceName(name) {
  return WORDS[name]?.long ?? name.replaceAll("_", " ");
}

/** @param {Evidence} evidence */
export function evidenceText({ name, value, unit }) {
  return `${name} ${figure(value, unit)}`;
}

/** @param {number} ns @param {number} of */
function share(ns, of) {
  const percent = (100 * ns) / Math.max(of, 1);
  return percent > 0 && percent < 1 ? "<1 %" : `${percent.toFixed(0)} %`;
}

/**
 * Both bars of an explanation.
 * @param {any} explain `terrace.explain/1`
 * @param {string} ending of their names
 * @param {string} of whose, where there are two
 */
export function bars(explain, ending, of) {
  const machine = explain.bars.thread.some((/** @type {Slice} */ { name }) => name === "idle");
  const wall = bar(`wall${ending}`, `Wall time${of}`, explain.bars.wall, explain.wall_ns, []);
  const threads = bar(
    `thread${ending}`,
    `All ${machine ? "processors" : "threads"} together${of}`,
    explain.bars.thread,
    explain.thread_ns,
    explain.of_which,
  );
  return element("div.bars", {}, ...(machine ? [threads, wall] : [wall, threads]));
}

/**
 * @param {string} id @param {string} title @param {Slice[]} slices @param {number} whole
 * @param {any[]} inside
 */
function bar(id, title, slices, whole, inside) {
  const detail = element("p.detail.quiet", { "aria-live": "polite" });
  const shown = slices.filter(({ ns }) => ns > 0);
  const items = shown.map(slice => {
    const show = () => detail.replaceChildren(...details(slice, inside, whole));
    const on = { mouseenter: show, focus: show, click: show };
    const part = element(
      "div",
      {
        ...on,
        class: "part",
        style:
          `flex-grow: ${slice.ns / Math.max(whole, 1)}; ` +
          `--key: var(--${slice.name}, var(--sleep))`,
      },
      element(
        "span",
        {},
        `${WORDS[slice.name]?.short ?? sliceName(slice.name)} ${share(slice.ns, whole)}`,
      ),
    );
    const entry = element(
      "button",
      { ...on, "data-slice": `${id}.${slice.name}` },
      element("i", { "aria-hidden": true, style: `--key: var(--${slice.name}, var(--sleep))` }),
      sliceName(slice.name),
      " ",
      element("b", {}, share(slice.ns, whole)),
      " ",
      figure(slice.ns, "ns"),
      slice.grade === "measured" ? null : element("span.badge", {}, slice.grade),
    );
    return { part, entry: element("li", {}, entry) };
  });
  const largest = shown.reduce(
    (/** @type {Slice | null} */ most, slice) => (most && most.ns >= slice.ns ? most : slice),
    null,
  );
  if (largest) detail.append(...details(largest, inside, whole));
  return element(
    "section.bar",
    { "data-bar": id },
    element("h2", {}, `${title}: ${figure(whole, "ns")}`),
    element("div.parts", { "aria-hidden": true }, ...items.map(({ part }) => part)),
    element("ul.legend", {}, ...items.map(({ entry }) => entry)),
    detail,
  );
}

/** @param {Slice} slice @param {any[]} inside @param {number} whole */
function details(slice, inside, whole) {
  const parts = inside
    .filter(({ within, ns }) => within === slice.name && ns > 0)
    .map(
      ({ name, ns, grade }) =>
        `${name.replaceAll("_", " ")} ${figure(ns, "ns")} (${share(ns, whole)}, ${grade})`,
    );
  const known = slice.evidence
    .map(evidence => `${evidenceText(evidence)} (${evidence.source})`)
    .join("; ");
  return [
    element("b", {}, `${sliceName(slice.name)}, ${slice.grade}`),
    `: ${known}.`,
    parts.length ? ` Of which, overlapping: ${parts.join("; ")}.` : "",
  ];
}
