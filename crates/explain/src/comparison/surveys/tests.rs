//! Surveys that differ in one figure: judged by ranks, by kept runs, or by their trials.
//! All are made of one tier.

use super::*;
use model::estimate::{Covers, Latency};
use model::survey::Cost;

/// A survey of one machine whose RAM has this latency.
fn survey(number: u64, latency_ns: f64) -> Survey {
    let mut tier = Tier::unseen("RAM", TierKind::Ram, "made");
    tier.latency_ns = Some(Latency {
        median: latency_ns,
        p50: None,
        p99: None,
        low: Some(latency_ns * 0.99),
        high: Some(latency_ns * 1.01),
        trials: 9,
        discarded: 0,
        covers: Covers::WithinRun,
    });
    Survey {
        schema: model::survey::SCHEMA.to_owned(),
        version: "0".to_owned(),
        started_unix_s: number,
        interrupted: false,
        tiers: vec![tier],
        findings: Vec::new(),
        fine: Vec::new(),
        unchecked: Vec::new(),
        skipped: Vec::new(),
        control_step_ns: None,
        curves: model::curves::Curves::default(),
        machine: MachineFacts::default(),
        cost: Cost::default(),
    }
}

fn all(from: u64, latencies: &[f64]) -> Vec<Survey> {
    let each = (from..).zip(latencies);
    each.map(|(number, latency)| survey(number, *latency)).collect()
}

const CALM: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];

#[test]
fn single_surveys_are_judged_by_those_that_are_kept() {
    let kept = all(1, &CALM);
    let slower = surveys(&[survey(20, 100.0)], &[survey(21, 112.0)], &kept);
    let item = &slower.items[0];
    assert_eq!((item.basis, item.verdict), (Basis::KeptRuns, DifferenceVerdict::Larger));
    assert_eq!(item.provable, Some(0.05));
    assert_eq!(slower.sentence, "1 of 1 figures differs: RAM latency 12 % larger (worse).");
    let same = surveys(&[survey(20, 100.0)], &[survey(21, 103.0)], &kept);
    assert_eq!(same.sentence, "No difference is proven in 1 figures.");
}

#[test]
fn a_survey_does_not_teach_the_noise_that_judges_it() {
    let mut kept = all(1, &CALM[..4]);
    kept.push(survey(21, 150.0));
    let judged = surveys(&[survey(20, 100.0)], &[survey(21, 150.0)], &kept);
    assert_eq!(judged.items[0].verdict, DifferenceVerdict::Larger);
}

#[test]
fn without_kept_surveys_the_trials_and_a_usual_noise_decide() {
    let kept = all(1, &CALM[..3]);
    let judged = |second| surveys(&[survey(20, 100.0)], &[survey(21, second)], &kept);
    let twelve = judged(112.0);
    assert_eq!(
        (twelve.items[0].basis, twelve.items[0].verdict),
        (Basis::Trials, DifferenceVerdict::Unproven)
    );
    assert!(twelve.notes[0].starts_with("Fewer than 4 other surveys"), "{:?}", twelve.notes);
    assert_eq!(judged(140.0).items[0].verdict, DifferenceVerdict::Larger);
    let mut wide = survey(21, 140.0);
    wide.tiers[0].latency_ns.as_mut().unwrap().low = Some(90.0);
    let judged = surveys(&[survey(20, 100.0)], &[wide], &kept);
    assert_eq!(judged.items[0].verdict, DifferenceVerdict::Unproven, "the trials do not agree");
}

#[test]
fn many_surveys_are_judged_by_ranks() {
    let second = CALM.map(|value| value * 1.15);
    let judged = surveys(&all(1, &CALM), &all(10, &second), &[]);
    assert_eq!(
        (judged.items[0].basis, judged.items[0].verdict),
        (Basis::Ranks, DifferenceVerdict::Larger)
    );
    assert!(judged.notes[0].starts_with("All surveys of one side are older"), "{:?}", judged.notes);
    let small = CALM.map(|value| value * 1.04);
    let judged = surveys(&all(1, &CALM), &all(10, &small), &[]);
    assert_eq!(judged.items[0].verdict, DifferenceVerdict::Unproven, "not worth naming");
}

#[test]
fn other_machines_lend_no_noise_and_a_missing_tier_is_not_judged() {
    let mut other = survey(21, 140.0);
    other.machine.cpu = Some("other".to_owned());
    other.tiers.push(Tier::unseen("L2 cache", TierKind::CpuCache, "made"));
    let judged = surveys(&[survey(20, 100.0)], &[other.clone()], &all(1, &CALM));
    assert_eq!(judged.items[0].basis, Basis::Trials);
    assert!(judged.notes[0].contains("different machines"), "{:?}", judged.notes);
    other.tiers.clear();
    let judged = surveys(&[survey(20, 100.0)], &[other], &[]);
    assert_eq!((judged.items[0].basis, judged.items[0].second), (Basis::Nothing, None));
    assert_eq!(judged.sentence, "Unproven: no figure can be judged.");
}
