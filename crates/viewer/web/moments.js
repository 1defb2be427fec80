// The moments of a long recording that stood out against its usual level: a button each, which
// zooms to it in the charts.
import { element } from "./dom.js";
import { figure } from "./format.js";
import { pressed } from "./findings.js";

/** @typedef {import("./findings.js").Chosen} Chosen */

/**
 * A value of an unusual figure in its unit.
 * @param {number} value @param {string} unit
 */
function valueOf(value, unit) {
  if (unit === "bytes/s") return figure(value, "bytes_per_s");
  if (unit === "per second") return `${figure(value, "count")} a second`;
  return figure(value, unit === "processors" ? "count" : unit);
}

/**
 * The list; empty where nothing stood out.
 * @param {import("./decode.js").Timeline} timeline @param {string} of whose, where there are two
 * @param {(chosen: Chosen | null) => void} choose @param {string | null} now which is shown
 */
export function moments({ view: { explain } }, of, choose, now) {
  const items = (explain.moments ?? []).map((/** @type {any} */ moment) => {
    const unusual = moment.figures
      .slice(0, 2)
      .map(
        (/** @type {any} */ { title, value, usual, unit }) =>
          `${title} ${valueOf(value, unit)} (usually ${valueOf(usual, unit)})`,
      )
      .join("; ");
    const chosen = {
      id: `moment-${moment.from_ns}`,
      evidence: [],
      span: { from_ns: moment.from_ns, to_ns: moment.to_ns },
    };
    const title = [
      element("b", {}, `${moment.time}, ${figure(moment.to_ns - moment.from_ns, "ns")} `),
      moment.claim || unusual,
    ];
    return element(
      "li",
      {},
      pressed("moment", chosen, title, choose, chosen.id === now),
      moment.claim ? element("p.quiet", {}, unusual) : null,
      ...(moment.who ?? []).map((/** @type {string} */ who) => element("p", {}, who)),
    );
  });
  const title = `Moments that stood out${of}`;
  const section = element(
    "section.findings",
    { "aria-label": title },
    element("h2", {}, title),
    element("ol", {}, ...items),
  );
  return items.length ? [section] : [];
}
