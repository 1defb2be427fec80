//! Forty groups of recorded surveys of one machine against each other, and against surveys that a
//! build made 15 % slower in memory: what is called different and is not, and what is found.
//!
//! The figures are those of the benchmark record of a calm machine, drawn anew from fixed seeds.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

use explain::comparison::surveys;
use model::compared::{Basis, ComparedFigure};
use model::comparison::DifferenceVerdict;
use model::estimate::{Better, Estimate, Latency};
use model::survey::{Cost, SCHEMA, Survey};
use model::{Tier, TierKind};
use serde_json::Value;

const RECORD: &str =
    include_str!("../../../benchmarks/record/2026-11-20-amd-epyc-linux-6.18.44-aa.json");

/// Surveys of each side, as many as the record has slowed ones.
const SIDE: usize = 5;

/// What comparisons are made of.
const COMPARISONS: u64 = 40;

/// The surveys of the record whose rows start with `prefix`, in the order in which they were made.
fn recorded(prefix: &str) -> Vec<Survey> {
    let record: Value = serde_json::from_str(RECORD).unwrap();
    let mut all: Vec<Survey> = Vec::new();
    for row in record["comparisons"].as_array().unwrap() {
        let what = row["what"].as_str().unwrap();
        let Some((what, _)) = what.split_once(" (noise ") else {
            continue;
        };
        let is_slowed = what.starts_with("slowed, ");
        if is_slowed == prefix.is_empty() {
            continue;
        }
        let (tier, figure) = what[prefix.len()..].rsplit_once(' ').unwrap();
        let values = row["ours"]["values"].as_array().unwrap();
        for (run, value) in values.iter().enumerate() {
            if all.len() == run {
                all.push(empty(run as u64 + u64::from(is_slowed) * 100));
            }
            put(&mut all[run], tier, figure, value.as_f64().unwrap());
        }
    }
    all
}

fn empty(started_unix_s: u64) -> Survey {
    Survey {
        schema: SCHEMA.to_owned(),
        version: "0".to_owned(),
        started_unix_s,
        interrupted: false,
        tiers: Vec::new(),
        findings: Vec::new(),
        fine: Vec::new(),
        unchecked: Vec::new(),
        skipped: Vec::new(),
        control_step_ns: None,
        curves: model::curves::Curves::default(),
        machine: model::machine::MachineFacts::default(),
        cost: Cost::default(),
    }
}

fn put(survey: &mut Survey, name: &str, figure: &str, value: f64) {
    if survey.tiers.iter().all(|tier| tier.name != name) {
        survey.tiers.push(Tier::unseen(name, TierKind::Ram, "recorded"));
    }
    let mut tiers = survey.tiers.iter_mut();
    let tier = tiers.find(|tier| tier.name == name).unwrap();
    let rate = Estimate::from_values(&[value], Better::Higher, 0);
    match figure {
        "latency" => tier.latency_ns = rate.as_ref().map(Latency::from),
        "read" => tier.read_bytes_per_s = rate,
        "write" => tier.write_bytes_per_s = rate,
        "copy" => tier.copy_bytes_per_s = rate,
        other => panic!("{other}"),
    }
}

/// Two groups that have no survey in common, by a linear congruential generator.
fn drawn(all: &[Survey], seed: u64) -> (Vec<Survey>, Vec<Survey>) {
    let mut state = seed;
    let mut left = all.to_vec();
    let mut draw = || {
        let each = (0..SIDE).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            left.swap_remove((state >> 33) as usize % left.len())
        });
        each.collect::<Vec<_>>()
    };
    (draw(), draw())
}

fn judged(first: &[Survey], second: &[Survey]) -> Vec<ComparedFigure> {
    let items = surveys(first, second, &[]).items;
    items.into_iter().filter(|item| item.basis == Basis::Ranks).collect()
}

#[test]
fn equal_groups_are_rarely_called_different_and_a_slowdown_is_found() {
    let (plain, slowed) = (recorded(""), recorded("slowed, "));
    assert_eq!((plain.len(), slowed.len()), (20, SIDE));
    let memory = ["L1 cache", "L2 cache", "L3 cache", "RAM"];
    let (mut called, mut all, mut found, mut slower) = (0, 0, 0, 0);
    for seed in 1..=COMPARISONS {
        let (first, second) = drawn(&plain, seed);
        let items = judged(&first, &second);
        all += items.len();
        called += items.iter().filter(|item| item.verdict != DifferenceVerdict::Unproven).count();
        for item in judged(&first, &slowed) {
            if item.name == "latency" && memory.contains(&item.of.as_str()) {
                slower += 1;
                found += usize::from(item.verdict == DifferenceVerdict::Larger);
            }
        }
    }
    assert!(all >= 900 && slower == 160, "{all} {slower}");
    assert!(called * 100 <= all * 5, "{called} of {all} equal figures");
    assert!(found * 100 >= slower * 90, "{found} of {slower} slowed figures");
}
