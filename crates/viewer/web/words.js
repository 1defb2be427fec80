// The words for a slice of time, by its id: those of `TimeSlice` in crates/model. tests/words.rs
// compares both and prints this file if they differ.
export const WORDS = /** @type {Record<string, {short: string, long: string}>} */ ({
  run: { short: "CPU", long: "on a processor" },
  user: { short: "user", long: "in user mode" },
  kernel: { short: "kernel", long: "in the kernel" },
  queue: { short: "run queue", long: "waiting for a processor" },
  block_io: { short: "block I/O", long: "waiting for block I/O" },
  children: { short: "children", long: "waiting for children" },
  sleep: { short: "sleep", long: "asleep" },
  asleep: { short: "asleep", long: "asleep" },
  idle: { short: "idle", long: "idle" },
  steal: { short: "steal", long: "taken by the host" },
  unexplained: { short: "unexplained", long: "unexplained" },
});
