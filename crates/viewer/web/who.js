// Who did it: a chart of the first processes of the time that is shown for each figure, and the
// files. A process that is pressed is shown alone in all of them.
import { element } from "./dom.js";
import { figure } from "./format.js";
import { firstAfter } from "./decode.js";
import { Chart } from "./charts.js";

/**
 * @typedef {import("./decode.js").Timeline} Timeline
 * @typedef {import("./charts.js").Viewport} Viewport
 * @typedef {import("./charts.js").Trace} Trace
 */
/**
 * As crates/viewer/src/who.rs has it.
 * @typedef {{id: string, title: string, column: number, unit: string, is_level: boolean, all:
 * string}} Lane
 */
/** @typedef {{lane: Lane, chart?: Chart, members?: string}} Drawn */

const FIRST = 10;
const FILES = 20;
const OTHERS = -1;
// A screen has no more columns.
const STEPS = 4000;
const OLD = 1e4;

/**
 * Adds what was used between two instants to the steps of a grid, as growth per second.
 * @param {Float64Array} rates @param {Float64Array} grid
 * @param {number} from @param {number} to @param {number} value
 */
function spread(rates, grid, from, to, value) {
  for (let at = firstAfter(grid, from) || 1; grid[at - 1] < to; at++) {
    const inside = Math.min(to, grid[at]) - Math.max(from, grid[at - 1]);
    rates[at] += (value * inside) / (to - from) / (grid[at] - grid[at - 1]);
  }
}

/** The section of one recording. */
export class Who {
  /** @param {Timeline} timeline @param {Viewport} viewport @param {string} side which of two */
  constructor(timeline, viewport, side) {
    const { who } = timeline.view,
      unpacked = (/** @type {any} */ { rows, columns }) =>
        columns.map((/** @type {import("./decode.js").Column} */ column) =>
          Array.from(timeline.unpacked(column, undefined, rows)),
        );
    this.timeline = timeline;
    this.viewport = viewport;
    this.side = side;
    /** Rows as columns: where they begin and end, whose they are, the figures. */
    this.rows = /** @type {number[][]} */ (unpacked(who.process_rows));
    this.fileRows = /** @type {number[][]} */ (unpacked(who.file_rows));
    /** The process that is shown alone. @type {number | null} */
    this.alone = null;
    /** @type {Map<number, number>} */
    this.colours = new Map();
    this.drawn = /** @type {Drawn[]} */ (who.lanes.map((/** @type {Lane} */ lane) => ({ lane })));
    this.grid = timeline.clock;
    this.about = element("p.quiet");
    this.charts = element("div.charts");
    this.table = element("div");
    this.section = element(
      "section",
      { "data-question": "who" },
      element("h2", {}, `Who did it${side}?`),
      this.about,
      this.charts,
      this.table,
    );
    timeline.who = this;
    let waiting = 0;
    // Not with every frame in which it is dragged or grows.
    const update = () => {
      waiting = 0;
      this.update();
    };
    viewport.changed.push(() => (waiting ||= setTimeout(update, 150)));
    update();
  }

  /** @param {any} news of a live one */
  grow({ processes, process_rows, files, file_rows, about }) {
    const { who } = this.timeline.view;
    who.about = about;
    who.processes.push(...processes);
    who.files.push(...files);
    this.add(this.rows, process_rows);
    this.add(this.fileRows, file_rows);
  }

  /** Drops what is older than all samples. @param {number[][]} to @param {number[][]} rows */
  add(to, rows) {
    for (const row of rows) to.forEach((column, at) => column.push(row[at]));
    const old = to[1].findIndex(end => end > this.timeline.clock[0] * 1e6);
    if (old > OLD) to.forEach(column => column.splice(0, old));
  }

  get spans() {
    return this.timeline.spans;
  }

  /** Where the steps of the grid are drawn. */
  get seconds() {
    return this.grid.map(this.timeline.place);
  }

  /**
   * Each row of the time that is shown (of two recordings all), and what part of it lies there.
   * @param {number[][]} rows
   * @param {(row: number, from: number, to: number, part: number) => void} visit
   */
  each([begins, ends], visit, isAll = this.side !== "") {
    const [from, to] = isAll ? [0, Infinity] : [this.viewport.from, this.viewport.to];
    for (let row = 0; row < ends.length; row++) {
      const end = ends[row] / 1e6,
        begin = Math.min(begins[row] / 1e6, end - 1e-6),
        inside = Math.min(to, end) - Math.max(from, begin);
      if (inside > 0) visit(row, begin, end, inside / (end - begin));
    }
  }

  /** Draws what is new, in place. */
  update() {
    const { clock, view } = this.timeline,
      every = Math.ceil(clock.length / STEPS);
    this.grid = clock.filter((_, at) => at % every === 0 || at === clock.length - 1);
    this.about.textContent = view.who.about;
    this.drawn.forEach(drawn => this.draw(drawn));
    this.table.replaceChildren(...this.files());
  }

  /** @param {Drawn} drawn */
  draw(drawn) {
    const { lane } = drawn,
      { processes } = this.timeline.view.who,
      { is_level } = lane,
      amounts = new Float64Array(processes.length),
      { [2]: of, [lane.column]: values } = this.rows;
    this.each(this.rows, (row, _from, _to, part) => {
      const [id, value] = [of[row], values[row]];
      amounts[id] = is_level ? Math.max(amounts[id], value) : amounts[id] + value * part;
    });
    const all = amounts.reduce((sum, amount) => sum + amount, 0);
    const members = [...amounts.keys()]
      .filter(id => amounts[id] > 0 && !processes[id].is_rest)
      .sort((a, b) => amounts[b] - amounts[a])
      .filter((id, at) => at < FIRST || id === this.alone);
    const key = [...members].sort().join();
    if (key !== drawn.members) {
      drawn.chart?.remove();
      drawn.members = key;
      drawn.chart = key ? this.chart(lane, members) : undefined;
      const next = this.drawn.slice(this.drawn.indexOf(drawn) + 1).find(({ chart }) => chart);
      if (drawn.chart) this.charts.insertBefore(drawn.chart.element, next?.chart?.element ?? null);
    }
    for (const { trace } of drawn.chart?.lines ?? []) {
      const amount = amounts[trace.process ?? OTHERS];
      if (amount >= 0)
        trace.amount = is_level
          ? `\u2264 ${figure(amount, "bytes")}`
          : figure(amount / all, "ratio");
    }
    drawn.chart?.showAlone(this.alone);
  }

  /** @param {Lane} lane @param {number[]} members the first one first */
  chart(lane, members) {
    /** @type {Set<number>} */
    const taken = new Set();
    // The same in all charts, where it is free.
    const colour = (/** @type {number} */ id) => {
      let at = this.colours.get(id) ?? this.colours.size % FIRST;
      while (taken.has(at) && taken.size < FIRST) at = (at + 1) % FIRST;
      if (!this.colours.has(id)) this.colours.set(id, at);
      taken.add(at);
      // The grey one is too near to that of the others.
      return `--c${at < 7 ? at : at + 1}`;
    };
    let known = 0;
    /** @type {Map<number, Float64Array>} */
    let lines;
    const values = (/** @type {number} */ id) => () => {
      if (known !== this.timeline.end) lines = this.lines(lane, members);
      known = this.timeline.end;
      return lines.get(id) ?? this.grid;
    };
    const others = { label: "all others", about: "" };
    /** @returns {Trace} */
    const trace = (/** @type {number} */ id) => {
      const { label, about } = this.timeline.view.who.processes[id] ?? others;
      return {
        label,
        names: [`${lane.id}: ${label}`],
        meaning: about,
        timeline: /** @type {any} */ (this),
        values: values(id),
        colour: id === OTHERS ? "--sleep" : colour(id),
        refresh_ns: null,
        grows: !lane.is_level,
        second: false,
        process: id,
      };
    };
    const pick = (/** @type {Trace} */ { process = OTHERS }) => {
      this.alone = this.alone === process ? null : process;
      this.update();
    };
    // Of a stack the last one is on top, and first in the legend.
    const traces = members.map(trace);
    return new Chart(
      {
        id: `who-${lane.id}${this.side}`,
        title: lane.title,
        unit: lane.unit,
        stacked: !lane.is_level,
        traces: lane.is_level ? traces : [trace(OTHERS), ...traces.reverse()],
        pick,
      },
      this.viewport,
    );
  }

  /**
   * The values of the members and of all others, at each step.
   * @param {Lane} lane @param {number[]} members
   */
  lines({ column, is_level, all }, members) {
    const { grid, timeline } = this,
      { clock } = timeline,
      line = () => new Float64Array(grid.length).fill(is_level ? NaN : 0).fill(NaN, 0, 1),
      lines = new Map(members.map(id => [id, line()])),
      others = line(),
      left = line(),
      { [2]: of, [column]: values } = this.rows;
    this.each(
      this.rows,
      (row, from, to) => {
        const line = lines.get(of[row]) ?? others;
        if (is_level) line.fill(values[row], firstAfter(grid, from), firstAfter(grid, to));
        else spread(line, grid, from, to, values[row]);
      },
      true,
    );
    lines.set(OTHERS, others);
    const whole = timeline.index.get(all);
    if (whole === undefined) return lines;
    // What all used less what these did: also of those that never had a row.
    timeline.values(whole).forEach((rate, at) => {
      const since = clock[at - 1];
      if (rate > 0) spread(left, grid, since, clock[at], rate * (clock[at] - since));
    });
    left.forEach((used, at) => {
      for (const id of members) used -= lines.get(id)?.[at] ?? 0;
      others[at] = Math.max(others[at], used);
    });
    return lines;
  }

  /** The files by bytes. */
  files() {
    /** @type {Map<number, any>} */
    const files = new Map();
    const [, , of, process, ...figures] = this.fileRows,
      { who } = this.timeline.view;
    this.each(this.fileRows, (row, _from, _to, part) => {
      const file = files.get(of[row]) ?? { sums: [0, 0, 0, 0], by: new Map(), moved: 0 };
      files.set(of[row], file);
      figures.forEach((column, at) => (file.sums[at] += column[row] * part));
      const bytes = (figures[0][row] + figures[2][row]) * part;
      file.by.set(process[row], (file.by.get(process[row]) ?? 0) + bytes);
      file.moved += bytes;
    });
    const row = (/** @type {string} */ tag, /** @type {string[]} */ ...cells) =>
      element(
        "tr",
        {},
        ...cells.map((text, at) => element(at % 5 ? `${tag}.number` : tag, {}, text)),
      );
    const users = (/** @type {Map<number, number>} */ by, /** @type {number} */ moved) =>
      [...by]
        .filter(([, bytes]) => bytes)
        .sort(([, a], [, b]) => b - a)
        .slice(0, 2)
        .map(([id, bytes]) => `${who.processes[id].label} ${figure(bytes / moved, "ratio")}`)
        .join(", ");
    const rows = [...files]
      .sort(([, a], [, b]) => b.moved - a.moved)
      .slice(0, FILES)
      .map(([file, { sums, by, moved }]) => {
        const words = sums.map((/** @type {number} */ sum) => (sum ? figure(sum, "bytes") : "0"));
        return row("td", who.files[file], ...words, users(by, moved));
      });
    return rows.length
      ? [
          element("h3", {}, who.files_title),
          element(
            "div.scrolls",
            { tabindex: 0 },
            element("table", { id: "files" }, row("th", ...who.file_heads), ...rows),
          ),
        ]
      : [];
  }
}
