//! Whatever numbers a survey hands over, no rule panics and no claim or piece of
//! evidence shows a number that is none.
//!
//! Two ways to odd numbers: recorded machines with some of their numbers replaced,
//! which reach deep into each rule, and whole machines of NaN, infinities and noise,
//! which JSON cannot hold.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be read must fail the test")]

use explain::observed::{
    CopySeen, FaultKind, FaultsSeen, NoiseSeen, Observed, PagesSeen, Recooled, SwapSeen,
    TranslationSeen,
};
use explain::{RULES, survey};
use model::histogram::Modes;
use model::knee::Edge;
use model::probe::{
    CacheLevel, DepthRate, DeviceReport, EdgeSearches, ProcessorLoad, RamDiskReport, SwapArea,
};
use model::{Covers, Estimate, Latency};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

fn judged_soundly(observed: &Observed) {
    let judgement = survey(observed);
    for finding in &judgement.findings {
        for bad in ["NaN", "inf", "-"] {
            let mut words = finding.claim.split_whitespace();
            let number = words.any(|word| word.starts_with(bad));
            assert!(!number, "{bad} in {}", finding.claim);
        }
        assert!(!finding.evidence.is_empty(), "{finding:?}");
        assert!(finding.evidence.iter().all(|e| e.value.is_finite()), "{finding:?}");
    }
    let found = judgement.findings.iter().map(|f| f.id.as_str());
    let fine = judgement.fine.iter().map(String::as_str);
    let unchecked = judgement.unchecked.iter().map(|u| u.id.as_str());
    let ids: std::collections::BTreeSet<&str> = found.chain(fine).chain(unchecked).collect();
    assert_eq!(ids.len(), RULES.len());
}

/// Where the numbers of `value` are, as JSON pointers.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                numbers(item, &format!("{at}/{i}"), found);
            }
        }
        Value::Object(parts) => {
            for (name, part) in parts {
                numbers(part, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn recorded(rule: Index) -> Value {
    let id = RULES[rule.index(RULES.len())].id;
    let path = format!("{}/fixtures/{id}-fires.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["observed"].clone()
}

/// A number for a field that may want a whole one or a fraction.
fn odd_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::from(0)),
        Just(Value::from(1)),
        Just(Value::from(u32::MAX)),
        Just(Value::from(u64::MAX)),
        Just(Value::from(-1.5)),
        Just(Value::from(1e300)),
        Just(Value::from(1e-300)),
        (1_u64..1 << 40).prop_map(Value::from),
        (0.0..4.0_f64).prop_map(Value::from),
        Just(Value::Null),
    ]
}

/// A stream of odd numbers that fills structs in the order of their fields.
struct Odd(Vec<f64>);

impl Odd {
    fn number(&mut self) -> f64 {
        self.0.pop().unwrap_or(1.0)
    }

    fn maybe(&mut self) -> Option<f64> {
        let number = self.number();
        (!number.to_bits().is_multiple_of(5)).then_some(number)
    }

    /// Saturates: NaN is 0, an infinity the largest whole number.
    fn whole(&mut self) -> u64 {
        self.number() as u64
    }

    fn flag(&mut self) -> bool {
        self.number().to_bits().is_multiple_of(2)
    }

    fn maybe_whole(&mut self) -> Option<u64> {
        self.maybe().map(|number| number as u64)
    }

    fn estimate(&mut self) -> Estimate {
        Estimate {
            median: self.number(),
            best: self.number(),
            low: self.maybe(),
            high: self.maybe(),
            spread: self.maybe(),
            trials: self.whole() as u32,
            discarded: self.whole() as u32,
            covers: Covers::WithinRun,
            runs: 1,
        }
    }

    fn latency(&mut self) -> Latency {
        Latency::from(&self.estimate())
    }

    fn fault_kind(&mut self) -> FaultKind {
        FaultKind {
            page_bytes: self.whole(),
            faults: self.whole(),
            p50_ns: self.maybe(),
            p99_ns: self.maybe(),
            modes: self.flag().then(|| Modes {
                fast_ns: self.number(),
                slow_ns: self.number(),
                slow_share: self.number(),
                valley_ns: self.number(),
            }),
            bytes_per_s: self.number(),
        }
    }

    fn faults(&mut self) -> FaultsSeen {
        FaultsSeen {
            base: Some(self.fault_kind()),
            huge: Some(self.fault_kind()),
            again_ns: self.maybe(),
            huge_again_ns: self.maybe(),
            recooled: Some(Recooled {
                waited_s: self.number(),
                before_slow_share: self.number(),
                after_slow_share: self.number(),
                after_p50_ns: self.maybe(),
                reported_to_host_bytes: self.maybe_whole(),
            }),
            virtualized: true,
        }
    }

    fn device(&mut self) -> DeviceReport {
        DeviceReport {
            rotational: Some(self.flag()),
            scheduler: Some(if self.flag() { "bfq" } else { "none" }.to_owned()),
            read_ahead_bytes: self.maybe_whole(),
            random_read_ns: Some(self.latency()),
            depth: (0..6)
                .map(|_| DepthRate {
                    depth: self.whole() as u32,
                    block_bytes: if self.flag() { 4096 } else { 1 << 20 },
                    requests_per_s: self.number(),
                    bytes_per_s: self.number(),
                    p50_ns: self.maybe(),
                })
                .collect(),
            read_bytes_per_s: Some(self.estimate()),
            write_bytes_per_s: Some(self.estimate()),
            series_spread: self.maybe(),
            served_by: "device".to_owned(),
            raw_read_ns: self.flag().then(|| self.latency()),
            raw_refused: None,
            virtualized: self.flag(),
            ..DeviceReport::default()
        }
    }

    fn processor(&mut self) -> ProcessorLoad {
        ProcessorLoad {
            steal_share: self.maybe(),
            run_delay_share: self.maybe(),
            throttled_periods: self.maybe_whole(),
            periods: self.maybe_whole(),
            throttled_s: self.maybe(),
            quota_cores: self.maybe(),
            cgroup: None,
            usable_cpus: self.whole() as u32,
            online_cpus: self.whole() as u32,
        }
    }

    fn copy(&mut self) -> CopySeen {
        CopySeen {
            size_bytes: self.whole(),
            libc: "glibc 2.36".to_owned(),
            libc_bytes_per_s: self.estimate(),
            best_method: "rep_movsb".to_owned(),
            best_bytes_per_s: self.estimate(),
            best_traffic_factor: self.number(),
            libc_traffic_factor: self.number(),
            libc_l3_bytes: self.maybe_whole(),
            beyond_caches: self.flag(),
        }
    }

    fn cache(&mut self) -> CacheLevel {
        CacheLevel {
            level: self.whole() as u8,
            measured: Some(Edge {
                fits_bytes: self.whole(),
                spills_bytes: self.whole(),
                below_ns: self.number(),
                above_ns: self.number(),
            }),
            sysfs_bytes: self.maybe_whole(),
            cpuid_bytes: self.maybe_whole(),
            libc_bytes: self.maybe_whole(),
            shared_by: self.maybe_whole().map(|count| count as u32),
            searches: self.flag().then(|| EdgeSearches {
                made: self.whole() as u32,
                found: self.whole() as u32,
                low_bytes: self.whole(),
                high_bytes: self.whole(),
            }),
        }
    }

    fn swap_area(&mut self) -> SwapArea {
        SwapArea {
            path: "/swapfile".to_owned(),
            device: None,
            size_bytes: self.whole(),
            used_bytes: self.whole(),
            rotational: Some(self.flag()),
            random_read_ns: self.maybe(),
            compressed: self.flag(),
            ..SwapArea::default()
        }
    }

    fn noise(&mut self) -> NoiseSeen {
        NoiseSeen {
            tier: "RAM".to_owned(),
            quantity: "copy".to_owned(),
            spread: self.number(),
            kept: self.whole() as u32,
            discarded: self.whole() as u32,
            run_delay_share: self.maybe(),
            steal_share: self.maybe(),
        }
    }

    fn observed(&mut self) -> Observed {
        Observed {
            copies: vec![self.copy(), self.copy()],
            faults: Some(self.faults()),
            caches: vec![self.cache(), self.cache()],
            pages: Some(PagesSeen {
                thp_setting: Some(if self.flag() { "never" } else { "always" }.to_owned()),
                asked_bytes: self.whole(),
                granted_bytes: self.maybe_whole(),
            }),
            translation: Some(TranslationSeen {
                size_bytes: self.whole(),
                base_ns: self.estimate(),
                huge_ns: self.estimate(),
                virtualized: self.flag(),
            }),
            devices: vec![self.device(), self.device()],
            ram_disks: vec![RamDiskReport {
                read_bytes_per_s: Some(self.estimate()),
                page_cache_read_bytes_per_s: Some(self.estimate()),
                ..RamDiskReport::default()
            }],
            processor: Some(self.processor()),
            swap: Some(SwapSeen {
                areas: vec![self.swap_area(), self.swap_area()],
                memory_bytes: self.whole(),
            }),
            noise: vec![self.noise(), self.noise()],
        }
    }
}

/// Any bit pattern, NaN and infinities among them, and numbers that are likely.
fn odd_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(1e18),
        0.0..1.0_f64,
        1.0..1e4_f64,
        1e4..1e12_f64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_recorded_machine_with_odd_numbers_is_judged_soundly(
        rule in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), odd_json()), 1..4),
    ) {
        let mut machine = recorded(rule);
        let mut places = Vec::new();
        numbers(&machine, "", &mut places);
        for (place, number) in changes {
            let mut changed = machine.clone();
            *changed.pointer_mut(&places[place.index(places.len())]).unwrap() = number;
            // A fraction in the place of a count does not fit: leave that one out.
            if serde_json::from_value::<Observed>(changed.clone()).is_ok() {
                machine = changed;
            }
        }
        judged_soundly(&serde_json::from_value(machine).unwrap());
    }

    #[test]
    fn a_machine_of_odd_numbers_is_judged_soundly(
        floats in prop::collection::vec(odd_float(), 320),
    ) {
        judged_soundly(&Odd(floats).observed());
    }
}
