//! The table of 2001: the same seven methods, size and passes, today's rate beside the published
//! ones, under both readings of their unit.

use super::plan::{ARTICLE_BYTES, MemoryCopyPlan, PASSES, percent};
use crate::description::Experiment;
use crate::error::Result;
use explain::copying::System;
use machine::Root;
use measure::Budget;
use measure::disturbance::Tally;
use measure::memory::classic::METHODS;
use measure::memory::classic::{self, ClassicPlan, ClassicRow};
use model::Estimate;
use model::estimate::Better;
use serde::Serialize;

/// The systems of the original, as its figures name them.
pub const SYSTEMS: [&str; 3] = ["Linux 2.2.16", "Linux 2.4.4", "Windows 2000"];

/// One method, today and in 2001.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The method's name.
    pub method: String,
    /// The median of the passes, copied bytes a second, each counted once.
    pub bytes_per_s: Estimate,
    /// All bytes over all time, as the original averaged.
    pub average_bytes_per_s: f64,
    /// The median over that of memcpy.
    pub of_memcpy: Option<f64>,
    /// Whether the target equalled its source at the end.
    pub verified: Option<bool>,
    /// The published figures.
    pub then: Vec<Then>,
}

/// A published figure, and its ratio to today's.
#[derive(Debug, Serialize)]
pub struct Then {
    /// The system's name.
    pub system: String,
    /// As it was published: which MB is not said.
    pub mb_per_s: f64,
    /// The figure over that of memcpy on the same system.
    pub of_memcpy: f64,
    /// How many times faster today is, if MB was 10^6 bytes.
    pub times_if_decimal: f64,
    /// As `times_if_decimal`, for 2^20.
    pub times_if_binary: f64,
}

/// Does what the program of 2001 did; no rows where there was no time for a pass.
///
/// # Errors
/// Where the memory cannot be had.
pub fn measure(
    root: &Root,
    experiment: &Experiment,
    plan: &MemoryCopyPlan,
    budget: &Budget,
) -> Result<(Vec<Row>, Tally)> {
    let plan = ClassicPlan {
        allocate_each_pass: false,
        locked: false,
        prepare: true,
        size_bytes: ARTICLE_BYTES,
        passes: PASSES,
        methods: METHODS.map(str::to_owned).to_vec(),
        budget: plan.share(percent::TABLE),
    };
    let report = classic::measure(&plan, root, budget)?;
    let all = systems(experiment);
    let memcpy_row = report.rows.iter().find(|row| row.method == METHODS[0]);
    let memcpy = memcpy_row.and_then(estimate);
    let rows = report.rows.iter().filter_map(|row| row_of(row, memcpy.as_ref(), &all));
    Ok((rows.collect(), report.tally))
}

/// The published rates of each system, in the order of the methods.
pub fn systems(experiment: &Experiment) -> Vec<System> {
    let of_system = |name: &str| {
        let figures = METHODS.map(|method| experiment.figure(&format!("{method}, {name}")));
        System {
            name: name.to_owned(),
            rates: figures.iter().flatten().map(|figure| figure.value).collect(),
        }
    };
    SYSTEMS.map(of_system).into()
}

fn estimate(row: &ClassicRow) -> Option<Estimate> {
    Estimate::from_values(&row.bytes_per_s, Better::Higher, 0)
}

fn row_of(row: &ClassicRow, memcpy: Option<&Estimate>, systems: &[System]) -> Option<Row> {
    let bytes_per_s = estimate(row)?;
    let number = METHODS.iter().position(|name| *name == row.method)?;
    let then = |system: &System| {
        let (rate, memcpy) = (*system.rates.get(number)?, *system.rates.first()?);
        Some(Then {
            system: system.name.clone(),
            mb_per_s: rate,
            of_memcpy: rate / memcpy,
            times_if_decimal: bytes_per_s.median / (rate * 1e6),
            times_if_binary: bytes_per_s.median / (rate * f64::from(1 << 20)),
        })
    };
    Some(Row {
        method: row.method.clone(),
        average_bytes_per_s: row.average_bytes_per_s,
        of_memcpy: memcpy.map(|memcpy| bytes_per_s.median / memcpy.median),
        verified: row.verified,
        then: systems.iter().filter_map(then).collect(),
        bytes_per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description;

    #[test]
    fn both_readings_of_the_unit_stand_beside() {
        let all = systems(&description::named("memory-copy-2001").unwrap());
        let classic = ClassicRow {
            method: "char".to_owned(),
            bytes_per_s: vec![169.683e8; 8],
            average_bytes_per_s: 169.683e8,
            verified: Some(true),
        };
        let row = row_of(&classic, None, &all).unwrap();
        assert!((row.then[0].times_if_decimal - 100.0).abs() < 1e-9);
        assert!((row.then[0].times_if_binary - 95.367).abs() < 1e-3);
        assert!((row.then[0].of_memcpy - 169.683 / 173.644).abs() < 1e-12);
        assert_eq!((row.then.len(), row.of_memcpy), (3, None));
    }
}
