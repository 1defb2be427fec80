//! tinymembench: many copy loops over arrays of 32 MiB, each the best of up to ten half seconds.
//!
//! It takes about ten minutes and has no option for what to measure, so it runs once. Only copies
//! of main memory count: fills are no copies, and neither are rows about a frame buffer.

use std::time::Duration;

use crate::bench::peer::Peer;
use crate::bench::report::malformed;
use crate::error::Error;

/// The size of its arrays, compiled in, as `terrace` reads it.
pub(super) const SIZE: &str = "32m";

/// Fifteen minutes were never seen.
const LIMIT: Duration = Duration::from_secs(1800);

/// Its fastest copy.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fastest {
    /// The name of the loop.
    pub(super) name: String,
    /// Its rate in GB/s.
    pub(super) rate: f64,
    /// The version that it prints.
    pub(super) version: Option<String>,
}

/// Runs it once, to its end.
pub(super) fn run(tinymembench: &Peer) -> Result<Fastest, Error> {
    parse(&tinymembench.run(&[], LIMIT)?.stdout)
}

fn parse(output: &str) -> Result<Fastest, Error> {
    let (name, rate) = output
        .lines()
        .filter_map(row)
        .filter(|(name, _)| {
            (name.contains("copy") || name.contains("memcpy")) && !name.contains("framebuffer")
        })
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .ok_or_else(|| malformed("tinymembench: no line of a copy".to_owned()))?;
    let version = output.lines().next().and_then(|line| line.split(" (").next());
    Ok(Fastest {
        name,
        rate: rate / 1e3,
        version: version.filter(|text| text.starts_with("tinymembench v")).map(str::to_owned),
    })
}

/// ` C copy    :  22648.2 MB/s (4.5%)`: the name and the rate in MB/s of 10^6.
fn row(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.split_once(" : ")?;
    let (rate, _) = rest.split_once("MB/s")?;
    Some((name.trim().to_owned(), rate.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tinymembench 0.4.9 prints; some rows are cut.
    const OUTPUT: &str = "\
tinymembench v0.4.9 (simple benchmark for memory throughput and latency)

==========================================================================
== Note 1: 1MB = 1000000 bytes                                          ==
==========================================================================

 C copy backwards                                     :  19828.5 MB/s (26.3%)
 C copy                                               :  22648.2 MB/s (4.5%)
 C fill                                               :  37538.7 MB/s (9.7%)
 ---
 standard memcpy                                      :  24300.0 MB/s (3.9%)
 standard memset                                      :  44790.6 MB/s
 ---
 MOVSB copy                                           :  28553.8 MB/s (6.1%)
 NEON copy (from framebuffer)                         :  99999.9 MB/s
";

    #[test]
    fn the_fastest_copy_is_found_and_no_fill() {
        let fastest = parse(OUTPUT).unwrap();
        assert_eq!(fastest.name, "MOVSB copy");
        assert!((fastest.rate - 28.5538).abs() < 1e-9);
        assert_eq!(fastest.version.as_deref(), Some("tinymembench v0.4.9"));
    }

    #[test]
    fn without_a_copy_there_is_no_result() {
        assert!(parse(" C fill   :  37538.7 MB/s (9.7%)\n").is_err());
    }
}
