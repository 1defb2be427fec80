// Decodes what the Rust test beside it packed, and draws it: JSON in, JSON out.
import { readFileSync } from "node:fs";
import { eachChange, parted, rates, reduced, Timeline } from "./decode.js";

const asked = JSON.parse(readFileSync(0, "utf8"));
const block = Uint8Array.from(asked.block);
const changes = asked.columns.map(column => {
  const changes = [];
  eachChange(block, column, (sample, value) =>
    changes.push([sample, Number.isNaN(value) ? null : value]),
  );
  return changes;
});

const view = (samples, lines) => ({
  samples,
  ticks: { offset: 0, length: 0 },
  series: lines,
  spans: [],
});
const lines = asked.columns.map((column, at) => ({
  name: `s${at}`,
  kind: "gauge",
  refresh_ns: null,
  ...column,
}));
const timeline = new Timeline(view(asked.samples, lines), block);
const dense = lines.map((_, at) =>
  Array.from(timeline.values(at), value => (Number.isNaN(value) ? null : value)),
);

// 100,000 samples of noise with one spike of one sample, in 500 buckets.
const seconds = Float64Array.from({ length: 100_000 }, (_, at) => at / 10);
const spiky = seconds.map((_, at) =>
  at === 61_803 ? 1e9 : at === 31_415 ? -1e9 : (at * 7919) % 100,
);
const [times, line] = reduced(seconds, [spiky], 0, 1e4, 500);
const zoomed = reduced(seconds, [spiky], 6180, 6181, 500);

// Nothing was recorded before 2 s: the line is parted there, and only there.
const pause = parted(
  [
    [0, 1, 2, 3],
    [5, 6, 7, 8],
  ],
  [0, 2, 9],
);

// Read once a second, sampled ten times: ten grow in the second before 1.0 s, nothing after.
const tenths = Float64Array.from({ length: 31 }, (_, at) => at / 10);
const slow = rates(
  tenths.map(at => (at < 1 ? 5 : at < 2.95 ? 15 : 25)),
  tenths,
  1,
);

// A live recording: what it grows by, far beyond what is kept.
const live = new Timeline(
  { ...view(0, [{ name: "a", kind: "gauge", refresh_ns: null }]) },
  new Uint8Array(),
);
for (let from = 0; from < 100_000; from += 1000) {
  const ticks_ns = Array.from({ length: 1000 }, (_, at) => (from + at) * 1e8);
  live.grow({
    from_sample: from,
    ticks_ns,
    series: [],
    changes: from % 2000 ? [] : [[0, from + 500, from]],
    spans: [],
    explain: null,
  });
}
console.log(
  JSON.stringify({
    changes,
    dense,
    spike: Math.max(...line),
    dip: Math.min(...line),
    drawn: times.length,
    pause,
    zoomed: [zoomed[0].length, Math.max(...zoomed[1])],
    slow: Array.from(slow, rate => (Number.isNaN(rate) ? null : rate)),
    kept: live.seconds.length,
    kept_changes: live.added[0].sample.length,
    newest: live.seconds.at(-1),
    first_value: live.values(0)[0],
    first: live.first,
  }),
);
