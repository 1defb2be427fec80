//! Remedies that are done already, grades that depend on what could be seen,
//! counter-explanations, and the order of findings.
//!
//! Each test starts from a recorded machine of `fixtures/` and changes one thing.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be read must fail the test")]

use explain::{Observed, survey};
use model::{Finding, Grade};
use serde_json::Value;

/// The observed part of a fixture as JSON, to be changed and read again.
fn machine(name: &str) -> Value {
    let path = format!("{}/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["observed"].clone()
}

fn findings(machine: &Value) -> Vec<Finding> {
    let observed: Observed = serde_json::from_value(machine.clone()).unwrap();
    survey(&observed).findings
}

fn only(machine: &Value) -> Finding {
    let mut found = findings(machine);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Adds the parts of `other` to `machine`: lists end to end, the rest as it is.
fn join(machine: &mut Value, other: Value) {
    for (name, part) in other.as_object().unwrap() {
        match machine.get_mut(name).and_then(Value::as_array_mut) {
            Some(list) => list.extend(part.as_array().unwrap().clone()),
            None => machine[name] = part.clone(),
        }
    }
}

#[test]
fn huge_pages_that_are_on_are_not_advised() {
    let mut machine = machine("translation_costly-fires");
    assert!(only(&machine).remedy.unwrap().contains("MADV_HUGEPAGE"));
    machine["pages"]["thp_setting"] = "always".into();
    assert_eq!(only(&machine).remedy, None);
}

#[test]
fn compressed_swap_that_is_there_is_not_advised() {
    let mut slow = machine("swap_on_slow_device-fires");
    assert!(only(&slow).remedy.unwrap().contains("zram"));
    let zram = machine("no_swap-near-miss")["swap"]["areas"][0].clone();
    slow["swap"]["areas"].as_array_mut().unwrap().push(zram);
    assert!(!only(&slow).remedy.unwrap().contains("zram"));
}

#[test]
fn swap_on_a_disk_of_unknown_latency_is_inferred_from_its_flag() {
    let mut machine = machine("swap_on_slow_device-fires");
    machine["swap"]["areas"][0]["random_read_ns"] = Value::Null;
    let found = only(&machine);
    assert_eq!(found.grade, Grade::Inferred);
    assert!(found.claim.contains("about 10 ms"), "{}", found.claim);
    machine["swap"]["areas"][0]["rotational"] = false.into();
    assert_eq!(findings(&machine), []);
}

#[test]
fn a_ram_disk_with_huge_pages_is_not_advised_to_use_them() {
    let mut machine = machine("ram_disk_no_faster-fires");
    assert!(only(&machine).remedy.unwrap().contains("huge=within_size"));
    for setting in [Value::from("always"), Value::Null] {
        machine["ram_disks"][0]["huge_setting"] = setting;
        assert!(!only(&machine).remedy.unwrap().contains("huge="));
    }
}

#[test]
fn a_larger_read_ahead_is_advised_always() {
    let mut machine = machine("device_read_ahead_at_odds-fires");
    // So far away that even two windows of 2 MiB are too little.
    for part in ["median", "low", "high", "p50"] {
        machine["devices"][0]["random_read_ns"][part] = 4.9e6.into();
    }
    for kib in [0, 4, 128, 1024, 2047] {
        machine["devices"][0]["read_ahead_bytes"] = (kib * 1024).into();
        let remedy = only(&machine).remedy.unwrap();
        let (_, command) = remedy.split_once("echo ").unwrap();
        let advised: u64 = command.split(' ').next().unwrap().parse().unwrap();
        assert!(advised > kib && advised <= 4096, "{kib}: {remedy}");
    }
}

#[test]
fn read_ahead_is_reckoned_from_the_latency() {
    let mut machine = machine("device_read_ahead_at_odds-fires");
    // Two windows of 128 KiB are 60 % of 1,074 MiB/s where an answer takes 388 us,
    // of which 116 us are the transfer.
    let mut away = |ns: f64| {
        let latency = &mut machine["devices"][0]["random_read_ns"];
        for part in ["median", "low", "high", "p50"] {
            latency[part] = ns.into();
        }
        findings(&machine).len()
    };
    assert_eq!((away(42e3), away(265e3), away(280e3)), (0, 0, 1));
}

#[test]
fn a_flag_behind_a_host_is_certain_only_by_raw_reads() {
    let mut machine = machine("device_flag_at_odds-fires");
    assert_eq!(only(&machine).grade, Grade::Measured);
    machine["devices"][0]["raw_read_ns"] = Value::Null;
    assert_eq!(only(&machine).grade, Grade::Inferred);
    machine["devices"][0]["served_by"] = "page cache".into();
    assert_eq!(findings(&machine), []);
}

#[test]
fn memory_is_known_to_go_back_only_by_the_kernels_count() {
    let mut machine = machine("memory_goes_cold_again-fires");
    assert_eq!(only(&machine).grade, Grade::Measured);
    machine["faults"]["recooled"]["reported_to_host_bytes"] = Value::Null;
    assert_eq!(only(&machine).grade, Grade::Inferred);
}

#[test]
fn new_memory_that_is_slow_as_a_whole_is_found_without_two_modes() {
    let mut machine = machine("memory_backed_lazily-fires");
    machine["faults"]["base"]["modes"] = Value::Null;
    machine["faults"]["base"]["p50_ns"] = 10_400.0.into();
    let found = only(&machine);
    assert!(found.claim.contains("10.4 us"), "{}", found.claim);
    machine["faults"]["again_ns"] = 2_700.0.into();
    assert_eq!(findings(&machine), [], "3.9 times is not enough");
}

#[test]
fn a_host_that_makes_room_is_distinguished() {
    let mut machine = machine("memory_backed_lazily-fires");
    assert!(only(&machine).claim.contains("first touched"));
    machine["faults"]["base"]["modes"]["slow_ns"] = 99_000.0.into();
    assert!(only(&machine).claim.contains("first touched"));
    machine["faults"]["base"]["modes"]["slow_ns"] = 101_000.0.into();
    assert!(only(&machine).claim.contains("short of memory"));
}

/// Seen on an idle guest: L2 measured as 426 KiB, 1 MiB and 341 KiB within three minutes.
#[test]
fn less_of_a_cache_than_claimed_is_not_a_wrong_claim() {
    let mut machine = machine("cache_size_differs-near-miss");
    // The last one is the edge of L2, taken for that of L1, which noise hid.
    for (index, fits_kib) in [(2, 341), (2, 426), (1, 4096), (0, 1024)] {
        let mut smaller = machine.clone();
        let edge = &mut smaller["caches"][index]["measured"];
        edge["fits_bytes"] = (fits_kib << 10).into();
        edge["spills_bytes"] = ((fits_kib + fits_kib / 4) << 10).into();
        let found = findings(&smaller);
        assert!(found.is_empty(), "{fits_kib} KiB: {found:?}");
    }
    // More than claimed, and nearer to this level than to the next.
    let edge = &mut machine["caches"][1]["measured"];
    edge["fits_bytes"] = (64_u64 << 20).into();
    edge["spills_bytes"] = (80_u64 << 20).into();
    // One search calls the C library wrong, and not the hardware.
    let found = only(&machine);
    assert!(found.claim.contains("the C library (24 MiB) is wrong"), "{}", found.claim);
    machine["caches"][1]["searches"] = serde_json::json!({
        "made": 2, "found": 2, "low_bytes": 64_u64 << 20, "high_bytes": 64_u64 << 20,
    });
    let found = only(&machine);
    assert!(found.claim.contains("(24 MiB) are wrong"), "{}", found.claim);
}

/// The time of a quick survey may be over before the second search.
#[test]
fn an_edge_that_was_found_once_is_inferred() {
    let mut machine = machine("cache_size_differs-fires");
    let grade = |machine: &serde_json::Value| only(machine).grade;
    let edge = machine["caches"][2]["measured"]["fits_bytes"].clone();
    for (made, found, expected) in
        [(1, 1, Grade::Inferred), (2, 1, Grade::Inferred), (2, 2, Grade::Measured)]
    {
        machine["caches"][2]["searches"] = serde_json::json!({
            "made": made, "found": found, "low_bytes": edge, "high_bytes": edge,
        });
        assert_eq!(grade(&machine), expected, "{made} {found}");
    }
    machine["caches"][2]["searches"] = serde_json::Value::Null;
    assert_eq!(grade(&machine), Grade::Inferred);
}

/// The first search found more than is claimed, the next one less.
#[test]
fn an_edge_that_moves_blames_only_what_cannot_be() {
    let mut machine = machine("cache_size_differs-near-miss");
    let cache = &mut machine["caches"][1];
    cache["measured"]["fits_bytes"] = (64_u64 << 20).into();
    cache["measured"]["spills_bytes"] = (80_u64 << 20).into();
    cache["shared_by"] = 16.into();
    let searches = |found: u32, low_mib: u64| {
        serde_json::json!({
            "made": 2, "found": found, "low_bytes": low_mib << 20, "high_bytes": 64_u64 << 20,
        })
    };
    for (found, low_mib, expected) in [(2, 16, 0), (1, 64, 0), (2, 64, 1)] {
        let mut moved = machine.clone();
        moved["caches"][1]["searches"] = searches(found, low_mib);
        assert_eq!(findings(&moved).len(), expected, "{found} {low_mib}");
    }
    machine["caches"][1]["searches"] = searches(2, 16);
    machine["caches"][1]["libc_bytes"] = (384_u64 << 20).into();
    let found = only(&machine);
    let claim = &found.claim;
    assert!(claim.contains("between 16 MiB and 64 MiB"), "{claim}");
    assert!(claim.contains("the C library (384 MiB) is wrong"), "{claim}");
    let shared = |piece: &model::Evidence| piece.source == "shared_cpu_list" && piece.value == 16.0;
    assert!(found.evidence.iter().any(shared), "{:?}", found.evidence);
}

#[test]
fn the_one_who_is_wrong_is_named() {
    let mut machine = machine("cache_size_differs-near-miss");
    machine["caches"][1]["libc_bytes"] = (384_u64 << 20).into();
    let found = only(&machine);
    assert_eq!(found.tier.as_deref(), Some("L3 cache"));
    let claim = found.claim;
    assert!(claim.contains("the C library (384 MiB) is wrong"), "{claim}");
    assert!(claim.contains("sysfs (32 MiB) and CPUID (32 MiB) are near"), "{claim}");
}

#[test]
fn noise_names_its_cause() {
    let mut machine = machine("result_noisy-fires");
    assert!(only(&machine).claim.contains("other programs"));
    for noise in machine["noise"].as_array_mut().unwrap() {
        noise["run_delay_share"] = 0.0.into();
    }
    machine["noise"][2]["run_delay_share"] = 0.019.into();
    let unknown = only(&machine);
    assert!(unknown.claim.contains("no counter says why"), "{}", unknown.claim);
    assert_eq!((unknown.grade, unknown.remedy), (Grade::Measured, None));
    machine["noise"][2]["steal_share"] = 0.09.into();
    let found = findings(&machine);
    assert_eq!(found.len(), 2, "one for each cause: {found:?}");
    assert!(found[0].claim.contains("the host took 9 %"));
    join(&mut machine, self::machine("processor_throttled-fires"));
    let claims: Vec<String> = findings(&machine).into_iter().map(|f| f.claim).collect();
    assert!(claims.iter().any(|c| c.contains("CPU limit stopped 93.1 %")), "{claims:?}");
}

#[test]
fn a_result_that_had_to_be_thrown_away_is_noisy_without_a_spread() {
    let mut machine = machine("result_noisy-near-miss");
    machine["noise"][2]["discarded"] = 3.into();
    let claim = only(&machine).claim;
    assert!(claim.contains("3 of 6 had to be thrown away"), "{claim}");
}

#[test]
fn too_few_trials_for_error_bars_are_not_judged() {
    let mut machine = machine("libc_copy_slow-fires");
    for copy in machine["copies"].as_array_mut().unwrap() {
        copy["best_bytes_per_s"]["low"] = Value::Null;
    }
    let observed: Observed = serde_json::from_value(machine).unwrap();
    let judgement = survey(&observed);
    assert_eq!(judgement.findings, []);
    assert!(!judgement.fine.contains(&"libc_copy_slow".to_owned()));
}

#[test]
fn a_limit_of_requests_is_no_limit_of_bandwidth() {
    // 120 requests of 1 MiB a second are flat and round as bytes, too.
    let mut machine = machine("volume_limit_bandwidth-fires");
    let depth = machine["devices"][0]["depth"].as_array_mut().unwrap();
    for point in depth.iter_mut().filter(|p| p["block_bytes"] == 4096) {
        let in_flight = point["depth"].as_f64().unwrap();
        point["requests_per_s"] = 119.2.into();
        point["bytes_per_s"] = (119.2 * 4096.0).into();
        point["p50_ns"] = (8.4e6 * in_flight).into();
    }
    assert_eq!(only(&machine).id, "volume_limit_requests");
}

#[test]
fn a_path_is_quoted_in_the_command_that_confirms() {
    let mut machine = machine("volume_limit_bandwidth-fires");
    machine["devices"][0]["path"] = "/my data".into();
    let confirm = only(&machine).confirm.unwrap();
    assert_eq!(confirm, "terrace survey --path '/my data'");
}

#[test]
fn what_hurts_most_comes_first() {
    let mut all = machine("no_swap-fires");
    for name in ["result_noisy", "libc_copy_slow", "memory_backed_lazily", "processor_stolen"] {
        join(&mut all, machine(&format!("{name}-fires")));
    }
    let order: Vec<String> = findings(&all).into_iter().map(|f| f.id).collect();
    let expected =
        ["processor_stolen", "memory_backed_lazily", "libc_copy_slow", "result_noisy", "no_swap"];
    assert_eq!(order, expected);
}

/// One threshold: a recorded machine, the rule, and the values that are put at
/// these places of the JSON, first so that it just fires, then so that it just
/// does not.
type Threshold = (&'static str, &'static str, &'static [(&'static str, f64, f64)]);

const MIB: f64 = 1_048_576.0;

const THRESHOLDS: &[Threshold] = &[
    (
        "libc_copy_slow-fires",
        "libc_copy_slow",
        &[
            ("/copies/1/best_bytes_per_s/median", 47.0e9, 46.7e9),
            ("/copies/1/best_bytes_per_s/low", 46.0e9, 46.0e9),
            ("/copies/1/best_bytes_per_s/high", 48.0e9, 48.0e9),
            ("/copies/2/best_bytes_per_s/low", 20.4e9, 20.4e9),
        ],
    ),
    (
        "memory_backed_lazily-fires",
        "memory_backed_lazily",
        &[("/faults/base/modes/slow_share", 0.051, 0.049)],
    ),
    (
        "memory_backed_lazily-fires",
        "memory_backed_lazily",
        &[("/faults/base/faults", 200.0, 199.0)],
    ),
    (
        "memory_backed_lazily-fires",
        "memory_backed_lazily",
        &[
            ("/faults/base/modes/slow_ns", 4700.0, 4300.0),
            ("/faults/base/modes/fast_ns", 1100.0, 1100.0),
        ],
    ),
    (
        "memory_goes_cold_again-fires",
        "memory_goes_cold_again",
        &[("/faults/recooled/after_slow_share", 0.263, 0.261)],
    ),
    (
        "translation_costly-fires",
        "translation_costly",
        &[
            ("/translation/base_ns/median", 237.0, 235.0),
            ("/translation/base_ns/low", 230.0, 230.0),
            ("/translation/base_ns/high", 240.0, 240.0),
        ],
    ),
    (
        "thp_not_granted-fires",
        "thp_not_granted",
        &[("/pages/granted_bytes", 191.0 * MIB, 193.0 * MIB)],
    ),
    ("thp_not_granted-fires", "thp_not_granted", &[("/pages/asked_bytes", 64.0 * MIB, 62.0 * MIB)]),
    (
        "device_flag_at_odds-fires",
        "device_flag_at_odds",
        &[
            ("/devices/0/raw_read_ns/median", 1.9e6, 1.9e6),
            ("/devices/0/raw_read_ns/high", 1.99e6, 2.01e6),
        ],
    ),
    (
        // Called not rotating: slower than flash, and a deep queue gains 3 times.
        "device_flag_at_odds-near-miss-volume",
        "device_flag_at_odds",
        &[("/devices/0/depth/2/requests_per_s", 497.0, 499.0)],
    ),
    (
        "device_flag_at_odds-near-miss-volume",
        "device_flag_at_odds",
        &[
            ("/devices/0/depth/2/requests_per_s", 200.0, 200.0),
            ("/devices/0/random_read_ns/low", 5.01e6, 4.99e6),
        ],
    ),
    (
        "device_scheduler_at_odds-fires",
        "device_scheduler_at_odds",
        &[("/devices/0/random_read_ns/high", 199e3, 201e3)],
    ),
    (
        "device_read_ahead_at_odds-fires",
        "device_read_ahead_at_odds",
        &[
            ("/devices/0/random_read_ns/median", 272e3, 270e3),
            ("/devices/0/random_read_ns/low", 260e3, 260e3),
        ],
    ),
    (
        "device_served_by_host_cache-fires",
        "device_served_by_host_cache",
        &[
            ("/devices/0/raw_read_ns/median", 256e3, 254e3),
            ("/devices/0/raw_read_ns/low", 240e3, 240e3),
        ],
    ),
    (
        "volume_limit_bandwidth-fires",
        "volume_limit_bandwidth",
        &[("/devices/0/series_spread", 0.049, 0.051)],
    ),
    (
        "volume_limit_bandwidth-fires",
        "volume_limit_bandwidth",
        &[
            ("/devices/0/depth/3/bytes_per_s", 119.0e6, 118.0e6),
            ("/devices/0/depth/4/bytes_per_s", 119.0e6, 118.0e6),
        ],
    ),
    (
        "volume_limit_requests-fires",
        "volume_limit_requests",
        &[("/devices/0/depth/2/p50_ns", 18.7e6, 18.5e6)],
    ),
    (
        "volume_limit_requests-fires",
        "volume_limit_requests",
        &[
            ("/devices/0/depth/0/requests_per_s", 950.0, 940.0),
            ("/devices/0/depth/1/requests_per_s", 950.0, 940.0),
        ],
    ),
    (
        "volume_limit_requests-near-miss-processor",
        "volume_limit_requests",
        &[
            ("/devices/0/depth/1/requests_per_s", 49.9e3, 50.1e3),
            ("/devices/0/depth/2/requests_per_s", 49.9e3, 50.1e3),
        ],
    ),
    (
        "ram_disk_no_faster-fires",
        "ram_disk_no_faster",
        &[("/ram_disks/0/read_bytes_per_s/high", 13.3e9, 13.4e9)],
    ),
    ("processor_stolen-fires", "processor_stolen", &[("/processor/steal_share", 0.051, 0.049)]),
    (
        "processor_throttled-fires",
        "processor_throttled",
        &[("/processor/throttled_periods", 21.0, 20.0)],
    ),
    (
        "processor_throttled-fires",
        "processor_throttled",
        &[("/processor/throttled_periods", 9.0, 9.0), ("/processor/periods", 10.0, 9.0)],
    ),
    (
        "processor_crowded-fires",
        "processor_crowded",
        &[("/processor/run_delay_share", 0.101, 0.099)],
    ),
    (
        "swap_on_slow_device-fires",
        "swap_on_slow_device",
        &[("/swap/areas/0/random_read_ns", 1.01e6, 0.99e6)],
    ),
    ("result_noisy-near-miss", "result_noisy", &[("/noise/1/spread", 0.21, 0.19)]),
    ("result_noisy-near-miss", "result_noisy", &[("/noise/1/discarded", 14.0, 13.0)]),
    ("result_noisy-near-miss", "result_noisy", &[("/noise/2/kept", 4.0, 3.0)]),
];

#[test]
fn each_threshold_holds_from_both_sides() {
    for (name, id, places) in THRESHOLDS {
        let (mut over, mut under) = (machine(name), machine(name));
        for &(place, fires, misses) in *places {
            for (machine, value) in [(&mut over, fires), (&mut under, misses)] {
                let slot = machine.pointer_mut(place).unwrap();
                // A whole number stays one, so that it fits a count.
                *slot = match slot {
                    Value::Number(old) if old.is_u64() => (value as u64).into(),
                    _ => value.into(),
                };
            }
        }
        let fires = |machine: &Value| findings(machine).iter().any(|f| f.id == *id);
        assert!(fires(&over), "{name} with {places:?} should fire");
        assert!(!fires(&under), "{name} with {places:?} should not fire");
    }
}
