//! mbw: copies between two arrays of a size in MiB, by the C library's memcpy or by an element
//! loop.
//!
//! Its third method, MCBLOCK, is left out: as packaged in Debian (1.2.2) it never advances its
//! source, so it reads one block from a cache again and again and prints rates that no memory has.

use std::time::Duration;

use crate::bench::peer::Peer;
use crate::bench::ratio;
use crate::bench::report::malformed;
use crate::error::Error;

/// The methods that are compared: mbw's option and the word in its output.
pub(super) const METHODS: &[(&str, &str)] = &[("-t0", "MEMCPY"), ("-t1", "DUMB")];

/// Why the third method is not among them.
pub(super) const EXCLUDED: &str = "mbw's MCBLOCK is left out: the packaged version does not advance its \
     source, and prints rates that no memory has";

/// Bytes that one run of mbw copies at each size: about half a second of work.
const COPIED_MIB: u64 = 6 << 10;

/// Runs at least this often: a median of fewer is one odd run away from wrong.
const RUNS_MIN: u64 = 7;

/// More runs of a small array do not narrow the median.
const RUNS_MAX: u64 = 200;

/// A run that takes longer swaps.
const LIMIT: Duration = Duration::from_secs(120);

/// mbw's arguments for one method at `size_mib`.
pub(super) fn args(option: &str, size_mib: u64) -> Vec<String> {
    let runs = (COPIED_MIB / size_mib).clamp(RUNS_MIN, RUNS_MAX);
    let plain = ["-q", "-a", "-n", &runs.to_string(), option];
    let mut args: Vec<String> = plain.map(str::to_owned).to_vec();
    args.push(size_mib.to_string());
    args
}

/// Runs mbw with `args` and gives the median of its runs in GB/s.
pub(super) fn run(mbw: &Peer, args: &[String], method: &str) -> Result<f64, Error> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    median(&mbw.run(&args, LIMIT)?.stdout, method)
}

/// The median of the lines of `method`, in GB/s.
fn median(output: &str, method: &str) -> Result<f64, Error> {
    let rates: Vec<f64> = output
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .filter(|line| line.contains(&format!("Method: {method}\t")))
        .filter_map(|line| {
            let rate = line.split("Copy:").nth(1)?.strip_suffix("MiB/s")?;
            rate.trim().parse::<f64>().ok()
        })
        .map(|mebibytes| mebibytes * f64::from(1 << 20) / 1e9)
        .collect();
    ratio::summary(&rates)
        .map(|summary| summary.median)
        .ok_or_else(|| malformed(format!("mbw: no line of {method}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As mbw 1.2.2 prints, three runs of two methods, with its own averages.
    const OUTPUT: &str = "\
0\tMethod: MEMCPY\tElapsed: 0.00112\tMiB: 16.00000\tCopy: 14311.270 MiB/s
1\tMethod: MEMCPY\tElapsed: 0.00090\tMiB: 16.00000\tCopy: 17718.715 MiB/s
2\tMethod: MEMCPY\tElapsed: 0.00082\tMiB: 16.00000\tCopy: 19393.939 MiB/s
AVG\tMethod: MEMCPY\tElapsed: 0.00095\tMiB: 16.00000\tCopy: 16865.777 MiB/s
0\tMethod: DUMB\tElapsed: 0.00080\tMiB: 16.00000\tCopy: 19950.125 MiB/s
AVG\tMethod: DUMB\tElapsed: 0.00080\tMiB: 16.00000\tCopy: 20008.337 MiB/s
";

    #[test]
    fn the_median_of_the_runs_is_taken_not_the_average() {
        let rate = median(OUTPUT, "MEMCPY").unwrap();
        assert!((rate - 17718.715 * 1.048_576e-3).abs() < 1e-9, "{rate}");
        let rate = median(OUTPUT, "DUMB").unwrap();
        assert!((rate - 19950.125 * 1.048_576e-3).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn a_method_that_is_not_there_is_an_error() {
        let error = median(OUTPUT, "MCBLOCK").unwrap_err();
        assert!(error.to_string().contains("no line of MCBLOCK"), "{error}");
    }

    #[test]
    fn runs_are_bounded_at_every_size() {
        assert_eq!(args("-t0", 16), ["-q", "-a", "-n", "200", "-t0", "16"]);
        assert_eq!(args("-t1", 1024), ["-q", "-a", "-n", "7", "-t1", "1024"]);
    }
}
