// Charts over one common time: what part of it is shown, the position of the cursor, one uPlot for
// each chart.
// A chart is drawn when it is on screen (or printed), with one value for each pixel.
import { element } from "./dom.js";
import { figure } from "./format.js";
import { parted, reduced } from "./decode.js";

/** @typedef {import("./decode.js").Timeline} Timeline */
/**
 * One line, or one layer of a stack: `names` are the series that it is made of, `refresh_ns` is set
 * if it is read more rarely than it is sampled, `grows` that its values are growth per second,
 * `second` that it is of the second recording, `sparse` that its values may be isolated: each has a
 * dot. `process` is whose it is, `amount` what its legend says while nothing is pointed at, `dash`
 * the number of its dashes, 0 for none.
 * @typedef {{label: string, names: string[], meaning: string, timeline: Timeline, values: () =>
 * Float64Array, colour: string, refresh_ns: number | null, grows: boolean, second: boolean,
 * sparse?: boolean, process?: number, amount?: string, dash?: number}} Trace
 */
/**
 * `pick` is called for a trace that is pressed, instead of hiding it; `says` explains the picture,
 * `key` is the colour of the recording that it is of.
 * @typedef {{id: string, title: string, unit: string, traces: Trace[], stacked?: boolean, pick?:
 * (trace: Trace) => void, says?: string, key?: string}} Picture
 */

const DASHES = [
  [6, 4],
  [2, 3],
  [10, 3, 2, 3],
  [12, 5],
];
const TABLE_BUCKETS = 20;
const BINARY = Array.from({ length: 50 }, (_, power) => 2 ** power);
const SECONDS = [
  ...[-6, -5, -4, -3, -2, -1].flatMap(power => [1, 2, 5].map(step => step * 10 ** power)),
  1,
  2,
  5,
  10,
  15,
  30,
].concat([60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400]);

/**
 * A value of a chart with its unit; sums of time a second get their own words.
 * @param {number | null | undefined} value @param {string} unit
 */
export function valueText(value, unit) {
  if (value === null || value === undefined) return figure(value, unit);
  if (unit === "share") return figure(value / 1e9, "ratio");
  return unit.startsWith("mean ")
    ? `${figure(value / 1e9, "count")} ${unit.slice(5)}`
    : figure(value, unit);
}

/**
 * An instant of the recording: `3.25 s`, `12:05`.
 * @param {number} seconds @param {number} [step] distance to the next one
 */
export function instant(seconds, step = 0.01) {
  if (seconds < 120 || step < 1) return `${Number(seconds.toFixed(step < 0.01 ? 6 : 2))} s`;
  const [hours, minutes, rest] = [
    Math.floor(seconds / 3600),
    Math.floor(seconds / 60) % 60,
    Math.floor(seconds % 60),
  ];
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/**
 * The time of day on the recorded machine at an instant of one recording: `14:32:05`; of two over
 * each other the time since their start.
 * @param {Timeline[]} timelines @param {number} seconds @param {number} step to the next one
 */
export function clockTime(timelines, seconds, step) {
  const { started_unix_ns: started, utc_offset_s: offset = 0 } = timelines[0].view;
  if (timelines.length > 1 || !started) return instant(seconds, step);
  const local = new Date(started / 1e6 + (offset + seconds) * 1000).toISOString();
  return local.slice(11, step < 1 ? 21 : step < 60 ? 19 : 16);
}

/** The part of time that all charts show, the cursor in it, and which series are lifted out. */
export class Viewport {
  /** @param {Timeline[]} timelines */
  constructor(timelines) {
    this.timelines = timelines;
    /** @type {Set<Chart>} */
    this.charts = new Set();
    /** @type {Set<string>} */
    this.lifted = new Set();
    /** @type {{from: number, to: number} | null} the span of what was chosen */
    this.chosen = null;
    this.at = /** @type {number | null} */ (null);
    this.moved = () => {};
    /** What else depends on the time that is shown. @type {(() => void)[]} */
    this.changed = [];
    this.pointed = (/** @type {number | null} */ _at) => {};
    this.from = this.start;
    this.to = this.end;
    this.whole = true;
  }

  get end() {
    return Math.max(...this.timelines.map(timeline => timeline.end), 1e-9);
  }

  get start() {
    return Math.min(...this.timelines.map(timeline => timeline.seconds[0] ?? 0));
  }

  /** @param {number} from @param {number} to both in seconds */
  show(from, to) {
    const room = this.end - this.start,
      length = Math.min(Math.max(to - from, room / 1e6), room);
    this.from = Math.min(Math.max(from, this.start), this.end - length);
    this.to = this.from + length;
    this.whole = length >= room * (1 - 1e-9);
    this.refresh();
  }

  reset() {
    this.show(this.start, this.end);
  }

  /**
   * More was recorded: the end stays in sight where it was.
   * @param {number} previous the end before
   */
  grown(previous) {
    if (this.whole) this.reset();
    else if (this.to >= previous) this.show(this.from + this.end - previous, this.end);
    else this.show(this.from, this.to);
  }

  refresh() {
    this.moved();
    this.changed.forEach(changed => changed());
    for (const chart of this.charts) chart.redraw();
  }

  /** Puts the cursor of every chart there. @param {number | null} at in seconds */
  point(at) {
    this.at = at;
    this.pointed(at);
    for (const chart of this.charts) chart.point(at);
  }
}

/** @param {string} name */
function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const seen = new IntersectionObserver(
  entries => {
    for (const { target, isIntersecting } of entries) charted.get(target)?.appear(isIntersecting);
  },
  { rootMargin: "200px" },
);
const sized = new ResizeObserver(entries => {
  for (const { target } of entries) charted.get(target)?.resize();
});
/** @type {WeakMap<Element, Chart>} */
const charted = new WeakMap();

/** One picture on the page. */
export class Chart {
  /** @param {Picture} picture @param {Viewport} viewport */
  constructor(picture, viewport) {
    this.picture = picture;
    this.viewport = viewport;
    [this.onScreen, this.stale, this.isDrawing] = [false, true, false];
    /** @type {uPlot | null} */
    this.plot = null;
    this.host = element("div.plot", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "chart",
      keydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    /** Lines from top to bottom; of a stack the one above hides what is below it. */
    this.lines = picture.traces.map(trace => ({
      trace,
      hidden: false,
      value: element("output", { "aria-live": "off" }),
      button: /** @type {HTMLElement | null} */ (null),
    }));
    if (picture.stacked)
      this.lines.reverse().sort((a, b) => Number(a.trace.second) - Number(b.trace.second));
    this.table = element(
      "details",
      { toggle: () => this.fillTable() },
      element("summary", {}, "Table"),
    );
    const csv = element(
      "button",
      {
        "data-csv": picture.id,
        title: "The samples on screen, as CSV",
        click: () => this.download(),
      },
      "CSV",
    );
    const slow = Math.max(0, ...picture.traces.map(trace => trace.refresh_ns ?? 0));
    const unit =
      picture.unit === "share"
        ? "of the time"
        : picture.unit === "ns"
          ? ""
          : picture.unit.replaceAll("_", " ").replace("mean ", "");
    this.element = element(
      "figure.chart",
      { "data-chart": picture.id },
      element(
        "figcaption",
        {},
        picture.key
          ? element("i.key", { "aria-hidden": true, style: `--key: var(${picture.key})` })
          : null,
        element("h3", {}, picture.title),
        element("small.quiet", {}, slow ? `${unit}, read every ${figure(slow, "ns")}` : unit),
        csv,
      ),
      picture.says ? element("small.quiet", {}, picture.says) : null,
      this.host,
      element("ul.legend", {}, ...this.lines.map(line => this.entry(line))),
      this.table,
    );
    charted.set(this.host, this);
    seen.observe(this.host);
    sized.observe(this.host);
    viewport.charts.add(this);
  }

  remove() {
    this.viewport.charts.delete(this);
    seen.unobserve(this.host);
    sized.unobserve(this.host);
    this.plot?.destroy();
    this.element.remove();
  }

  /** @param {Chart["lines"][number]} line */
  entry(line) {
    const { trace, value } = line;
    const click = () => {
      if (this.picture.pick) return this.picture.pick(trace);
      line.hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!line.hidden));
      this.redraw();
    };
    const key = element(trace.second || trace.dash ? "i.dashed" : "i", {
      "aria-hidden": true,
      style: `--key: var(${trace.colour})`,
    });
    const button = element(
      "button",
      {
        "data-series": trace.names.join(" "),
        "aria-pressed": true,
        title: trace.meaning || null,
        click,
      },
      key,
      trace.label,
      " ",
      value,
    );
    line.button = button;
    return element("li", {}, button);
  }

  /** Shows the line of one process, or all. @param {number | null} process */
  showAlone(process) {
    for (const line of this.lines) {
      line.hidden = process !== null && line.trace.process !== process;
      line.button?.setAttribute("aria-pressed", String(!line.hidden));
    }
    this.redraw();
  }

  /** Shows the lines of these recordings only. @param {Set<Timeline>} timelines */
  showOf(timelines) {
    for (const line of this.lines) {
      line.hidden = !timelines.has(line.trace.timeline);
      line.button?.setAttribute("aria-pressed", String(!line.hidden));
    }
    this.element.toggleAttribute(
      "hidden",
      this.lines.every(({ hidden }) => hidden),
    );
    this.redraw();
  }

  /** @param {boolean} isOnScreen */
  appear(isOnScreen) {
    this.onScreen = isOnScreen;
    if (isOnScreen && this.stale) this.draw();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!this.plot || !width || width === this.plot.width) return;
    this.plot.setSize({ width, height });
    this.redraw();
  }

  redraw() {
    this.stale = true;
    if (this.onScreen) this.draw();
    this.fillTable();
  }

  /**
   * What is shown of the window: times, then the values of each line; of a stack the sums up to it.
   * @param {number} buckets
   */
  rows(buckets) {
    const { from, to } = this.viewport,
      timelines = new Set(this.lines.map(({ trace }) => trace.timeline));
    const parts = [...timelines].map(timeline => {
      const lines = this.lines.filter(({ trace }) => trace.timeline === timeline);
      let columns = lines.map(({ trace }) => trace.values());
      if (this.picture.stacked)
        columns = columns.map((_, at) =>
          sum(
            columns.filter((_, below) => below >= at && !lines[below].hidden),
            timeline.seconds.length,
          ),
        );
      const pauses = timeline.spans.filter(({ kind }) => kind === "gap");
      const shown = reduced(
        timeline.seconds,
        columns,
        from,
        to,
        buckets,
        this.picture.stacked ? columns[1] : undefined,
      );
      return parted(
        shown,
        pauses.map(({ to }) => to),
      );
    });
    return /** @type {uPlot.AlignedData} */ (parts.length > 1 ? uPlot.join(parts) : parts[0]);
  }

  draw() {
    const { from, to } = this.viewport;
    this.stale = false;
    const rows = this.rows(Math.max(50, this.host.clientWidth));
    this.plot ??= new uPlot(this.options(), rows, this.host);
    const lifted = this.lines.map(({ trace }) =>
      trace.names.some(name => this.viewport.lifted.has(name)),
    );
    this.lines.forEach((line, at) => {
      const series = /** @type {uPlot.Series} */ (this.plot?.series[at + 1]);
      series.show = !line.hidden;
      series.alpha = lifted.includes(true) && !lifted[at] && !this.picture.stacked ? 0.35 : 1;
      series.width = lifted[at] ? 3 : 1.4;
    });
    this.element.toggleAttribute("data-lifted", lifted.includes(true));
    // In a batch it is drawn at once, so that the cursor finds its place; where it stood on the
    // screen it is not to point.
    this.isDrawing = true;
    this.plot.batch((/** @type {uPlot} */ plot) => {
      plot.setData(rows, false);
      plot.setScale("x", { min: from, max: to });
    });
    this.isDrawing = false;
    this.host.setAttribute(
      "aria-label",
      `${this.picture.title}, ${instant(from)} to ${instant(to)}. ${this.summary(rows)}`,
    );
    this.point(this.viewport.at);
  }

  /** @returns {uPlot.Options} */
  options() {
    const { picture, viewport } = this;
    const quiet = () => colourOf("--quiet"),
      grid = { stroke: () => colourOf("--line"), width: 1 },
      ticks = { show: false };
    const axis = { stroke: quiet, grid, ticks, font: "11px system-ui, sans-serif" };
    return {
      width: this.host.clientWidth,
      height: this.host.clientHeight,
      legend: { show: false },
      scales: {
        x: { time: false },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05] },
      },
      axes: [
        {
          ...axis,
          size: 24,
          // As wide as `23:54:38.9`.
          space: 75,
          incrs: SECONDS,
          values: (_, splits) =>
            splits.map((split, _at, [first, second = first + 1]) =>
              clockTime(viewport.timelines, split, second - first),
            ),
        },
        {
          ...axis,
          size: 68,
          space: 26,
          ...(picture.unit === "bytes" ? { incrs: BINARY } : {}),
          values: (_, splits) =>
            splits.map(split => valueText(split, picture.unit).replace(/ (per|[a-z]{4,}).*$/, "")),
        },
      ],
      series: [{}, ...this.lines.map(({ trace }, at) => this.series(trace, at))],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: {
          dblclick: () => () => (viewport.reset(), null),
          mouseleave: (_plot, _target, handler) => event => (
            handler(event),
            viewport.point(null),
            null
          ),
        },
      },
      hooks: {
        setCursor: [
          plot => {
            if (!this.isDrawing && typeof plot.cursor.idx === "number")
              viewport.point(plot.data[0][plot.cursor.idx]);
          },
        ],
        setSelect: [
          plot => {
            const { left, width } = plot.select;
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            if (width > 0)
              viewport.show(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          },
        ],
        drawClear: [plot => this.drawSpans(plot)],
      },
    };
  }

  /** @param {Trace} trace @param {number} at @returns {uPlot.Series} */
  series(trace, at) {
    const stroke = () => colourOf(trace.colour);
    const fill = this.picture.stacked && !trace.second ? stroke : undefined;
    const paths = trace.refresh_ns
      ? { paths: uPlot.paths.stepped?.({ align: trace.grows ? -1 : 1 }) }
      : {};
    return {
      label: trace.label,
      stroke,
      fill,
      width: 1.4,
      points: { show: trace.sparse ?? false, size: 4, fill: stroke },
      dash: trace.dash
        ? DASHES[(trace.dash - 1) % DASHES.length]
        : trace.second
          ? DASHES[at % DASHES.length]
          : undefined,
      ...paths,
    };
  }

  /** Marks and intervals, and the span of what was chosen. @param {uPlot} plot */
  drawSpans({ ctx, bbox, valToPos }) {
    const x = (/** @type {number} */ seconds) =>
      Math.min(Math.max(valToPos(seconds, "x", true), bbox.left), bbox.left + bbox.width);
    const { chosen, timelines } = this.viewport;
    ctx.save();
    if (chosen) {
      ctx.fillStyle = colourOf("--accent-ground");
      ctx.fillRect(
        x(chosen.from),
        bbox.top,
        Math.max(1, x(chosen.to) - x(chosen.from)),
        bbox.height,
      );
    }
    // Of many recordings each has marks in its colour, in the charts that it is drawn in.
    const isDrawn = (/** @type {Timeline} */ timeline) =>
      this.lines.some(({ trace, hidden }) => trace.timeline === timeline && !hidden);
    const spans = timelines.flatMap((timeline, number) =>
      timelines.length < 3
        ? timeline.spans.map(span => ({
            ...span,
            name: span.kind === "moment" ? "--moment" : "--mark",
          }))
        : isDrawn(timeline)
          ? timeline.spans.map(span => ({ ...span, name: `--c${number}` }))
          : [],
    );
    for (const { from, to, name } of spans) {
      const [left, right] = [x(from), x(to)];
      ctx.fillStyle = colourOf(name);
      ctx.globalAlpha = timelines.length < 3 ? 1 : 0.45;
      ctx.fillRect(
        left,
        bbox.top,
        Math.max(2 * devicePixelRatio, right - left),
        right > left ? 4 * devicePixelRatio : bbox.height,
      );
    }
    ctx.restore();
  }

  /** The cursor and the values in the legend. @param {number | null} at */
  point(at) {
    const { plot } = this;
    if (!plot || !this.onScreen) return;
    plot.setCursor(
      at === null ? { left: -10, top: -10 } : { left: plot.valToPos(at, "x"), top: 1 },
      false,
    );
    const row = plot.cursor.idx ?? null;
    this.lines.forEach(
      (line, number) =>
        (line.value.textContent =
          row === null
            ? (line.trace.amount ?? "")
            : valueText(this.valueAt(plot.data, number, row), this.picture.unit)),
    );
  }

  /** @param {uPlot.AlignedData} rows @param {number} at @param {number} row */
  valueAt(rows, at, row) {
    // Of two recordings each has rows in which only the other one was read.
    while (row > 0 && rows[at + 1][row] === undefined) row--;
    const value = rows[at + 1][row],
      below = this.lines[at + 1];
    if (!this.picture.stacked || value === null || value === undefined) return value;
    return (
      value -
      (below?.trace.timeline === this.lines[at].trace.timeline ? (rows[at + 2][row] ?? 0) : 0)
    );
  }

  /** @param {uPlot.AlignedData} rows */
  summary(rows) {
    return this.lines
      .map(({ trace }, at) => {
        const values = Array.from(rows[0], (_, row) => this.valueAt(rows, at, row)).filter(
          value => value !== null && value !== undefined,
        );
        const [lowest, highest, last] = [
          Math.min(...values),
          Math.max(...values),
          values.at(-1),
        ].map(value => valueText(value, this.picture.unit));
        return values.length
          ? `${trace.label}: ${lowest} to ${highest}, last ${last}`
          : `${trace.label}: nothing here`;
      })
      .join("; ");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { plot, viewport } = this;
    const last = (plot?.data[0].length ?? 0) - 1,
      row = plot?.cursor.idx ?? -1,
      step = event.shiftKey ? 10 : 1;
    const { from, to } = viewport,
      middle = plot?.data[0][row] ?? (from + to) / 2,
      half = (to - from) / 2;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.moveCursor(Math.max(0, row - step)),
      ArrowRight: () => this.moveCursor(Math.min(last, row + step)),
      Home: () => this.moveCursor(0),
      End: () => this.moveCursor(last),
      "+": () => viewport.show(middle - half / 2, middle + half / 2),
      "-": () => viewport.show(middle - half * 2, middle + half * 2),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    keys[event.key]();
    event.preventDefault();
  }

  /** Moves the cursor to a row by key, and says what is there. @param {number} row */
  moveCursor(row) {
    const at = this.plot?.data[0][row];
    if (at === undefined) return;
    this.viewport.point(at);
    const said = document.getElementById("said");
    if (!said) return;
    const values = this.lines.map(({ trace, value }) => `${trace.label} ${value.textContent}`);
    said.textContent = `${instant(at)}: ${values.join(", ")}`;
  }

  fillTable() {
    if (!(/** @type {HTMLDetailsElement} */ (this.table).open)) return;
    const rows = this.rows(TABLE_BUCKETS),
      { unit } = this.picture;
    const head = element(
      "tr",
      {},
      element("th", {}, "time"),
      ...this.lines.map(({ trace }) => element("th.number", { scope: "col" }, trace.label)),
    );
    const body = Array.from(rows[0], (at, row) =>
      element(
        "tr",
        {},
        element("td", {}, instant(at, 0.001)),
        ...this.lines.map((_, line) =>
          element("td.number", {}, valueText(this.valueAt(rows, line, row), unit)),
        ),
      ),
    );
    this.table.replaceChildren(
      this.table.children[0],
      element("div.scrolls", { tabindex: 0 }, element("table", {}, head, ...body)),
    );
  }

  /** All samples on screen, in the units that they were recorded in, as a file. */
  download() {
    const rows = this.rows(Infinity);
    const head = [
      "time_s",
      ...this.lines.map(
        ({ trace }) =>
          (trace.sparse ? `${trace.label} ns` : trace.names.join("+")) +
          (trace.grows ? " per s" : "") +
          (trace.second ? ", second" : ""),
      ),
    ];
    const cell = (/** @type {string} */ text) =>
      /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const lines = Array.from(rows[0], (at, row) =>
      [at, ...this.lines.map((_, line) => this.valueAt(rows, line, row) ?? "")].join(","),
    );
    const href = URL.createObjectURL(
      new Blob([[head.map(cell).join(","), ...lines, ""].join("\n")], { type: "text/csv" }),
    );
    element("a", { href, download: `${this.picture.id}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }
}

/** @param {Float64Array[]} columns @param {number} length */
function sum(columns, length) {
  const total = new Float64Array(length);
  for (const column of columns) for (let at = 0; at < length; at++) total[at] += column[at];
  return total;
}
