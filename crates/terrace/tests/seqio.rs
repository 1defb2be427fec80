//! `terrace measure seqio PATH`: the four phases, a full disk, a user's file, and that
//! nothing is left behind.

mod support;

use support::{KILLED, probe_csv, probe_json, signalled, terrace};
use testkit::{TempDir, Tmpfs};

#[test]
fn write_sync_cold_and_cached_read_each_have_a_rate() {
    let directory = TempDir::new();
    for mode in ["--quick", "--direct --quick"] {
        let json =
            probe_json("seqio", &format!("{} --size 16m {mode}", directory.path().display()));
        let phases = json["result"]["phases"].as_array().unwrap();
        let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["write", "sync", "cold_read", "cached_read"]);
        assert!(phases.iter().all(|phase| phase["complete"] == true), "{json}");
        assert!(json["result"]["durable_bytes_per_s"].as_f64().unwrap() > 1e5);
        assert_eq!(json["cost"]["written_bytes"], 16 << 20);
    }
    assert!(directory.names().is_empty());
}

/// The first write goes into memory that may be new to this machine: it is no part of the others'
/// interval.
#[test]
fn several_runs_have_intervals_and_the_first_write_apart() {
    let directory = TempDir::new();
    let line = format!("{} --size 16m --runs 8 --over 0", directory.path().display());
    let json = probe_json("seqio", &line);
    let phases = json["result"]["phases"].as_array().unwrap();
    let of = |name: &str| phases.iter().find(|phase| phase["name"] == name).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first_write", "write", "sync", "cold_read", "cached_read"]);
    let runs = |name: &str| of(name)["rate"]["runs"].as_u64().unwrap();
    assert_eq!((runs("first_write"), runs("write"), runs("cold_read")), (1, 7, 8));
    for name in ["write", "sync", "cold_read", "cached_read"] {
        let rate = &of(name)["rate"];
        let figure = |end: &str| rate[end].as_f64().unwrap();
        assert!(figure("low") <= figure("median") && figure("median") <= figure("high"), "{rate}");
        assert_eq!(rate["covers"], "between_runs");
    }
    assert_eq!(json["cost"]["written_bytes"], 128 << 20);
    // Past the cache no page is new.
    let json = probe_json("seqio", &format!("{line} --direct"));
    assert_eq!(json["result"]["phases"][0]["name"], "write");
    assert!(directory.names().is_empty());
}

#[test]
fn the_table_is_rectangular_csv() {
    let directory = TempDir::new();
    let rows =
        probe_csv("seqio", &format!("{} --size 4m --bs 64k --over 0", directory.path().display()));
    assert_eq!(rows.len(), 5);
}

#[test]
fn a_file_of_the_users_is_only_read() {
    let directory = TempDir::new();
    let file = directory.join("mine");
    let contents = vec![9_u8; 4 << 20];
    std::fs::write(&file, &contents).unwrap();
    let page = terrace(&format!("measure seqio {} --size 4m --quick", file.display())).done();
    assert!(page.contains("read") && !page.contains("write  "), "{page}");
    assert_eq!(std::fs::read(&file).unwrap(), contents);
}

#[test]
fn a_full_disk_is_one_line() {
    let small = match Tmpfs::mount(1 << 20) {
        Ok(small) => small,
        Err(need) => return testkit::skip(need),
    };
    let ran = terrace(&format!("measure seqio {} --size 1g --bs 1m", small.path().display()));
    assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
    assert_eq!(ran.err.lines().filter(|line| line.starts_with("terrace: ")).count(), 1, "{ran:?}");
}

#[test]
fn ctrl_c_and_a_kill_leave_nothing() {
    let directory = TempDir::new();
    for (signal, codes) in [("INT", [Some(1), Some(1)]), ("KILL", KILLED)] {
        // Small requests, so that it is still writing when the signal comes.
        let line = "measure seqio --size 4g --bs 4k --direct --iodepth 1 --budget 1h";
        let ran = signalled(line, &[directory.path().as_os_str()], signal, "2");
        assert!(codes.contains(&ran.code), "{ran:?}");
        assert!(directory.names().is_empty());
    }
}
