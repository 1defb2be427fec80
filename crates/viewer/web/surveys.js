// The page of two surveys: what differs, and the levels of both machines as steps over each other.
import { choosing, element, jsonOf } from "./dom.js";
import { figure } from "./format.js";
import { curveFit } from "./curves.js";
import { terraceDrawing, terraceName } from "./terrace.js";
import { between, differences, signed, verdict } from "./differences.js";

/** @typedef {import("./terrace.js").Tier} Tier */
/**
 * @typedef {{of: string, name: string, unit: string, first: number | null, second: number | null,
 * difference: number | null, low: number | null, high: number | null, verdict: string, better:
 * string | null}} Item
 */

// A figure that is 16 times as large has the longest bar there is.
const MOST_TIMES = 16;

/**
 * How many times as large, as it is drawn: equal steps for doubling and halving.
 * @param {number | null} difference @param {number} first
 */
function timesDrawn(difference, first) {
  return difference === null
    ? null
    : Math.log2(Math.min(Math.max(1 + difference / first, 1 / MOST_TIMES), MOST_TIMES));
}

/** @param {Item} item */
function itemText({ first, second, difference, low, high, unit }) {
  const share = first && difference !== null ? `${signed(difference / first, "ratio")}; ` : "";
  const interval = low === null ? "" : `; ${between(low, high, unit)}`;
  return `${share}${figure(first, unit)} \u2192 ${figure(second, unit)}${interval}`;
}

function surveysPage() {
  const compared = jsonOf("compare"),
    [first, second] = [jsonOf("survey"), jsonOf("survey-2")];
  const items = /** @type {Item[]} */ (compared.items),
    both = items.filter(({ first, difference }) => first && difference !== null);
  const tiers = /** @type {Tier[]} */ ([
    ...first.tiers,
    ...second.tiers
      .filter((/** @type {Tier} */ tier) => tier.latency_ns)
      .map((/** @type {Tier} */ tier) => ({ ...tier, second: true })),
  ]);
  const [box, about] = [
    element("div"),
    element(
      "p",
      { "aria-live": "polite" },
      `${choosing()} a step for its figures; press a figure to see its step.`,
    ),
  ];
  const lines = (/** @type {Tier} */ tier) =>
    `${terraceName(tier)}, ${tier.second ? "second" : "first"}: ${items
      .filter(({ of }) => of === tier.name)
      .map(item => `${item.name} ${itemText(item)} (${item.verdict})`)
      .join("; ")}`;
  curveFit(box, width =>
    terraceDrawing(
      tiers,
      width,
      () => [],
      lines,
      tier => about.replaceChildren(lines(tier)),
    ),
  );
  const bars = both
    .filter(({ verdict }) => verdict !== "unproven")
    .concat(both.filter(({ verdict }) => verdict === "unproven"))
    .map(item => ({
      name: `${item.of.replace(/\s+/g, " ")} ${item.name}`,
      verdict: item.verdict,
      better: item.better,
      text: itemText(item),
      value: timesDrawn(item.difference, item.first ?? 1) ?? 0,
      low: timesDrawn(item.low, item.first ?? 1),
      high: timesDrawn(item.high, item.first ?? 1),
      button: (/** @type {Node[]} */ ...shown) =>
        element(
          "button.claim",
          {
            "data-part": `${item.of} ${item.name}`,
            click: () =>
              document
                .getElementById(`level-${tiers.findIndex(({ name }) => name === item.of)}`)
                ?.focus(),
          },
          ...shown,
        ),
    }));
  const sides = [compared.first, compared.second].map(({ name, runs }, at) =>
    element(
      "p.quiet",
      {},
      element("b", {}, at ? "second, dashed: " : "first, filled: "),
      `${name}, ${runs} survey${runs === 1 ? "" : "s"}`,
    ),
  );
  return element(
    "main",
    {},
    element("h1", {}, "terrace compare"),
    ...sides,
    verdict(
      compared,
      element(
        "figure",
        { id: "terrace" },
        element(
          "figcaption",
          {},
          "Each step is a level: further right holds more, further down answers later, " +
            "thicker reads more bytes a second.",
        ),
        box,
        about,
      ),
      element("h2", {}, "Every figure of both"),
      differences(bars),
    ),
  );
}

document.body.prepend(surveysPage());
