// Figures for people: three digits that matter, and the unit that keeps them short.

const TIMES = /** @type {const} */ ([
  [3600e9, "h"],
  [60e9, "min"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
]);
const SIZES = /** @type {const} */ ([
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
  [1, "B"],
]);
const RATES = /** @type {const} */ ([
  [1e12, "TB/s"],
  [1e9, "GB/s"],
  [1e6, "MB/s"],
  [1e3, "kB/s"],
  [1, "B/s"],
]);
const COUNTS = /** @type {const} */ ([
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
]);

/** @param {number} value @returns {string} three digits that matter */
export function short(value) {
  const size = Math.abs(value);
  // As on the terminal, without the zeros that say nothing: 22, 1.7, 7.05.
  return String(
    Number(size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2)),
  );
}

/** @param {number} value @param {readonly (readonly [number, string])[]} units */
function scaled(value, units) {
  const [size, name] = units.find(([size]) => Math.abs(value) >= size) ?? units[units.length - 1];
  return `${short(value / size)} ${name}`.trim();
}

/**
 * A value with its unit.
 * @param {number | null | undefined} value null and undefined are a dash: absent is not 0
 * @param {string} unit `ns`, `bytes`, `bytes_per_s`, `ratio`, `pages`, `count` or what is counted
 */
export function figure(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  switch (unit) {
    case "ns":
      return scaled(value, TIMES);
    case "bytes":
      return scaled(value, SIZES);
    case "bytes_per_s":
      return scaled(value, RATES);
    case "ratio":
      return `${short(value * 100)} %`;
    case "count":
      return scaled(value, COUNTS);
    default:
      return `${scaled(value, COUNTS)} ${unit.replaceAll("_", " ")}`;
  }
}
