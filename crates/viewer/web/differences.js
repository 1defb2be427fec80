// Differences between two sides, each a bar from the line of none with its 95 % interval. What is
// not proven is hatched, and says so.
import { element } from "./dom.js";
import { figure } from "./format.js";

/**
 * @typedef {{value: number, low: number | null, high: number | null, verdict: string}} Judged the
 * second less the first
 */
/**
 * `text` is its figures in words, `inside` that it is part of the row before it, `better` which
 * end is good where that must be said (time is best short), `button` makes what is pressed of what
 * it shows.
 * @typedef {Judged & {name: string, text: string, inside?: boolean, better?: string | null, button:
 * (...shown: Node[]) => HTMLElement}} Difference
 */

/** A difference with its sign. @param {number | null} value @param {string} unit */
export function signed(value, unit) {
  return `${value !== null && value > 0 ? "+" : ""}${figure(value, unit)}`;
}

/**
 * An interval in words; empty for none.
 * @param {number | null} low @param {number | null} high @param {string} unit
 */
export function between(low, high, unit) {
  return low === null || high === null ? "" : `95 %: ${signed(low, unit)} to ${signed(high, unit)}`;
}

/** The rows on one scale, which is as wide as the longest needs. @param {Difference[]} rows */
export function differences(rows) {
  const ends = rows.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
  const least = Math.min(0, ...ends),
    room = Math.max(0, ...ends) - least || 1;
  const share = (/** @type {number} */ value) => (100 * (value - least)) / room;
  const part = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    element(`i.${name}`, {
      style: `left: ${share(Math.min(from, to))}%; right: ${100 - share(Math.max(from, to))}%`,
    });
  return element(
    "ol.differences",
    {},
    ...rows.map(({ name, value, low, high, verdict, text, inside, better, button }) => {
      const way = value > 0 === (better === "higher") ? "better" : "worse";
      const bar = element(
        "span.track",
        { "aria-hidden": true },
        part(`${way}.${verdict}`, 0, value),
        part("none", 0, 0),
        low === null || high === null ? null : part("interval", low, high),
      );
      return element(
        "li",
        { class: inside ? "inside" : null },
        button(
          element("span", {}, inside ? "of which " : "", name),
          bar,
          element(
            "span.figures",
            {},
            text,
            " ",
            element(
              "span.badge",
              {},
              verdict === "unproven" ? verdict : `proven${better ? ` ${way}` : ""}`,
            ),
          ),
        ),
      );
    }),
  );
}

/**
 * The verdict, the pictures of it, every figure, and what must be known to trust it.
 * @param {any} compared `terrace.compare/1`
 * @param {...(Node | null)} pictures
 */
export function verdict(compared, ...pictures) {
  const cell = (/** @type {number | null} */ value, /** @type {string} */ unit) =>
    element("td.number", {}, figure(value, unit));
  const rows = compared.items.map(
    (/** @type {any} */ { of, name, unit, first, second, difference, low, high, verdict }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, `${of} ${name}`.replaceAll("_", " ")),
        cell(first, unit),
        cell(second, unit),
        element("td.number", {}, signed(difference, unit)),
        element("td.number", {}, between(low, high, unit)),
        element("td", {}, verdict),
      ),
  );
  const head = ["medians of", "first", "second", "difference", "interval", "verdict"].map(text =>
    element("th", { scope: "col" }, text),
  );
  return element(
    "section",
    { id: "comparison", "aria-label": "What differs" },
    element("p.verdict", {}, compared.sentence),
    ...pictures,
    ...compared.notes.map((/** @type {string} */ note) => element("p.quiet", {}, note)),
    element(
      "details",
      {},
      element("summary", {}, `All ${rows.length} figures`),
      element(
        "div.scrolls",
        { tabindex: 0 },
        element("table", {}, element("tr", {}, ...head), ...rows),
      ),
    ),
  );
}
