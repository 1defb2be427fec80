// The page of recordings, one to four: joins what is chosen with what is drawn.
// Tests may lean on data-*, ids, and body[data-ready] once the first chart is drawn.
import { element, jsonOf } from "./dom.js";
import { figure } from "./format.js";
import { recordingOf } from "./decode.js";
import { Chart, Viewport, instant } from "./charts.js";
import { QUESTIONS, pictureOf, picturesOf } from "./questions.js";
import { bars } from "./bars.js";
import { comparison, partShown } from "./compare.js";
import { moments } from "./moments.js";
import { findings, remarks } from "./findings.js";
import { counters } from "./counters.js";
import { follow } from "./live.js";
import { laidOver, overlay } from "./overlay.js";
import { Who } from "./who.js";

/**
 * @typedef {import("./decode.js").Timeline} Timeline
 * @typedef {import("./charts.js").Picture} Picture
 */

const KEYS = [
  ["Tab", "to the next thing"],
  ["Enter", "on a finding: show it in the charts"],
  ["Left, Right", "on a chart: move the cursor; with Shift by ten; Home, End"],
  ["+ and -", "on a chart: zoom in and out at the cursor; a drag zooms, too"],
  ["Escape", "show the whole again"],
  ["?", "these keys"],
];

const MOST_EVIDENCE = 4;

/** @param {Timeline[]} timelines @param {any} compared `terrace.compare/1`, or null */
function start(timelines, compared) {
  const [first] = timelines,
    viewport = new Viewport(timelines),
    sides =
      timelines.length > 2
        ? timelines.map(({ view }) => `, ${view.name}`)
        : timelines.length > 1
          ? [", first", ", second"]
          : [""],
    over = timelines.length > 2 ? overlay(timelines, viewport) : null;
  const spent = element("div.spent"),
    judged = element("div.judged"),
    evidence = element("div.charts", { id: "evidence" }),
    added = element("div.charts", { id: "added" });
  const foremost = () =>
    compared?.split.parts.length
      ? partShown(compared.split.parts[0], timelines)
      : first.view.explain.findings[0];
  /** @type {string | null} */
  let chosen = null;
  let rested = "";

  const restOn = (/** @type {import("./findings.js").Chosen | undefined} */ what) => {
    const names = what?.evidence.flatMap(({ name, series }) => series ?? [name]) ?? [];
    if (names.join() === rested) return names;
    rested = names.join();
    clear(evidence, viewport);
    const pictures = joined(timelines, timeline =>
      picturesOf(timeline, names, "evidence", `Evidence: ${what?.id.replaceAll("_", " ")}`),
    );
    evidence.append(
      ...pictures.slice(0, MOST_EVIDENCE).map(picture => new Chart(picture, viewport).element),
    );
    return names;
  };
  const choose = (/** @type {import("./findings.js").Chosen | null} */ what, whose = first) => {
    chosen = what?.id ?? null;
    const names = restOn(what ?? foremost());
    viewport.lifted = new Set(what ? names : []);
    viewport.chosen = what?.span
      ? { from: whose.place(what.span.from_ns / 1e9), to: whose.place(what.span.to_ns / 1e9) }
      : null;
    const { from, to } = viewport.chosen ?? { from: viewport.start, to: viewport.end },
      room = (to - from) / 20;
    viewport.show(from - room, to + room);
    if (what && evidence.getBoundingClientRect().top > innerHeight - 100)
      evidence.scrollIntoView({ block: "nearest" });
  };
  const explained = () => {
    const place = focused();
    const open = [...judged.querySelectorAll("details[open]")].map(({ id }) => id);
    spent.replaceChildren(
      ...timelines.map(({ view }, at) => bars(view.explain, at ? `-${at + 1}` : "", sides[at])),
    );
    judged.replaceChildren(
      ...timelines.flatMap((timeline, at) =>
        moments(timeline, sides[at], what => choose(what, timeline), chosen),
      ),
      ...timelines.map((timeline, at) =>
        findings(timeline.view.explain, what => choose(what, timeline), chosen, sides[at]),
      ),
      remarks(first.view.explain, choose, chosen),
      ...marks(timelines, viewport),
    );
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (place && !document.activeElement?.matches(place))
      /** @type {HTMLElement | null} */ (document.querySelector(place))?.focus({
        preventScroll: true,
      });
    if (!chosen) restOn(foremost());
  };
  const draw = (/** @type {string} */ name, /** @type {boolean} */ isWanted) => {
    if (!isWanted) return clear(added, viewport, `added-${name}`);
    for (const picture of joined(timelines, timeline =>
      picturesOf(timeline, [name], `added-${name}`),
    )) {
      const { element: chart } = new Chart({ ...picture, id: `added-${name}` }, viewport);
      added.append(chart);
      chart.scrollIntoView({ block: "nearest" });
    }
  };
  const questions = QUESTIONS.map(question => ({
    question,
    section: element("section", { "data-question": question.id }),
    drawn: "",
  }));
  const ask = () => questions.forEach(asked => answer(asked, timelines, viewport));

  const sections = compared
    ? [comparison(compared, timelines, choose, (from, to) => viewport.show(from, to)), evidence]
    : [];
  const glance = element("div.glance", {}, spent, judged, compared ? null : evidence),
    asked = questions.map(({ section }) => section);
  document.body.append(
    ...(over
      ? [
          over.head,
          controls(viewport, null, over.align),
          element("main", {}, over.section),
          foldedPart("more", "All charts, by question", ...asked),
          foldedPart("time", "Where the time of each went, and what hurt", glance),
        ]
      : [
          ...timelines.map((timeline, at) => title(timeline, sides[at])),
          element("main", {}, ...sections, glance),
          controls(viewport, compared?.aligned),
          ...timelines.map((timeline, at) => new Who(timeline, viewport, sides[at]).section),
          ...asked,
          counters(first, draw, added),
        ]),
    help(),
    element("p.hidden-but-read", { id: "said", "aria-live": "polite" }),
  );
  explained();
  ask();
  keys(viewport);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => viewport.refresh());
  addEventListener("beforeprint", () => viewport.charts.forEach(chart => chart.appear(true)));
  const live = jsonOf("live");
  if (live)
    follow(first, live.events, (previous, isExplained, hasEnded) => {
      if (isExplained) (explained(), ask());
      document.querySelector("header")?.replaceWith(title(first, "", hasEnded ? "ended" : "live"));
      viewport.grown(previous);
    });
  requestAnimationFrame(() =>
    requestAnimationFrame(() => document.body.setAttribute("data-ready", "")),
  );
}

/** @param {string} id @param {string} summary @param {...Node} children */
function foldedPart(id, summary, ...children) {
  return element("details.folded", { id }, element("summary", {}, summary), ...children);
}

/**
 * Where the focus is, so that it finds its place again in what is made anew: a selector; empty for
 * nowhere.
 */
function focused() {
  const { activeElement } = document;
  if (!(activeElement instanceof HTMLElement)) return "";
  const [name] = activeElement
    .getAttributeNames()
    .filter(attribute => attribute.startsWith("data-"));
  if (name) return `[${name}="${CSS.escape(activeElement.getAttribute(name) ?? "")}"]`;
  return activeElement.matches("details > summary") && activeElement.parentElement?.id
    ? `#${activeElement.parentElement.id} > summary`
    : "";
}

/**
 * What was watched and how it ended.
 * @param {Timeline} timeline @param {string} side which it is of two
 * @param {string} [live]
 */
function title({ view, end, first, seconds }, side, live = jsonOf("live") ? "live" : undefined) {
  const { explain } = view;
  const started = view.started_unix_ns
    ? `${new Date(view.started_unix_ns / 1e6).toISOString().slice(0, 19).replace("T", " ")} UTC`
    : null;
  const disks = view.devices
    .map((/** @type {any} */ device) => `${device.name} (${device.kind})`)
    .join(", ");
  const facts = [
    live === "live" ? `running for ${instant(end)}` : explain.ending,
    figure(explain.wall_ns, "ns"),
    started,
    `${first + seconds.length} samples`,
    disks && `disks: ${disks}`,
    view.name,
  ];
  return element(
    "header",
    {},
    element(
      "h1",
      {},
      side && element("small.quiet", {}, side.replace(", ", ""), ": "),
      explain.subject || view.name,
    ),
    element(
      "p.quiet",
      {},
      facts.filter(Boolean).join(" \u00b7 "),
      live ? element("span.badge", { id: "state" }, live) : null,
    ),
  );
}

/**
 * The pictures of all recordings, those of the second laid over those of the first.
 * @param {Timeline[]} timelines @param {(timeline: Timeline) => Picture[]} make
 */
function joined(timelines, make) {
  if (timelines.length > 2) return laidOver(timelines, make);
  const [first, second] = timelines;
  const pictures = make(first);
  for (const picture of second ? make(second) : []) {
    const traces = picture.traces.map(trace => ({
      ...trace,
      label: `${trace.label}, second`,
      colour: "--second",
      second: true,
    }));
    const under = pictures.findIndex(({ id }) => id === picture.id);
    if (under < 0) pictures.push({ ...picture, traces });
    else pictures[under] = { ...pictures[under], traces: [...pictures[under].traces, ...traces] };
  }
  return pictures;
}

/**
 * Draws what answers a question, unless it is drawn already.
 * @param {{question: typeof QUESTIONS[number], section: HTMLElement, drawn: string}} asked
 * @param {Timeline[]} timelines @param {Viewport} viewport
 */
function answer(asked, timelines, viewport) {
  const { question, section } = asked;
  const pictures = joined(timelines, timeline =>
    question.charts.map(want => pictureOf(timeline, want)).filter(picture => picture !== null),
  );
  const drawn = pictures.flatMap(({ traces }) => traces.map(({ names }) => names)).join();
  if (drawn && drawn === asked.drawn) return;
  asked.drawn = drawn;
  clear(section, viewport);
  const charts = element(
    "div.charts",
    {},
    ...pictures.map(picture => new Chart(picture, viewport).element),
  );
  section.replaceChildren(
    element("h2", {}, `${question.title}?`),
    pictures.length ? charts : element("p.quiet", {}, question.still),
  );
}

/**
 * Takes charts away, all or the one of this id.
 * @param {HTMLElement} from @param {Viewport} viewport @param {string} [id]
 */
function clear(from, viewport, id) {
  for (const chart of viewport.charts)
    if (from.contains(chart.element) && (!id || chart.picture.id === id)) chart.remove();
}

/**
 * What part of the time is shown, the way back to the whole, and whose time it is.
 * @param {Viewport} viewport @param {any} aligned of `terrace.compare/1`, or null
 * @param {HTMLElement | null} [chooser] where recordings begin together
 */
function controls(viewport, aligned, chooser = null) {
  const shown = element("span"),
    at = element("output", { id: "at", "aria-live": "off" });
  const whole = element("button", { id: "whole", click: () => viewport.reset() }, "Show the whole");
  const lay = () => {
    const isByWork = align.getAttribute("aria-pressed") !== "true";
    align.setAttribute("aria-pressed", String(isByWork));
    viewport.timelines[1].align(isByWork ? aligned.sections : null);
    viewport.reset();
  };
  const align = element(
    "button",
    { id: "align", title: "Draw the second where it had done as much as the first", click: lay },
    `By the work: ${aligned?.series}`,
  );
  const bar = element(
    "div.window",
    { id: "window" },
    shown,
    whole,
    aligned && align,
    chooser,
    element("button", { id: "keys", click: () => showHelp() }, "Keys ?"),
    at,
  );
  viewport.pointed = seconds => {
    const near = (viewport.to - viewport.from) / 100;
    const here = viewport.timelines
      .flatMap(({ spans }) => spans)
      .filter(({ from, to }) => seconds !== null && seconds > from - near && seconds < to + near);
    at.textContent =
      seconds === null
        ? ""
        : [`at ${instant(seconds)}`, ...here.slice(0, 3).map(({ text }) => text)].join(" \u00b7 ");
  };
  viewport.moved = () => {
    const { from, to, whole: isWhole } = viewport;
    const whose = align.ariaPressed === "true" ? " of the first" : "";
    const extent = isWhole ? "Whole recording" : "Zoomed";
    shown.textContent = `${extent}: ${instant(from)} to ${instant(to)}${whose}`;
    whole.toggleAttribute("disabled", isWhole);
    Object.assign(bar.dataset, { from, to, whole: isWhole });
  };
  aligned ? lay() : viewport.moved();
  return bar;
}

/**
 * Marks and intervals by name; one that is pressed is zoomed to.
 * @param {Timeline[]} timelines @param {Viewport} viewport
 */
function marks(timelines, viewport) {
  const entry = (
    /** @type {Timeline} */ { place },
    /** @type {import("./decode.js").Span} */ { kind, text, start_ns, end_ns },
  ) => {
    const room = Math.max((end_ns - start_ns) / 10, 5e8);
    const click = () => viewport.show(place((start_ns - room) / 1e9), place((end_ns + room) / 1e9));
    return element(
      "li",
      {},
      element(
        "button.claim",
        { "data-mark": text, click },
        `${instant(start_ns / 1e9)} ${kind.replaceAll("_", " ")}: ${text}`,
      ),
    );
  };
  const spans = timelines.flatMap(timeline =>
    timeline.view.spans
      .slice(0, 100)
      .map((/** @type {import("./decode.js").Span} */ span) => entry(timeline, span)),
  );
  return spans.length
    ? [
        element(
          "details",
          { id: "marks" },
          element("summary", {}, `Marks (${spans.length})`),
          element("ul", {}, ...spans),
        ),
      ]
    : [];
}

function help() {
  const rows = KEYS.map(([key, does]) =>
    element("tr", {}, element("th", {}, key), element("td", {}, does)),
  );
  return element(
    "dialog",
    { id: "help", "aria-label": "Keys" },
    element("table", {}, ...rows),
    element("form", { method: "dialog" }, element("button", {}, "Close")),
  );
}

function showHelp() {
  /** @type {HTMLDialogElement | null} */ (document.querySelector("#help"))?.showModal();
}

/** @param {Viewport} viewport */
function keys(viewport) {
  addEventListener("keydown", event => {
    if (event.target instanceof HTMLInputElement || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") viewport.reset();
    if (event.key === "?") showHelp();
  });
}

const timelines = (
  await Promise.all([recordingOf(""), recordingOf("-2"), recordingOf("-3"), recordingOf("-4")])
).filter(timeline => timeline !== null);
start(timelines, jsonOf("compare"));
