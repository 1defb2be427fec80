//! What the copy rates say: the best method, what libc leaves on the table, and
//! which rates cannot be true. Pure: rows in, rows and winners out.

use super::worker::{CACHED_BYTES, Measured};
use super::{CopyPlan, CopyReport, CopyRow, Winner, nature, operation_name};
use crate::{Error, ErrorKind, Result};
use memops::{Group, Operation};
use model::{Bytes, Estimate};

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
        let Measured {
            outcome,
            verified,
            failed,
        } = measured;
        report.tally.merge(&outcome.tally);
        let rate = outcome.time_ns().map(|time| time.rate_of(bytes));
        let (operation, factor) = nature(name);
        let noisy = match (&failed, outcome.all_disturbed()) {
            (Some(error), _) => Some(format!("failed: {error}")),
            (None, true) => Some("something disturbed every trial".to_owned()),
            (None, false) => None,
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
    let rows = &report.rows[first..];
    let winners: Vec<Winner> = [Operation::Copy, Operation::Read, Operation::Write]
        .into_iter()
        .filter_map(|operation| winner(rows, operation))
        .collect();
    report.winners.extend(winners);
}

fn winner(rows: &[CopyRow], operation: Operation) -> Option<Winner> {
    let name = operation_name(operation);
    let rated: Vec<(&CopyRow, &Estimate)> = rows
        .iter()
        .filter(|row| row.operation == name)
        .filter_map(|row| Some((row, row.bytes_per_s.as_ref()?)))
        .collect();
    let (row, best) = rated
        .iter()
        .max_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
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

/// A rate beyond the caches that exceeds the one inside L2 cannot be: the copies
/// did not happen, or the clock lies.
pub(super) fn implausible(report: &CopyReport) -> Result<()> {
    let rate = |size: u64, method: &str| {
        report
            .rows
            .iter()
            .find(|row| row.size_bytes == size && row.method == method)
            .and_then(|row| row.bytes_per_s.as_ref())
    };
    let smallest = report.rows.first().map_or(0, |row| row.size_bytes);
    for row in report
        .rows
        .iter()
        .filter(|row| row.size_bytes > CACHED_BYTES)
    {
        let (Some(far), Some(near)) = (&row.bytes_per_s, rate(smallest, &row.method)) else {
            continue;
        };
        let cached = smallest <= 512 << 10 && !is_cache_bypassing(&row.method);
        if cached && far.median > 1.5 * near.best {
            return Err(Error::new(
                ErrorKind::Implausible,
                format!("trust {} at {}", row.method, Bytes(row.size_bytes)),
                "memory was faster than the cache: the copy or the clock is wrong",
            ));
        }
    }
    Ok(())
}

/// Non-temporal stores and line instructions are slower inside the caches.
fn is_cache_bypassing(name: &str) -> bool {
    name.contains("-nt") || name == "clzero"
}

fn is_libc(name: &str) -> bool {
    memops::find(name).is_some_and(|method| method.group() == Group::Libc)
}
