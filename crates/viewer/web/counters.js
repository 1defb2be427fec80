// Every series of the recording, found by words, each with what it means; one that is wanted gets a
// chart.
import { element } from "./dom.js";
import { figure } from "./format.js";

/** @typedef {import("./decode.js").Timeline} Timeline */

const MOST_SHOWN = 40;

/**
 * @param {Timeline} timeline @param {(name: string, isWanted: boolean) => void} draw
 * @param {HTMLElement} added where it is drawn
 */
export function counters(timeline, draw, added) {
  const list = element("ul.counters", { id: "counter-list" }),
    count = element("p.quiet", { id: "counter-count", role: "status" });
  /** @type {Set<string>} */
  const wanted = new Set();
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = timeline.view.series.filter((/** @type {any} */ { name, meaning, source }) => {
      const text = `${name} ${meaning} ${source}`.toLowerCase();
      return words.every(word => text.includes(word));
    });
    const cut = found.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} are listed` : "";
    count.textContent = `${found.length} of ${timeline.view.series.length} counters${cut}`;
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map(entry));
  };
  const entry = (
    /** @type {import("./decode.js").Line} */ { name, unit, kind, source, refresh_ns, meaning },
  ) => {
    const click = () => {
      if (!wanted.delete(name)) wanted.add(name);
      button.setAttribute("aria-pressed", String(wanted.has(name)));
      draw(name, wanted.has(name));
    };
    const button = element(
      "button",
      { "data-add": name, "aria-pressed": wanted.has(name), click },
      "Draw",
    );
    const facts = [
      kind === "gauge" ? "level" : kind,
      unit,
      source,
      refresh_ns ? `every ${figure(refresh_ns, "ns")}` : "",
    ]
      .filter(Boolean)
      .join(", ");
    return element(
      "li",
      {},
      button,
      element(
        "div",
        {},
        element("b", {}, name),
        " ",
        element("small.quiet", {}, facts),
        meaning ? element("p", {}, meaning) : null,
      ),
    );
  };
  const input = /** @type {HTMLInputElement} */ (
    element("input", {
      id: "counter-search",
      type: "search",
      placeholder: "pressure, vda read, pswpin ...",
      input: search,
    })
  );
  const toggle = () => list.childElementCount || search();
  return element(
    "details",
    { id: "counters", toggle },
    element("summary", {}, `All ${timeline.view.series.length} counters`),
    element("p", {}, element("label", {}, "Search by name, meaning or source: ", input)),
    added,
    count,
    list,
  );
}
