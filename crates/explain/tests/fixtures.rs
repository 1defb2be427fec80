//! Every rule against recorded machines: `fixtures/<id>-fires.json` fires that rule
//! and no other; each `fixtures/<id>-near-miss*.json` is judged by it and found fine.
//!
//! A fixture tells its story, holds what was observed and, if it fires, the words
//! and numbers that its claim must say.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be read must fail the test")]

use explain::{NoFinding, Observed, RULES};
use model::Finding;
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    story: String,
    #[serde(default)]
    says: Vec<String>,
    observed: Observed,
}

/// The recorded machines of one rule.
struct Fixtures {
    fires: &'static str,
    near_misses: &'static [&'static str],
}

/// In the order of the rules.
const FIXTURES: [Fixtures; RULES.len()] = [
    Fixtures { fires: "processor_stolen-fires", near_misses: &["processor_stolen-near-miss"] },
    Fixtures {
        fires: "processor_throttled-fires",
        near_misses: &["processor_throttled-near-miss"],
    },
    Fixtures { fires: "processor_crowded-fires", near_misses: &["processor_crowded-near-miss"] },
    Fixtures { fires: "libc_copy_slow-fires", near_misses: &["libc_copy_slow-near-miss"] },
    Fixtures {
        fires: "memory_backed_lazily-fires",
        near_misses: &[
            "memory_backed_lazily-near-miss",
            "memory_backed_lazily-near-miss-bare-metal",
            "memory_backed_lazily-near-miss-steady",
        ],
    },
    Fixtures {
        fires: "memory_goes_cold_again-fires",
        near_misses: &["memory_goes_cold_again-near-miss"],
    },
    Fixtures {
        fires: "cache_size_differs-fires",
        near_misses: &["cache_size_differs-near-miss", "cache_size_differs-near-miss-neighbours"],
    },
    Fixtures {
        fires: "translation_costly-fires",
        near_misses: &["translation_costly-near-miss", "translation_costly-near-miss-noise"],
    },
    Fixtures { fires: "thp_off-fires", near_misses: &["thp_off-near-miss"] },
    Fixtures { fires: "thp_not_granted-fires", near_misses: &["thp_not_granted-near-miss"] },
    Fixtures {
        fires: "ram_disk_no_faster-fires",
        near_misses: &["ram_disk_no_faster-near-miss", "ram_disk_no_faster-near-miss-huge"],
    },
    Fixtures {
        fires: "swap_on_slow_device-fires",
        near_misses: &["swap_on_slow_device-near-miss", "swap_on_slow_device-near-miss-stick"],
    },
    Fixtures { fires: "no_swap-fires", near_misses: &["no_swap-near-miss"] },
    Fixtures {
        fires: "volume_limit_bandwidth-fires",
        near_misses: &[
            "volume_limit_bandwidth-near-miss",
            "volume_limit_bandwidth-near-miss-odd-figure",
            "volume_limit_bandwidth-near-miss-wavers",
        ],
    },
    Fixtures {
        fires: "volume_limit_requests-fires",
        near_misses: &[
            "volume_limit_requests-near-miss",
            "volume_limit_requests-near-miss-grows",
            "volume_limit_requests-near-miss-processor",
        ],
    },
    Fixtures {
        fires: "device_served_by_host_cache-fires",
        near_misses: &[
            "device_served_by_host_cache-near-miss",
            "device_served_by_host_cache-near-miss-flash",
        ],
    },
    Fixtures {
        fires: "device_flag_at_odds-fires",
        near_misses: &["device_flag_at_odds-near-miss", "device_flag_at_odds-near-miss-volume"],
    },
    Fixtures {
        fires: "device_scheduler_at_odds-fires",
        near_misses: &[
            "device_scheduler_at_odds-near-miss",
            "device_scheduler_at_odds-near-miss-guest",
        ],
    },
    Fixtures {
        fires: "device_read_ahead_at_odds-fires",
        near_misses: &[
            "device_read_ahead_at_odds-near-miss",
            "device_read_ahead_at_odds-near-miss-large",
        ],
    },
    Fixtures { fires: "result_noisy-fires", near_misses: &["result_noisy-near-miss"] },
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn fixture(name: &str) -> Fixture {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
    let fixture: Fixture = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(!fixture.story.is_empty(), "{name} tells no story");
    fixture
}

fn sentences(text: &str) -> usize {
    text.matches(". ").count() + 1
}

#[test]
fn every_rule_has_its_fixtures() {
    for (rule, of) in RULES.iter().zip(&FIXTURES) {
        let id = rule.id;
        assert_eq!(of.fires, format!("{id}-fires"));
        let prefix = format!("{id}-near-miss");
        assert!(!of.near_misses.is_empty(), "{id} has no near miss");
        assert!(of.near_misses.iter().all(|name| name.starts_with(&prefix)));
    }
}

#[test]
fn every_fixture_is_in_the_table() {
    let listed =
        |name: &str| FIXTURES.iter().any(|of| of.fires == name || of.near_misses.contains(&name));
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.strip_suffix(".json").is_some_and(listed), "{name}");
    }
}

#[test]
fn a_rule_fires_on_its_fixture_and_no_other_does() {
    for (rule, of) in RULES.iter().zip(&FIXTURES) {
        let fixture = fixture(of.fires);
        for other in &RULES {
            match other.judge(&fixture.observed) {
                Ok(found) => {
                    assert_eq!(other.id, rule.id, "fires on {}: {found:?}", rule.id);
                    assert_eq!(found.len(), 1, "{found:?}");
                    is_well_formed(rule.id, &found[0].finding, &fixture.says);
                }
                answer => assert_ne!(other.id, rule.id, "{answer:?}"),
            }
        }
    }
}

fn is_well_formed(id: &str, report: &Finding, says: &[String]) {
    assert_eq!(report.id, id);
    assert!(!says.is_empty(), "{id}: its fixture asks for no number");
    for words in says {
        assert!(report.claim.contains(words), "no {words:?} in {:?}", report.claim);
    }
    assert!(sentences(&report.claim) <= 2, "{}", report.claim);
    assert!(report.claim.ends_with('.'), "{}", report.claim);
    assert!(!report.evidence.is_empty());
    assert!(report.evidence.iter().all(|e| e.value.is_finite() && !e.source.is_empty()));
    if let Some(remedy) = &report.remedy {
        assert!(remedy.contains("Risk: "), "{id} names no risk: {remedy}");
    }
    if let Some(command) = &report.confirm {
        let command = command.strip_prefix("sudo ").unwrap_or(command);
        let probes = ["memcpy", "memlat", "faults", "compute", "iolat", "seqio"];
        let known = command.starts_with("terrace survey --path ")
            || probes.iter().any(|probe| *command == format!("terrace measure {probe}"));
        assert!(known, "{id} confirms by a command that does not exist: {command}");
    }
}

#[test]
fn a_near_miss_is_judged_and_nothing_is_found() {
    for (rule, of) in RULES.iter().zip(&FIXTURES) {
        for name in of.near_misses {
            let fixture = fixture(name);
            // Fine, not merely unchecked: else the fixture would prove nothing.
            assert_eq!(rule.judge(&fixture.observed), Err(NoFinding::Nothing), "{name}");
            let judgement = explain::survey(&fixture.observed);
            assert_eq!(judgement.findings, [], "{name}");
        }
    }
}

#[test]
fn each_rule_is_in_one_list_of_the_judgement() {
    for of in &FIXTURES {
        let judgement = explain::survey(&fixture(of.fires).observed);
        let mut ids: Vec<&str> = judgement.findings.iter().map(|f| f.id.as_str()).collect();
        ids.extend(judgement.fine.iter().map(String::as_str));
        ids.extend(judgement.unchecked.iter().map(|u| u.id.as_str()));
        ids.sort_unstable();
        let mut all: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        all.sort_unstable();
        assert_eq!(ids, all);
    }
}

#[test]
fn nothing_observed_nothing_found_and_each_rule_says_what_it_lacks() {
    let judgement = explain::survey(&Observed::default());
    assert_eq!(judgement.findings, []);
    assert_eq!(judgement.fine, [] as [String; 0]);
    assert_eq!(judgement.unchecked.len(), RULES.len());
    assert!(judgement.unchecked.iter().all(|u| !u.reason.is_empty()));
}

#[test]
fn what_was_observed_survives_json() {
    for of in &FIXTURES {
        let observed = fixture(of.fires).observed;
        let text = serde_json::to_string(&observed).unwrap();
        assert_eq!(serde_json::from_str::<Observed>(&text).unwrap(), observed);
    }
}

#[test]
fn every_rule_is_in_the_documentation() {
    let docs = include_str!("../../../docs/findings.md");
    for rule in &RULES {
        assert!(docs.contains(&format!("`{}`", rule.id)), "{}", rule.id);
    }
}
