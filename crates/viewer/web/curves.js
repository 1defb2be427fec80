// Axes, and charts of a few lines: each redrawn to the width it has, with its figures in a table
// below.
import { drawn, element } from "./dom.js";
import { figure } from "./format.js";

/**
 * @typedef {{x: number, y: number, low?: number | null, high?: number | null, doubt?: string |
 * null}} CurvePoint
 */
/** @typedef {{name: string, points: CurvePoint[], strong?: boolean}} CurveLine */
/**
 * @typedef {{from: number, to: number, name: string, claimed: boolean}} CurveMark `from` is `to`
 * where it is one size
 */
/** @typedef {{name: string, unit: string, log: boolean}} CurveSide */
/**
 * @typedef {{id: string, title: string, note: string, x: CurveSide, y: CurveSide, lines:
 * CurveLine[], marks?: CurveMark[], stairs?: boolean, after?: Node[]}} CurveChart
 */

/**
 * @param {number} value @param {string} unit
 * @returns {string} a figure without the zeros that say nothing
 */
export const curveFigure = (value, unit) =>
  figure(value, unit).replace(/\.0+(?= |$)|(\.\d*?[1-9])0+(?= |$)/, "$1");

/**
 * A scale: the position of a value between two places, and the round values to mark.
 * @param {number} low @param {number} high @param {number} from @param {number} to
 * @param {string} unit @param {boolean} log @param {number} room pixels that a mark needs
 */
export function curveAxis(low, high, from, to, unit, log, room) {
  const of = log ? Math.log : (/** @type {number} */ value) => value;
  const at = (/** @type {number} */ value) =>
    from + ((of(value) - of(low)) / (of(high) - of(low) || 1)) * (to - from);
  /** @type {number[]} */
  let ticks = [];
  if (log) {
    const [start, base] = unit === "bytes" ? [4096, high / low < 300 ? 4 : 16] : [1e-3, 10];
    const parts = base === 10 && high / low < 300 ? [1, 2, 5] : [1];
    for (let decade = start; decade <= high; decade *= base)
      ticks.push(...parts.map(part => part * decade));
  } else {
    const rough = (high - low) / Math.max(2, Math.abs(to - from) / (1.5 * room));
    const power = 10 ** Math.floor(Math.log10(rough));
    const decimal = power * ([1, 2, 5].find(part => part * power >= rough) ?? 10);
    const step = unit === "bytes" ? 2 ** Math.ceil(Math.log2(rough)) : decimal;
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  }
  ticks = ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  while (ticks.length > 2 && Math.abs(at(ticks[1]) - at(ticks[0])) < room)
    ticks = ticks.filter((_, index) => index % 2 === 0);
  return { at, ticks };
}

/**
 * Shows what `draw` makes of the width of `box`, whenever that changes.
 * @param {HTMLElement} box @param {(width: number) => Element} draw
 */
export function curveFit(box, draw) {
  let known = 0;
  const fit = () => {
    const width = box.clientWidth && Math.max(320, Math.round(box.clientWidth));
    if (width !== known && width > 0) box.replaceChildren(draw((known = width)));
  };
  queueMicrotask(fit);
  new ResizeObserver(fit).observe(box);
}

/**
 * A chart with its caption, its table, and room for the findings that it shows.
 * @param {CurveChart} chart
 */
export function curveFigureOf(chart) {
  const box = element("div");
  curveFit(box, width => curveDrawing(chart, width));
  const rows = chart.lines.flatMap(line =>
    line.points.map(point => {
      const interval =
        point.low && point.high
          ? `${figure(point.low, chart.y.unit)} to ${figure(point.high, chart.y.unit)}`
          : "\u2013";
      const figures = [
        curveFigure(point.x, chart.x.unit),
        figure(point.y, chart.y.unit),
        interval,
      ].map(text => element("td.number", {}, text));
      return element(
        "tr",
        {},
        element("td", {}, line.name),
        ...figures,
        element("td", {}, point.doubt ?? ""),
      );
    }),
  );
  return element(
    "figure.survey-chart",
    { id: chart.id, tabindex: -1 },
    element("figcaption", {}, element("h3", {}, chart.title), element("p.quiet", {}, chart.note)),
    box,
    ...(chart.after ?? []),
    element(
      "details",
      {},
      element("summary", {}, `The ${rows.length} figures: ${chart.title}`),
      curveTable(["", chart.x.name, chart.y.name, "95 % interval", ""], rows),
    ),
  );
}

/**
 * A table that scrolls by itself where it is too wide.
 * @param {string[]} heads none for a table without
 * @param {Node[]} rows
 */
export function curveTable(heads, rows) {
  const head = heads.length
    ? element(
        "thead",
        {},
        element("tr", {}, ...heads.map(text => element("th", { scope: "col" }, text))),
      )
    : null;
  return element(
    "div.survey-scroll",
    { tabindex: heads.length ? 0 : null, role: "group" },
    element("table", {}, head, element("tbody", {}, ...rows)),
  );
}

/** @param {CurveChart} chart @param {number} width */
function curveDrawing(chart, width) {
  const height = 280;
  const frame = { left: 62, right: width - (width < 560 ? 78 : 110), top: 24, bottom: height - 40 };
  const points = chart.lines.flatMap(line => line.points);
  const ys = points.flatMap(point => [point.y, point.low ?? point.y, point.high ?? point.y]);
  const xs = points.map(point => point.x);
  const [least, most] = [Math.min(...ys), Math.max(...ys)];
  const x = curveAxis(
    Math.min(...xs),
    Math.max(...xs),
    frame.left,
    frame.right,
    chart.x.unit,
    chart.x.log,
    54,
  );
  const y = curveAxis(
    chart.y.log ? least / 1.15 : 0,
    most * (chart.y.log ? 1.15 : 1.08),
    frame.bottom,
    frame.top,
    chart.y.unit,
    chart.y.log,
    24,
  );
  const text = (/** @type {Record<string, any>} */ where, /** @type {string} */ words) =>
    drawn("text", where, words);
  return drawn(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${chart.title}. ${chart.note} The figures are in the table below.`,
    },
    ...y.ticks.flatMap(tick => [
      drawn("path", { class: "curve-grid", d: `M${frame.left} ${y.at(tick)}H${frame.right}` }),
      text(
        { x: frame.left - 6, y: y.at(tick) + 4, "text-anchor": "end" },
        curveFigure(tick, chart.y.unit),
      ),
    ]),
    ...x.ticks.flatMap(tick => [
      drawn("path", { class: "curve-grid", d: `M${x.at(tick)} ${frame.bottom}v5` }),
      text(
        { x: x.at(tick), y: frame.bottom + 18, "text-anchor": "middle" },
        curveFigure(tick, chart.x.unit),
      ),
    ]),
    text({ x: frame.left, y: 12 }, chart.y.name),
    text({ x: frame.right, y: height - 6, "text-anchor": "end" }, `${chart.x.name} \u2192`),
    ...(chart.marks ?? []).map(mark => curveMark(mark, x.at, frame)),
    ...chart.lines.map((line, index) => curveLine(chart, line, index, x.at, y.at)),
    ...curveNames(chart, y.at, frame, height),
  );
}

/**
 * @param {CurveMark} mark @param {(x: number) => number} at
 * @param {{top: number, bottom: number, left: number, right: number}} frame
 */
function curveMark(mark, at, { top, bottom, left, right }) {
  const [from, to] = [mark.from, mark.to].map(size => Math.min(right, Math.max(left, at(size))));
  const shape = {
    class: mark.claimed ? "curve-claimed" : "curve-found",
    d: `M${from} ${top}V${bottom}${mark.claimed ? "" : `H${to}V${top}Z`}`,
  };
  return drawn(
    "g",
    {},
    drawn("title", {}, mark.name),
    drawn("path", shape),
    (mark.claimed && drawn("text", { x: from, y: top - 2, "text-anchor": "middle" }, mark.name)) ||
      null,
  );
}

/**
 * @param {CurveChart} chart @param {CurveLine} line @param {number} index
 * @param {(x: number) => number} x @param {(y: number) => number} y
 */
function curveLine(chart, line, index, x, y) {
  const path = line.points
    .map((point, at) =>
      at === 0
        ? `M${x(point.x)} ${y(point.y)}`
        : `${chart.stairs ? `H${x(point.x)}V${y(point.y)}` : `L${x(point.x)} ${y(point.y)}`}`,
    )
    .join("");
  const dots = line.points.map(point =>
    drawn(
      "g",
      {},
      drawn(
        "title",
        {},
        `${line.name}, ${curveFigure(point.x, chart.x.unit)}: ` +
          `${figure(point.y, chart.y.unit)}${point.doubt ? `, ${point.doubt}` : ""}`,
      ),
      (point.low &&
        point.high &&
        drawn("path", { d: `M${x(point.x)} ${y(point.low)}V${y(point.high)}` })) ||
        null,
      drawn("circle", {
        class: point.doubt ? "curve-doubt" : null,
        cx: x(point.x),
        cy: y(point.y),
        r: line.strong ? 4 : 3,
      }),
    ),
  );
  return drawn(
    "g",
    {
      class: `curve-line ${line.strong ? "curve-strong" : ""}`,
      style: `--own: var(--own-${index % 8})`,
    },
    drawn("path", { d: path, "stroke-dasharray": index > 7 ? "5 3" : null }),
    ...(chart.stairs ? [] : dots),
  );
}

/**
 * The names of the lines beside their ends, moved apart where they would collide.
 * @param {CurveChart} chart @param {(y: number) => number} y
 * @param {{right: number, top: number}} frame @param {number} height
 */
function curveNames(chart, y, frame, height) {
  const ends = chart.lines.map((line, index) => ({
    line,
    index,
    at: chart.stairs ? frame.top + 14 * index : y(line.points[line.points.length - 1].y),
  }));
  ends.sort((a, b) => a.at - b.at);
  ends.forEach((end, index) => {
    end.at = Math.max(end.at, index ? ends[index - 1].at + 13 : frame.top + 4);
  });
  ends.reverse().forEach((end, index) => {
    end.at = Math.min(end.at, index ? ends[index - 1].at - 13 : height - 46);
  });
  return ends.map(end =>
    drawn(
      "text",
      {
        class: "curve-name",
        x: frame.right + 9,
        y: end.at + 4,
        style: `--own: var(--own-${end.index % 8})`,
      },
      end.line.name,
    ),
  );
}
