// The terrace: every level a step. Across: what it holds; down: how long one access takes; thick:
// bytes a second.
import { drawn } from "./dom.js";
import { curveAxis, curveFigure } from "./curves.js";

/**
 * @typedef {{median: number, low: number | null, high: number | null, p99?: number | null, trials:
 * number, discarded: number}} Measured
 */
/**
 * @typedef {{name: string, kind: string, capacity_bytes: number | null, latency_ns: Measured |
 * null, read_bytes_per_s: Measured | null, write_bytes_per_s: Measured | null, copy_bytes_per_s:
 * Measured | null, method: string, grade: string, reason: string | null, noisy: boolean, second?:
 * boolean}} Tier `second`: of the other machine, drawn as an outline
 */
/** @typedef {{x: number, y: number, w: number, h: number}} Box */
/**
 * @typedef {{index: number, tier: Tier, box: Box, whole: boolean, timed: boolean}} Tread `whole`:
 * it has a size of its own
 */

/** What each kind of level is called in the legend. */
export const TERRACE_KINDS = /** @type {Record<string, string>} */ ({
  cpu_cache: "processor cache",
  ram: "main memory",
  new_memory: "memory on first use",
  ram_disk: "RAM disk",
  page_cache: "page cache",
  compressed_ram: "compressed memory",
  swap: "swap",
  device: "disk",
});

/** @param {Tier} tier @returns {string} its name on one line */
export const terraceName = tier => tier.name.replace(/\s+/g, " ");

/** @param {Tier} tier @returns {number | null} the rate that its tread shows */
const terraceRate = tier =>
  (tier.read_bytes_per_s ?? tier.copy_bytes_per_s ?? tier.write_bytes_per_s)?.median ?? null;

/**
 * Why a level is not in the drawing; null where it is.
 * @param {Tier} tier @returns {string | null}
 */
export const terraceMissing = tier =>
  tier.latency_ns || tier.capacity_bytes
    ? null
    : (tier.reason ?? "neither its size nor its latency is known");

/** Thickness of a tread: 5 pixels more for ten times the bytes a second. @param {Tier} tier */
const terraceThickness = tier =>
  Math.min(30, Math.max(4, 4 + 5 * Math.log10((terraceRate(tier) ?? 1) / 1e8)));

/**
 * The drawing, `width` pixels wide.
 * @param {Tier[]} tiers @param {number} width
 * @param {(tier: Tier) => number[]} findings numbers of the findings about a level
 * @param {(tier: Tier) => string} spoken what a screen reader says
 * @param {(tier: Tier) => void} show
 */
export function terraceDrawing(tiers, width, findings, spoken, show) {
  // Levels of a size whose latency was not measured are listed below the drawing, one below the
  // other.
  const untimed = tiers.filter(tier => !tier.latency_ns && tier.capacity_bytes);
  const lane = untimed.length * 34;
  const height = Math.round(Math.min(540, Math.max(400, width * 0.5))) + lane;
  const frame = {
    left: 58,
    right: width - (width < 640 ? 12 : 175),
    top: 26,
    bottom: height - 44 - lane,
    height,
  };
  const sizes = tiers.flatMap(tier => tier.capacity_bytes || []);
  const times = tiers.flatMap(tier =>
    tier.latency_ns ? [tier.latency_ns.median, tier.latency_ns.p99 ?? tier.latency_ns.median] : [],
  );
  const x = curveAxis(
    Math.min(...sizes, 2 ** 40) / 8,
    Math.max(...sizes, 2 ** 16) * 1.5,
    frame.left,
    frame.right,
    "bytes",
    true,
    56,
  );
  const y = curveAxis(
    Math.min(...times, 1e6) / 2,
    Math.max(...times, 10) * 2.5,
    frame.top,
    frame.bottom,
    "ns",
    true,
    26,
  );
  const treads = terraceTreads(tiers, x.at, y.at, frame);
  const labels = terraceLabels(treads, width, frame, findings);
  const columns = treads.filter(
    tread =>
      tread.timed &&
      tread.whole &&
      !tread.tier.second &&
      treads.every(
        other =>
          other === tread ||
          !other.timed ||
          !other.whole ||
          other.box.y >= tread.box.y ||
          other.box.x + other.box.w < tread.box.x + tread.box.w,
      ),
  );
  const text = (/** @type {Record<string, any>} */ where, /** @type {string} */ words) =>
    drawn("text", where, words);
  return drawn(
    "svg",
    {
      class: "terrace",
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label":
        "The levels of this machine as steps: those further right hold more, " +
        "those further down answer later, thicker ones move more bytes a second",
    },
    drawn("rect", { class: "terrace-ground", width, height }),
    drawn(
      "defs",
      {},
      drawn(
        "pattern",
        {
          id: "terrace-hatch",
          width: 7,
          height: 7,
          patternUnits: "userSpaceOnUse",
          patternTransform: "rotate(45)",
        },
        drawn("path", { d: "M0 0V7", class: "terrace-stripe" }),
      ),
    ),
    ...columns.map(({ tier, box }) =>
      drawn("path", {
        class: `terrace-body kind-${tier.kind}`,
        d: `M${box.x} ${box.y}h${box.w}V${frame.bottom}H${box.x}Z`,
      }),
    ),
    ...y.ticks.flatMap(tick => [
      drawn("path", { class: "terrace-grid", d: `M${frame.left} ${y.at(tick)}H${frame.right}` }),
      text({ x: frame.left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, curveFigure(tick, "ns")),
    ]),
    ...x.ticks.flatMap(tick => [
      drawn("path", { class: "terrace-grid", d: `M${x.at(tick)} ${frame.top}V${frame.bottom}` }),
      text(
        { x: x.at(tick), y: frame.bottom + 16, "text-anchor": "middle" },
        curveFigure(tick, "bytes"),
      ),
    ]),
    text({ x: 2, y: 13, class: "terrace-title" }, "one access takes \u2193"),
    text(
      { x: frame.right, y: frame.bottom + 34, "text-anchor": "end", class: "terrace-title" },
      "holds \u2192",
    ),
    ...untimed.map((_, row) =>
      text({ x: frame.left - 6, y: height - 34 * row - 6, "text-anchor": "end" }, "not timed"),
    ),
    ...[...treads].sort((a, b) => b.box.w - a.box.w).map(tread => terraceTread(tread, y.at)),
    ...labels,
    ...treads.map(({ tier, box, index }) => {
      const look = () => show(tier);
      return drawn("rect", {
        id: `level-${index}`,
        class: "terrace-tread",
        x: box.x,
        y: box.y - 3,
        width: box.w,
        height: box.h + 6,
        rx: 4,
        tabindex: 0,
        role: "img",
        "aria-label": spoken(tier),
        mouseenter: look,
        focus: look,
        click: look,
      });
    }),
  );
}

/**
 * @param {Tier[]} tiers @param {(x: number) => number} x @param {(y: number) => number} y
 * @param {{left: number, right: number, height: number}} frame
 */
function terraceTreads(tiers, x, y, frame) {
  const known = tiers
    .map((tier, index) => ({ tier, index }))
    .filter(({ tier }) => !terraceMissing(tier));
  return known.map(({ tier, index }) => {
    const [size, time] = [tier.capacity_bytes ?? 0, tier.latency_ns?.median ?? Infinity];
    // A step begins where the largest of the faster and smaller levels ends.
    const below = known.filter(
      ({ tier: other }) =>
        other.second === tier.second &&
        other.latency_ns &&
        other.latency_ns.median < time &&
        (other.capacity_bytes ?? 0) < size,
    );
    const start = Math.max(
      frame.left,
      ...below.map(({ tier: other }) => (other.capacity_bytes ? x(other.capacity_bytes) : 0)),
    );
    const end = size ? x(size) : frame.right;
    const left = Math.max(frame.left, Math.min(start, end - 26));
    const row = known
      .filter(({ tier: other }) => !other.latency_ns)
      .findIndex(({ tier: other }) => other === tier);
    const top = tier.latency_ns ? y(time) : frame.height - 34 * row - 12;
    return {
      tier,
      index,
      whole: size > 0,
      timed: tier.latency_ns !== null,
      box: { x: left, y: top, w: end - left, h: size ? terraceThickness(tier) : 0 },
    };
  });
}

/** @param {Tread} tread @param {(y: number) => number} y */
function terraceTread({ tier, box, whole, timed }, y) {
  const [tail, end] = [tier.latency_ns?.p99, box.x + box.w];
  const step = { x: box.x, y: box.y, width: box.w, height: box.h, rx: 2 };
  return drawn(
    "g",
    { class: `kind-${tier.kind}${tier.second ? " terrace-second" : ""}` },
    whole
      ? drawn("rect", { ...step, class: "terrace-step" })
      : drawn("path", { class: "terrace-line", d: `M${box.x} ${box.y}H${end}` }),
    whole && (tier.noisy || !timed || tier.grade === "unseen")
      ? drawn("rect", { ...step, fill: "url(#terrace-hatch)" })
      : null,
    whole && tail
      ? drawn("path", {
          class: "terrace-tail",
          d: `M${end - 4} ${box.y + box.h}V${y(tail)}m-4 0h8`,
        })
      : null,
  );
}

const terracePen = document.createElement("canvas").getContext("2d");
/**
 * @param {string} text @param {string} font weight and size
 * @returns {number} pixels that it is wide
 */
function terraceWidth(text, font) {
  if (!terracePen) return text.length * 9;
  terracePen.font = `${font} system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  return terracePen.measureText(text).width;
}

/**
 * A label for each tread, as near to it as there is room, best beside its end, with a line to it
 * where it is not near. One that finds no room is left out.
 * @param {Tread[]} treads @param {number} width
 * @param {{left: number, top: number, bottom: number, height: number}} frame
 * @param {(tier: Tier) => number[]} findings
 */
function terraceLabels(treads, width, frame, findings) {
  /** @type {Box[]} */
  const taken = treads.map(tread => ({ ...tread.box, y: tread.box.y - 2, h: tread.box.h + 4 }));
  const free = (/** @type {Box} */ a) =>
    a.x >= frame.left &&
    a.x + a.w <= width &&
    a.y >= frame.top - 10 &&
    a.y + a.h <= frame.height &&
    taken.every(b => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y);
  return treads
    .filter(({ tier }) => !tier.second)
    .sort((a, b) => a.box.y - b.box.y)
    .map(({ tier, box, whole, timed }) => {
      const rate = terraceRate(tier);
      const figures = [
        tier.latency_ns ? curveFigure(tier.latency_ns.median, "ns") : null,
        whole ? curveFigure(tier.capacity_bytes ?? 0, "bytes") : null,
        rate ? curveFigure(rate, "bytes_per_s") : null,
      ].filter(words => words !== null);
      const narrow = width < 640 || !timed;
      const words = narrow ? `${figures[0]}` : figures.join(" \u00b7 ");
      const about =
        findings(tier)
          .map(number => ` [${number}]`)
          .join("") + (narrow ? " " : "");
      const name = terraceName(tier).replace(
        narrow ? /^(.{5}).{5,}(.{9})$/ : /^(.{9}).{9,}(.{12})$/,
        "$1~$2",
      );
      const widths = [
        terraceWidth(name + about, narrow ? "700 12.7px" : "700 13.8px"),
        terraceWidth(words, narrow ? "11px" : "12px"),
      ];
      const [w, h] = narrow ? [widths[0] + widths[1] + 2, 15] : [Math.max(...widths) + 2, 31];
      const end = whole ? box.x + box.w : frame.left;
      // How far a place is from the tread; a label beside its end is easiest to follow, then one
      // above it.
      const far = (/** @type {Box} */ a) =>
        Math.max(0, a.x - end - 8, box.x - a.x - a.w) +
        Math.max(0, a.y - box.y - box.h, box.y - a.y - h) +
        (a.x >= end ? 0 : a.y < box.y ? 5 : 15);
      const places = [...Array(120).keys()]
        .flatMap(step =>
          [end + 8, end - w, box.x + 2, end - w - 40, box.x - w - 8].flatMap(x =>
            [box.y - (timed ? 0 : 5) - (narrow ? 0 : 7) + 3 * step, box.y - h - 3 - 3 * step].map(
              y => ({ x, y, w, h }),
            ),
          ),
        )
        .sort((a, b) => far(a) - far(b));
      const place = places.find(
        a => free(a) && (timed ? a.y + a.h <= frame.bottom : a.y > frame.bottom + 36),
      );
      if (!place) return null;
      taken.push(place);
      const [x, y] = [
        place.x > end ? end : Math.max(box.x + 3, Math.min(end - 3, place.x + 20)),
        box.y + box.h / 2,
      ];
      return drawn(
        "g",
        { class: `terrace-label kind-${tier.kind}`, "aria-hidden": "true" },
        far(place) > 12
          ? drawn("path", {
              class: "terrace-leader",
              d:
                `M${x} ${y}L${Math.max(place.x, Math.min(x, place.x + w))} ` +
                `${place.y > y ? place.y : place.y + h}`,
            })
          : null,
        drawn(
          "text",
          { class: narrow ? "terrace-narrow" : null, x: place.x, y: place.y + 12 },
          drawn("tspan", { class: "terrace-name" }, name),
          drawn("tspan", { class: "terrace-finding" }, about),
          drawn("tspan", narrow ? {} : { x: place.x, dy: 15 }, words),
        ),
      );
    });
}

/**
 * The drawing as a file of its own, for both themes, without what refers to the page.
 * @param {Element} drawing
 */
export function terraceFile(drawing) {
  const copy = /** @type {Element} */ (drawing.cloneNode(true));
  copy.querySelectorAll(".terrace-tread, .terrace-finding").forEach(tread => tread.remove());
  copy.prepend(drawn("style", {}, document.querySelector("style")?.textContent ?? ""));
  return new XMLSerializer().serializeToString(copy);
}
