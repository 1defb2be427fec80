//! What the copy rates say: the best method, what libc leaves on the table, and
//! which rates cannot be true. Pure: rows in, rows and winners out.

use super::worker::{CACHED_BYTES, Measured};
use super::{CopyPlan, CopyReport, CopyRow, Winner, nature, operation_name};
use memops::{Family, Operation};
use model::Estimate;
use model::bytes::show_rate;

/// Adds the rows of one size to the report, and its winners.
pub(super) fn add_rows(
    report: &mut CopyReport,
    plan: &CopyPlan,
    names: &[String],
    size: u64,
    measured: Vec<Measured>,
) {
    let bytes = size as f64 * plan.threads as f64;
    let first = report.rows.len();
    for (name, measured) in names.iter().zip(measured) {
        let Measured { outcome, verified, failed } = measured;
        report.tally.merge(&outcome.tally);
        let mut rate = outcome.time_ns().map(|time| time.rate_of(bytes));
        let impossible = rate.as_ref().and_then(|rate| impossible(&report.rows, name, size, rate));
        if impossible.is_some() {
            rate = None;
        }
        let (operation, factor) = nature(name);
        let noisy = match (&failed, outcome.all_disturbed()) {
            (Some(error), _) => Some(format!("failed: {error}")),
            (None, true) => Some("something disturbed every trial".to_owned()),
            (None, false) => impossible,
        };
        report.rows.push(CopyRow {
            method: name.clone(),
            operation: operation_name(operation).to_owned(),
            size_bytes: size,
            bus_bytes_per_s: factor
                .filter(|_| size > CACHED_BYTES)
                .and_then(|factor| Some(rate.as_ref()?.median * factor)),
            bytes_per_s: rate,
            verified,
            noisy,
        });
    }
    report.winners.extend(winners(&report.rows[first..]));
}

/// The best of each size and operation.
pub(super) fn winners(rows: &[CopyRow]) -> Vec<Winner> {
    let same_size = rows.chunk_by(|a, b| a.size_bytes == b.size_bytes);
    let of_size = |rows| {
        let operations = [Operation::Copy, Operation::Read, Operation::Write];
        operations.into_iter().filter_map(move |operation| winner(rows, operation))
    };
    same_size.flat_map(of_size).collect()
}

fn winner(rows: &[CopyRow], operation: Operation) -> Option<Winner> {
    let name = operation_name(operation);
    let rated: Vec<(&CopyRow, &Estimate)> = rows
        .iter()
        .filter(|row| row.operation == name)
        .filter_map(|row| Some((row, row.bytes_per_s.as_ref()?)))
        .collect();
    let (row, best) = rated.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
    let libc = rated.iter().find(|(row, _)| is_libc(&row.method));
    Some(Winner {
        size_bytes: row.size_bytes,
        operation: name.to_owned(),
        method: row.method.clone(),
        bytes_per_s: best.median,
        over_libc: libc.map(|(_, rate)| best.median / rate.median),
        proven: libc.is_some_and(|(_, rate)| match (best.low, rate.high) {
            (Some(low), Some(high)) => low > high,
            _ => false,
        }),
    })
}

/// Why a rate cannot be true, if so: beyond the caches nothing is faster than the
/// same method was inside L2. Then the copies did not happen, or the clock lies.
fn impossible(rows: &[CopyRow], method: &str, size: u64, rate: &Estimate) -> Option<String> {
    if size <= CACHED_BYTES || is_cache_bypassing(method) {
        return None;
    }
    let near = rows
        .iter()
        .find(|row| row.method == method && row.size_bytes <= IN_L2_BYTES)?
        .bytes_per_s
        .as_ref()?;
    (rate.median > 1.5 * near.best).then(|| {
        format!(
            "cannot be true: {} from memory, {} from the cache",
            show_rate(rate.median),
            show_rate(near.best)
        )
    })
}

/// Two buffers of this size fit the L2 of every processor of the last ten years.
const IN_L2_BYTES: u64 = 64 << 10;

/// Non-temporal stores and line instructions are slower inside the caches.
fn is_cache_bypassing(name: &str) -> bool {
    name.contains("-nt") || name == "clzero"
}

fn is_libc(name: &str) -> bool {
    memops::find(name).is_some_and(|method| method.family() == Family::Libc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::estimate::Better;

    fn row(method: &str, size_bytes: u64, gb_per_s: f64) -> CopyRow {
        let values: Vec<f64> =
            (0..9).map(|i| gb_per_s * 1e9 * (1.0 + f64::from(i) / 1000.0)).collect();
        CopyRow {
            method: method.to_owned(),
            operation: "copy".to_owned(),
            size_bytes,
            bytes_per_s: Estimate::from_values(&values, Better::Higher, 0),
            bus_bytes_per_s: None,
            verified: true,
            noisy: None,
        }
    }

    #[test]
    fn memory_faster_than_the_cache_is_no_number() {
        let rows = [row("memcpy", 16 << 10, 100.0)];
        let rate = |gb_per_s| row("memcpy", 256 << 20, gb_per_s).bytes_per_s.unwrap();
        let judged = |gb_per_s| impossible(&rows, "memcpy", 256 << 20, &rate(gb_per_s));
        assert!(judged(200.0).unwrap().contains("201 GB/s from memory"));
        assert_eq!(judged(120.0), None);
        // Non-temporal stores may well be slower inside the caches.
        assert_eq!(impossible(&rows, "avx2-nt", 256 << 20, &rate(200.0)), None);
    }

    #[test]
    fn the_winner_is_proven_only_outside_the_error_bars() {
        let close = [row("memcpy", 1, 20.0), row("avx2-nt", 1, 20.05)];
        let far = [row("memcpy", 1, 20.0), row("avx2-nt", 1, 29.0)];
        let close = winner(&close, Operation::Copy).unwrap();
        let far = winner(&far, Operation::Copy).unwrap();
        assert!(!close.proven && far.proven);
        assert_eq!(far.method, "avx2-nt");
        assert!((far.over_libc.unwrap() - 1.45).abs() < 0.01);
        assert!(winner(&[], Operation::Copy).is_none());
    }
}
