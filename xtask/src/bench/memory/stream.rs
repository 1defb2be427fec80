//! STREAM's copy, from a program that was compiled for one size of array.
//!
//! STREAM counts what is read and what is written; a copied byte counts once here, so its rates are
//! halved. It prints the best and the average time of its passes, no median.

use std::time::Duration;

use crate::bench::peer::Peer;
use crate::bench::report::malformed;
use crate::error::Error;

/// Ten passes of four kernels over 1 GiB take seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Bytes of an element in the arrays, unless it was compiled with another type.
const ELEMENT_BYTES: u64 = 8;

/// What one run of STREAM says about copying.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Copied {
    /// Copied bytes over the average time of a pass, in GB/s.
    pub(super) mean: f64,
    /// Copied bytes over the shortest time of a pass, in GB/s.
    pub(super) best: f64,
    /// The version that it prints.
    pub(super) version: Option<String>,
}

/// Runs `stream`, which must be compiled for arrays of `size_bytes`.
pub(super) fn run(stream: &Peer, size_bytes: u64) -> Result<Copied, Error> {
    parse(&stream.run(&[], LIMIT)?.stdout, size_bytes)
}

fn parse(output: &str, size_bytes: u64) -> Result<Copied, Error> {
    let after = |start: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(start))?;
        Some(line.trim())
    };
    let wanted = size_bytes / ELEMENT_BYTES;
    let elements = after("Array size =").and_then(|text| text.split_whitespace().next());
    if elements != Some(wanted.to_string().as_str()) {
        let compiled = elements.unwrap_or("an unknown number of");
        return Err(malformed(format!(
            "STREAM is compiled for {compiled} elements; compile it with -DSTREAM_ARRAY_SIZE={wanted}"
        )));
    }
    let row: Vec<f64> = after("Copy:")
        .map(|row| row.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .unwrap_or_default();
    let [best_mb_per_s, mean_s, ..] = row.as_slice() else {
        return Err(malformed("STREAM: no line of Copy".to_owned()));
    };
    Ok(Copied {
        mean: size_bytes as f64 / mean_s / 1e9,
        best: best_mb_per_s / 2.0 / 1e3,
        version: after("STREAM version").map(|text| text.replace('$', "").trim().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As STREAM 5.10 prints, compiled for 16 MiB; the remarks between are cut.
    const OUTPUT: &str = "\
-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
Array size = 2097152 (elements), Offset = 0 (elements)
Memory per array = 16.0 MiB (= 0.0 GiB).
-------------------------------------------------------------
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           38706.7     0.001229     0.000867     0.001491
Scale:          37610.2     0.001186     0.000892     0.001510
-------------------------------------------------------------
";

    #[test]
    fn a_copied_byte_counts_once() {
        let copied = parse(OUTPUT, 16 << 20).unwrap();
        assert!((copied.best - 19.35335).abs() < 1e-9, "{copied:?}");
        assert!((copied.mean - 16_777_216.0 / 0.001229 / 1e9).abs() < 1e-9);
        assert_eq!(copied.version.as_deref(), Some("Revision: 5.10"));
    }

    #[test]
    fn another_size_than_asked_is_refused() {
        let error = parse(OUTPUT, 256 << 20).unwrap_err().to_string();
        assert!(error.contains("for 2097152 elements"), "{error}");
        assert!(error.contains("-DSTREAM_ARRAY_SIZE=33554432"), "{error}");
        assert!(parse("", 16 << 20).is_err());
        let cut = OUTPUT.replace("Copy:", "Copied:");
        assert!(parse(&cut, 16 << 20).is_err());
    }
}
