// What cost time, worst first, each with its evidence; the causes ruled out; what was not seen.
import { element } from "./dom.js";
import { evidenceText } from "./bars.js";
import { figure } from "./format.js";

/** @typedef {import("./bars.js").Evidence} Evidence */
/**
 * @typedef {{id: string, evidence: Evidence[], span?: {from_ns: number, to_ns: number} | null}}
 * Chosen
 */

/**
 * Findings as a list of buttons: the one that is pressed is shown in the charts.
 * @param {any} explain @param {(chosen: Chosen | null) => void} choose
 * @param {string | null} now which is
 * @param {string} of whose, where there are two
 */
export function findings(explain, choose, now, of) {
  let number = 0;
  const items = explain.findings.map((/** @type {any} */ finding) => {
    if (!finding.within_previous) number++;
    const title = [
      finding.within_previous ? element("b", {}, "of which ") : element("b", {}, `${number} `),
      finding.claim,
    ];
    return element(
      "li",
      { class: finding.within_previous ? "within" : null },
      pressed("finding", finding, title, choose, finding.id === now),
      element(
        "p.quiet",
        {},
        element("span.badge", {}, finding.grade),
        " ",
        finding.evidence.slice(0, 4).map(evidenceText).join("; "),
      ),
      ...(finding.who ?? []).map((/** @type {string} */ text) => element("p", {}, text)),
      advice("Would help: ", finding.remedy),
      advice("To confirm: ", finding.confirm, "code"),
    );
  });
  const none = element("p", {}, "Nothing hurt that is known here.");
  const open = (explain.contradictions ?? []).find((/** @type {any} */ one) => !one.believed);
  return element(
    "section.findings",
    {},
    open ? element("p.badge", {}, `Sources contradict each other: ${open.text}.`) : null,
    ...copied(explain.copy, of),
    element("h2", {}, `What hurt${of}`),
    items.length ? element("ol", {}, ...items) : none,
  );
}

/**
 * How the copy went that a recording is of, if it is of one.
 * @param {{lines: string[]} | undefined} copy @param {string} of whose
 */
function copied(copy, of) {
  return copy
    ? [
        element("h2", {}, `How the copy went${of}`),
        ...copy.lines.map(line => element("p.copied", {}, line)),
      ]
    : [];
}

/**
 * The number of an innocent, if it says why: a count needs the time that it cost.
 * @param {Evidence} evidence @param {number | undefined} cost_ns
 */
function whyInnocent(evidence, cost_ns) {
  const says = evidence.value === 0 || ["ns", "ratio"].includes(evidence.unit);
  const text = evidenceText(evidence);
  if (cost_ns !== undefined && !says) return `${text} in ${figure(cost_ns, "ns")}`;
  return says || evidence.unit.endsWith("looked at") ? text : "";
}

/**
 * The rest, closed at first.
 * @param {any} explain @param {(chosen: Chosen | null) => void} choose
 * @param {string | null} now which is shown
 */
export function remarks(explain, choose, now) {
  const cleared = explain.cleared.map((/** @type {any} */ { id, name, evidence, cost_ns }) =>
    element(
      "li",
      {},
      pressed(
        "cleared",
        { id, evidence: [evidence] },
        [element("b", {}, name), ` ${whyInnocent(evidence, cost_ns)}`],
        choose,
        id === now,
      ),
    ),
  );
  const unseen = explain.unseen.map((/** @type {any} */ { what, why, remedy }) =>
    element(
      "li",
      {},
      element("b", {}, what.replaceAll("_", " ")),
      `: ${why}`,
      remedy ? `. Would show it: ${remedy}` : null,
    ),
  );
  const doubts = explain.doubts.map((/** @type {string} */ doubt) => element("li", {}, doubt));
  const usual = (explain.usual_doubts ?? []).map((/** @type {string} */ doubt) =>
    element("li", {}, doubt),
  );
  const contradictions = (explain.contradictions ?? []).map((/** @type {any} */ one) =>
    element("li", {}, one.text, one.believed ? `. Believed: ${one.believed}` : null),
  );
  const repairs = explain.repairs.map((/** @type {any} */ { text }) => element("li", {}, text));
  return element(
    "section.remarks",
    { id: "remarks" },
    folded("not-to-blame", "Not to blame", cleared),
    folded("unseen", "Not seen (why: terrace doctor)", unseen),
    folded("doubts", "Doubts", doubts),
    folded("contradictions", "Contradictions", contradictions),
    folded("usual-doubts", "Usual doubts, which change nothing", usual),
    folded("repairs", "Repaired values", repairs),
  );
}

/** @param {string} id @param {string} title @param {HTMLElement[]} items */
function folded(id, title, items) {
  return items.length
    ? element(
        "details",
        { id },
        element("summary", {}, `${title} (${items.length})`),
        element("ul", {}, ...items),
      )
    : null;
}

/** @param {string} what @param {string | null} text @param {string} tag */
function advice(what, text, tag = "span") {
  return text ? element("p", {}, element("b", {}, what), element(tag, {}, text)) : null;
}

/**
 * A button that shows something in the charts, and pressed again no longer.
 * @param {string} kind @param {Chosen} chosen @param {(Node | string)[]} text
 * @param {(chosen: Chosen | null) => void} choose
 */
export function pressed(kind, chosen, text, choose, isPressed = false) {
  const click = () => {
    const isOn = button.getAttribute("aria-pressed") === "true";
    for (const other of document.querySelectorAll(".claim[aria-pressed]"))
      other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(!isOn));
    choose(isOn ? null : chosen);
  };
  const button = element(
    "button.claim",
    { [`data-${kind}`]: chosen.id, "aria-pressed": isPressed, click },
    ...text,
  );
  return button;
}
