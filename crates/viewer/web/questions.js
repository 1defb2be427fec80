// Which series are drawn together, by the question that they answer.
/** @typedef {import("./decode.js").Timeline} Timeline @typedef {import("./decode.js").Line} Line @typedef {import("./charts.js").Trace} Trace */
/** @typedef {import("./charts.js").Picture} Picture */

/**
 * `series`: the name (`*` is any word; after `|` what is taken where the first has nothing to say), the label (`*` is that word), a colour if it has a meaning of its own.
 * @typedef {{id: string, title: string, unit?: string, stacked?: boolean, series: [string, string, string?][]}} Want
 */
/** @type {{id: string, title: string, still: string, charts: Want[]}[]} */
export const QUESTIONS = [
  { id: "waits", title: "Who waits", still: "Nothing ran and nothing waited.", charts: [
    { id: "states", title: "Its threads", unit: "mean threads", stacked: true, series: [["trace.sched.run_ns|tree.run_ns", "on a processor", "--run"], ["trace.sched.queue_ns|tree.queue_ns", "waiting for a processor", "--queue"], ["trace.sched.block_io_ns|tree.block_io_ns", "waiting for block I/O", "--block_io"]] },
    { id: "sleepers", title: "What sleeping threads wait for", unit: "mean threads", series: [["trace.sleep.*_ns", "*"]] },
    { id: "pressure", title: "Pressure: time in which some task stood still", unit: "share", series: [["pressure.cpu.some_ns", "for a processor", "--queue"], ["pressure.memory.some_ns", "for memory", "--children"], ["pressure.io.some_ns", "for I/O", "--block_io"]] },
    { id: "processors", title: "Processors", unit: "mean processors", series: [["tree.run_ns", "itself", "--run"], ["stat.cpu.user_ns", "machine, programs", "--c0"], ["stat.cpu.system_ns", "machine, kernel", "--c3"], ["stat.cpu.steal_ns", "taken by the host", "--block_io"], ["own.cpu_ns", "the recorder", "--sleep"]] },
    { id: "cpu_limit", title: "Stopped by a CPU limit", unit: "mean threads", series: [["group*.cpu.throttled_ns", "threads, group *"]] },
  ] },
  { id: "memory", title: "Where is my memory", still: "No memory was recorded.", charts: [
    { id: "own_memory", title: "Its memory", series: [["tree.rss_bytes", "resident"], ["group0.memory.usage_bytes", "its group"], ["group0.memory.limit_bytes", "limit of the group", "--block_io"], ["group0.memory.swap_bytes", "its group in swap", "--queue"]] },
    { id: "swap_use", title: "What lies in swap", series: [["swap.*.used_bytes", "swap *"], ["zram.*.orig_bytes", "* holds"], ["zram.*.used_bytes", "* takes"], ["zswap.stored_bytes", "zswap holds"], ["zswap.pool_bytes", "zswap takes"]] },
    { id: "dirty", title: "Not yet on disk", series: [["meminfo.Dirty", "dirty", "--block_io"], ["meminfo.Writeback", "write-back", "--queue"]] },
  ] },
  { id: "disk", title: "What is the disk doing", still: "No disk did anything.", charts: [
    { id: "disk_bytes", title: "Read and written", series: [["disk.*.read_bytes", "read *"], ["disk.*.write_bytes", "written *"]] },
    { id: "disk_requests", title: "Requests", series: [["disk.*.reads", "reads *"], ["disk.*.writes", "writes *"], ["disk.*.flushes", "flushes *"]] },
    { id: "disk_busy", title: "Busy", unit: "share", series: [["disk.*.io_ns", "*"]] },
    { id: "disk_queue", title: "Requests in flight", unit: "mean requests", series: [["disk.*.weighted_ns", "*"]] },
  ] },
  { id: "cache", title: "What did the cache do", still: "Nothing was missed, freed or fetched back.", charts: [
    { id: "refaults", title: "Fetched back soon after they were dropped", series: [["vmstat.workingset_refault_file", "file pages"], ["vmstat.workingset_refault_anon", "memory pages"]] },
    { id: "faults", title: "Its page faults", series: [["tree.minor_faults", "without I/O"], ["tree.major_faults", "with I/O", "--block_io"]] },
    { id: "reclaim", title: "Pages freed", series: [["vmstat.pgsteal_file", "file pages"], ["vmstat.pgsteal_anon", "memory pages"], ["vmstat.pgsteal_kswapd", "in the background"], ["vmstat.pgsteal_direct", "by those who wait", "--block_io"], ["vmstat.pgscan_direct", "looked at by those who wait", "--queue"]] },
    { id: "swap_traffic", title: "Swap, pages", series: [["vmstat.pswpin", "in", "--block_io"], ["vmstat.pswpout", "out"], ["vmstat.zswpin", "in from zswap"]] },
    { id: "block_pages", title: "Block I/O of all memory, KiB", series: [["vmstat.pgpgin", "in"], ["vmstat.pgpgout", "out"]] },
    { id: "read_ahead", title: "Read ahead from swap, pages", series: [["vmstat.swap_ra", "read"], ["vmstat.swap_ra_hit", "of these used"]] },
  ] },
];

// More lines in one chart cannot be told apart; the liveliest stay.
const MOST_LINES = 8;
const PALETTE = 8;

/** The unit in which a series is drawn: a counter grows by so much a second. @param {Line} line */
export function drawnUnit({ kind, unit }) {
  if (kind === "gauge") return unit || "count";
  return unit === "ns" ? "share" : unit === "count" || !unit ? "per_s" : `${unit}_per_s`;
}

/** @param {Timeline} timeline @param {number} index @param {string} label @param {string} colour @returns {Trace} */
export function traceOf(timeline, index, label, colour) {
  const { name, meaning, kind } = timeline.line(index), refresh_ns = timeline.refresh(index);
  const slow = refresh_ns && refresh_ns > 1.5e9 * (timeline.end / timeline.seconds.length) ? refresh_ns : null;
  return { label, names: [name], meaning, timeline, values: () => timeline.values(index), colour, refresh_ns: slow, grows: kind === "counter", second: false };
}

/** The pictures of these series of one recording, one for each unit, and one for each family of counters of requests by their time. @param {Timeline} timeline @param {string[]} names @param {string} id @param {string} [title] @returns {Picture[]} */
export function picturesOf(timeline, names, id, title) {
  /** @type {Map<string, Picture>} */
  const pictures = new Map();
  const known = [...new Set(names)].map((name) => timeline.index.get(name)).filter((index) => index !== undefined);
  const speaking = known.filter((index) => timeline.speaks(index));
  for (const index of speaking.length ? speaking : known) {
    const { name } = timeline.line(index), unit = drawnUnit(timeline.line(index)), family = FAMILY.exec(name);
    const key = family ? family[1] : unit, { traces } = pictures.get(key) ?? { traces: [] };
    if (!family) pictures.set(key, { id: `${id}-${unit}`, title: title ?? name, unit, traces: [...traces, traceOf(timeline, index, name, `--c${traces.length % PALETTE}`)] });
    else if (!traces.length) pictures.set(key, { id: `${id}-${key}`, title: `How long each ${family[3]} of ${family[2]} took`, unit: "ns", traces: durations(timeline, key) });
  }
  return [...pictures.values()];
}

/** Counters of requests that took at most so long: their family, the device, the direction, the time. */
const FAMILY = /^(.+\.([^.]+)\.(read|write))_le_(\d+)us$/;
const SHARES = /** @type {const} */ ([[0.5, "half within", "--c0"], [0.9, "90 % within", "--c1"], [1, "the slowest within", "--c5"]]);

/** Within how long the requests of each sample were done, as the counters of their family tell. @param {Timeline} timeline @param {string} family @returns {Trace[]} */
function durations(timeline, family) {
  const counters = [...timeline.index].flatMap(([name, index]) => (FAMILY.exec(name)?.[1] === family ? [{ name, index, up: Number(FAMILY.exec(name)?.[4]) * 1e3 }] : [])).sort((a, b) => a.up - b.up);
  const within = (/** @type {number} */ share) => () => {
    const rates = counters.map(({ index }) => timeline.values(index));
    return Float64Array.from(timeline.seconds, (_, at) => {
      const wanted = share * rates[rates.length - 1][at], here = wanted > 0 ? rates.findIndex((rate) => rate[at] >= wanted * (1 - 1e-9)) : -1;
      if (here < 0) return NaN;
      // Inside of a step, which goes from the half of its time, they lie evenly.
      const before = here ? rates[here - 1][at] || 0 : 0;
      return (counters[here].up / 2) * (1 + (wanted - before) / (rates[here][at] - before));
    });
  };
  return SHARES.map(([share, label, colour]) => ({ ...traceOf(timeline, counters[0].index, label, colour), names: counters.map(({ name }) => name), values: within(share), grows: false, sparse: true }));
}

/** The picture that is wanted, of one recording; null where it has nothing to say. @param {Timeline} timeline @param {Want} want @returns {Picture | null} */
export function pictureOf(timeline, want) {
  const found = want.series.flatMap(([pattern, label, colour]) => {
    const some = pattern.split("|").map((one) => matching(timeline, one)).find((indices) => indices.length) ?? [];
    return some.map(([index, word]) => ({ index, label: label.replace("*", word), colour }));
  });
  const weight = (/** @type {number} */ index) => timeline.line(index).length ?? 0;
  const liveliest = found.length > MOST_LINES ? found.sort((a, b) => weight(b.index) - weight(a.index)).slice(0, MOST_LINES) : found;
  const traces = liveliest.map(({ index, label, colour }, at) => traceOf(timeline, index, label, colour ?? `--c${at % PALETTE}`));
  const unit = want.unit ?? (found.length ? drawnUnit(timeline.line(found[0].index)) : "");
  return traces.length ? { id: want.id, title: want.title, unit, stacked: want.stacked, traces } : null;
}

/** The series of a pattern that have something to say, and the word that `*` is. @param {Timeline} timeline @param {string} pattern @returns {[number, string][]} */
function matching(timeline, pattern) {
  const match = new RegExp(`^${pattern.replaceAll(".", "\\.").replace("*", "(.+)")}$`);
  return [...timeline.index].flatMap(([name, index]) => {
    const found = match.exec(name);
    return found && timeline.speaks(index) ? [[index, found[1]]] : [];
  });
}

/**
 * All memory of the machine in layers, as the kernel tells of it once a second: dirty pages and pages on their way to disk
 * are taken out of the inactive cache, where most of them lie; what has no other name is used.
 * @param {Timeline} timeline @returns {Picture | null}
 */
export function composition(timeline) {
  const zram = [...timeline.index.keys()].filter((name) => /^zram\..+\.used_bytes$/.test(name) && timeline.speaks(timeline.index.get(name) ?? 0));
  const level = (/** @type {string} */ name) => timeline.values(timeline.index.get(name) ?? -1);
  const names = ["MemTotal", "MemFree", "Active_file", "Inactive_file", "Dirty", "Writeback"].map((name) => `meminfo.${name}`);
  if (!names.every((name) => timeline.index.has(name))) return null;
  const [total, free, active, inactive, dirty, writeback] = names;
  const less = (/** @type {string} */ whole, /** @type {string[]} */ parts) => () => {
    const left = level(whole).slice();
    for (const part of parts.map(level)) for (let at = 0; at < left.length; at++) left[at] = Math.max(0, left[at] - part[at]);
    return left;
  };
  const layer = (/** @type {string} */ label, /** @type {string} */ colour, /** @type {string[]} */ own, values = () => level(own[0])) =>
    ({ ...traceOf(timeline, timeline.index.get(own[0]) ?? 0, label, colour), names: own, values });
  const compressed = zram.map((name) => layer(`${name.split(".")[1]} (compressed swap)`, "--children", [name]));
  const traces = [layer("used", "--used", [total], less(total, [free, active, inactive, ...zram])), ...compressed,
    layer("cached, active", "--cache", [active]), layer("cached, inactive", "--cache-idle", [inactive], less(inactive, [dirty, writeback])),
    layer("dirty", "--block_io", [dirty]), layer("write-back", "--queue", [writeback]), layer("free", "--free", [free])];
  return { id: "composition", title: "Memory of the machine", unit: "bytes", stacked: true, traces };
}
