// How two recordings differ: the difference in wall time by its parts, each of which is shown in
// the charts, and where in the work it arose.
import { element } from "./dom.js";
import { figure } from "./format.js";
import { sliceName } from "./bars.js";
import { pressed } from "./findings.js";
import { between, differences, signed, verdict } from "./differences.js";

/**
 * @typedef {import("./decode.js").Timeline} Timeline
 * @typedef {import("./findings.js").Chosen} Chosen
 * @typedef {import("./differences.js").Difference} Difference
 */
/**
 * @typedef {{name: string, within: string | null, first_ns: number, second_ns: number,
 * difference_ns: number, low_ns: number | null, high_ns: number | null, verdict: string}} Part
 */

// A part that is less than this share of either whole has no bar, as on the terminal; it is
// among the figures.
const WORTH_A_BAR = 0.005;

/**
 * What a part of the difference rests on in both recordings, at the time of the one where it is
 * longer.
 * @param {Part} part @param {Timeline[]} timelines @returns {Chosen}
 */
export function partShown({ name, within, difference_ns }, timelines) {
  const found = timelines.map(({ view: { explain } }) =>
    (within === null ? explain.bars.wall : explain.of_which).find(
      (/** @type {any} */ part) => part.name === name,
    ),
  );
  return {
    id: name,
    evidence: found.flatMap(part => part?.evidence ?? []),
    span: found[difference_ns > 0 ? 1 : 0]?.span,
  };
}

/**
 * @param {any} compared `terrace.compare/1`
 * @param {Timeline[]} timelines @param {(what: Chosen | null, whose?: Timeline) => void} choose
 * @param {(from: number, to: number) => void} show
 */
export function comparison(compared, timelines, choose, show) {
  const { split, aligned, items } = compared;
  const row = (
    /** @type {Part} */ part,
    /** @type {string} */ name,
    /** @type {Difference["button"]} */ button,
  ) => ({
    name,
    button,
    inside: part.within !== null,
    value: part.difference_ns,
    low: part.low_ns,
    high: part.high_ns,
    verdict: part.verdict,
    text: [
      signed(part.difference_ns, "ns"),
      between(part.low_ns, part.high_ns, "ns"),
      `${figure(part.first_ns, "ns")} \u2192 ${figure(part.second_ns, "ns")}`,
    ]
      .filter(Boolean)
      .join("; "),
  });
  const whole = { ...split, name: "wall", within: null, verdict: items[0].verdict };
  const parts = split.parts.filter(
    (/** @type {Part} */ { difference_ns }) =>
      Math.abs(difference_ns) >= WORTH_A_BAR * Math.max(split.first_ns, split.second_ns),
  );
  // Of what runs on, a second of each side is divided: that has no difference to show.
  const isSteady = items.some((/** @type {any} */ { of }) => of === "rate");
  const all = row(whole, "wall time", (...shown) => element("div.claim", {}, ...shown));
  const bars = differences([
    ...(isSteady ? [] : [all]),
    ...parts.map((/** @type {Part} */ part) =>
      row(part, sliceName(part.name), (...shown) =>
        pressed("part", partShown(part, timelines), shown, what =>
          choose(what, timelines[part.difference_ns > 0 ? 1 : 0]),
        ),
      ),
    ),
  ]);
  const title = isSteady ? element("h2", {}, "Where a second goes") : null;
  return verdict(compared, title, bars, aligned && pieces(aligned, timelines[1], show));
}

/**
 * Where in the work the difference arose; a piece that is pressed is zoomed to.
 * @param {any} aligned @param {Timeline} second @param {(from: number, to: number) => void} show
 */
function pieces({ series, unit, sections }, second, show) {
  let [a, b] = [0, 0];
  const rows = sections.map((/** @type {any} */ { to, first_ns, second_ns, most }) => {
    const [from, since] = [a, b],
      [until, end] = [(a += first_ns / 1e9), (b += second_ns / 1e9)];
    const click = () =>
      show(Math.min(from, second.place(since)), Math.max(until, second.place(end)));
    const change = signed(second_ns - first_ns, "ns");
    const from_to = `${figure(first_ns, "ns")} \u2192 ${figure(second_ns, "ns")}`;
    const text = `${change}; ${from_to}${most ? `; most in ${sliceName(most)}` : ""}`;
    return {
      name: `to ${figure(to, unit)}`,
      value: second_ns - first_ns,
      low: null,
      high: null,
      verdict: "unproven",
      text,
      button: (/** @type {Node[]} */ ...shown) => element("button.claim", { click }, ...shown),
    };
  });
  return element(
    "details",
    { id: "pieces" },
    element("summary", {}, `Where in the work it arose, by ${series}`),
    differences(rows),
  );
}
