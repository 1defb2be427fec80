// A recording that still runs: what it grows by comes as server-sent events (docs/view.md).

/** @typedef {import("./decode.js").Timeline} Timeline */

/**
 * Takes in what comes until the recording has ended; calls `grown` at most once a frame.
 * @param {Timeline} timeline @param {string} path
 * @param {(previousEnd: number, isExplained: boolean, hasEnded: boolean) => void} grown
 */
export function follow(timeline, path, grown) {
  let drawn = timeline.end,
    waiting = false,
    isExplained = false,
    hasEnded = false;
  const draw = () => {
    grown(drawn, isExplained, hasEnded);
    [drawn, waiting, isExplained] = [timeline.end, false, false];
  };
  const source = new EventSource(path);
  source.addEventListener("message", ({ data }) => {
    const growth = JSON.parse(data);
    timeline.grow(growth);
    isExplained ||= growth.explain !== null;
    hasEnded ||= growth.ended === true;
    if (hasEnded) source.close();
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  });
}
