//! `terrace measure iolat PATH`: ioping's options, who served, what is refused, and that
//! neither a user's file is changed nor a file left behind.

mod support;

use serde_json::json;
use std::path::Path;
use support::{
    KILLED, as_ordinary_user, assert_interrupted, probe_csv, probe_json, run, signalled, terrace,
};
use testkit::{TempDir, Tmpfs};

fn at(path: &Path, options: &str) -> String {
    format!("{} {options}", path.display())
}

#[test]
fn as_many_requests_as_asked_with_percentiles() {
    let directory = TempDir::new();
    let json = probe_json("iolat", &at(directory.path(), "-c 200 -i 0 -S 8m"));
    let paces = json["result"]["paces"].as_array().unwrap();
    assert_eq!(paces.len(), 1, "{json}");
    assert_eq!((&paces[0]["requests"], &paces[0]["failed"]), (&json!(200), &json!(0)));
    assert_eq!(json["result"]["runs"]["asked"], 1, "as many as were asked for");
    let latency = &paces[0]["latency"];
    assert!(latency["p99_ns"].as_f64() >= latency["p50_ns"].as_f64());
    assert!(latency["p99_9_ns"].is_null(), "200 requests have no p99.9");
    assert_eq!(json["cost"]["written_bytes"], 8 << 20);
    assert!(directory.names().is_empty());
}

#[test]
fn the_row_is_csv() {
    let directory = TempDir::new();
    assert_eq!(probe_csv("iolat", &at(directory.path(), "-c 20 -i 0 -S 4m -C"))[0][1], "cached");
}

#[test]
fn the_short_options_of_ioping_are_understood() {
    let directory = TempDir::new();
    let page = terrace(&format!(
        "measure iolat {}",
        at(directory.path(), "-c 10 -i 1ms -s 8k -S 4m -w 5s -W -q")
    ))
    .done();
    assert!(page.contains("write of 8 KiB"), "{page}");
    assert!(page.contains("min/avg/max/mdev") && page.contains("served"), "{page}");
    assert!(!page.contains('#'), "-q leaves the histogram out: {page}");
}

/// Back to back and paced differ fourfold on a machine that falls asleep: both are there, each with
/// its interval between runs, and the rate is what was done.
#[test]
fn both_paces_are_there_with_intervals_and_the_rate_that_was_made() {
    let directory = TempDir::new();
    let json = probe_json("iolat", &at(directory.path(), "-S 8m -w 8s"));
    let paces = json["result"]["paces"].as_array().unwrap();
    assert_eq!(paces.len(), 2, "{json}");
    assert_eq!((&paces[0]["interval_s"], &paces[1]["interval_s"]), (&json!(0.0), &json!(0.01)));
    for pace in paces {
        let figure = |path: &str| pace.pointer(path).and_then(serde_json::Value::as_f64).unwrap();
        let (low, high) = (figure("/latency/p50_low_ns"), figure("/latency/p50_high_ns"));
        assert!(low <= figure("/latency/p50_ns") && figure("/latency/p50_ns") <= high, "{pace}");
        assert_eq!(pace["latency"]["covers"], "between_runs");
        let made = figure("/requests") / figure("/wall_s");
        let stated = figure("/requests_per_s/median");
        // The median of the runs beside the mean of all; 50 times too many were seen.
        assert!((0.3..3.0).contains(&(stated / made)), "{stated} a second, {made} were made");
    }
    // One each 10 ms is never more than 100 a second, but for the first.
    assert!(paces[1]["requests_per_s"]["median"].as_f64().unwrap() < 115.0, "{json}");
    // A busy machine may leave no time for one or two.
    assert!(json["result"]["runs"]["counted"].as_u64().unwrap() >= 6, "{json}");
    let page = terrace(&format!("measure iolat {}", at(directory.path(), "-S 8m -w 4s -q"))).done();
    let first = page.lines().next().unwrap();
    assert!(first.contains("back to back, then one request each 10 ms"), "{page}");
    assert!(page.contains("+- is between "), "{page}");
    let line = at(directory.path(), "-S 8m -i 10ms -w 500ms -q --quick");
    let page = terrace(&format!("measure iolat {line}")).done();
    assert!(page.lines().next().unwrap().contains("iolat: one request each 10 ms"), "{page}");
    assert!(page.contains("+- is within this run"), "{page}");
    assert!(directory.names().is_empty());
}

/// Containers often close io_uring, and the probe says so.
fn has_queues(directory: &TempDir) -> bool {
    let tried =
        terrace(&format!("measure iolat {}", at(directory.path(), "--iodepth 2 -S 1m -w 100ms")));
    let is_closed = tried.code == Some(3) && tried.err.contains("cannot set up an I/O queue");
    if is_closed {
        testkit::skip("io_uring");
    }
    !is_closed
}

#[test]
fn several_requests_are_kept_in_flight() {
    let directory = TempDir::new();
    if !has_queues(&directory) {
        return;
    }
    // A third of the time at most is for filling the file.
    let line = at(directory.path(), "--iodepth 16 -S 8m -w 5s --quick");
    let json = probe_json("iolat", &line);
    let line = at(directory.path(), "--iodepth 16 -S 8m -w 1s --quick");
    let random = &json["result"]["random"];
    assert_eq!(random["depth"], 16);
    assert_eq!(random["block_bytes"], 4096);
    let requests = random["requests"].as_f64().unwrap();
    assert_eq!(random["latency"]["requests"], requests as u64);
    // Little's law: what is in flight is the rate times the time of each.
    let rate = requests / random["wall_s"].as_f64().unwrap();
    let in_flight = rate * random["latency"]["mean_ns"].as_f64().unwrap() / 1e9;
    assert!((8.0..17.0).contains(&in_flight), "{in_flight}: {random}");
    assert!(random["cpu_ns_per_request"].as_f64().unwrap() > 0.0);
    assert_eq!(json["cost"]["written_bytes"], 8 << 20);
    assert!(directory.names().is_empty());

    let page = terrace(&format!("measure iolat {line} -q")).done();
    for words in ["16 in flight", "a second", "p50/p90/p99", "processor time a request"] {
        assert!(page.contains(words), "{page}");
    }
    assert_eq!(probe_csv("iolat", &line)[0][1], "16");
}

/// One in flight is the same way with one only if it is asked for as such.
#[test]
fn one_in_flight_is_random_only_with_direct() {
    let directory = TempDir::new();
    if !has_queues(&directory) {
        return;
    }
    let file = directory.join("mine");
    std::fs::write(&file, vec![7_u8; 1 << 20]).unwrap();
    let json = probe_json("iolat", &at(&file, "-D --iodepth 1 -w 200ms"));
    assert_eq!(json["result"]["random"]["depth"], 1);
    assert_eq!(json["cost"]["written_bytes"], 0);
    let json = probe_json("iolat", &at(&file, "--iodepth 1 -c 5 -i 0"));
    assert_eq!(json["result"]["paces"][0]["requests"], 5);
}

#[test]
fn what_makes_no_sense_with_requests_in_flight_is_refused() {
    let directory = TempDir::new();
    for option in ["-W", "-C", "-i 5ms", "-c 10", "-a 3"] {
        let line = at(directory.path(), &format!("--iodepth 4 {option}"));
        let name = option.split(' ').next().unwrap();
        terrace(&format!("measure iolat {line}")).refused(2, name);
    }
    let line = at(directory.path(), "--iodepth 1024 -s 64m");
    terrace(&format!("measure iolat {line}")).refused(2, "may take 1 GiB");
    let line = at(directory.path(), "--iodepth 0");
    terrace(&format!("measure iolat {line}")).refused(2, "from 1 to 1024");
    let line = at(directory.path(), "--iodepth 4 -s 100");
    assert_ne!(terrace(&format!("measure iolat {line} -w 1s")).code, Some(0));
    assert!(directory.names().is_empty());
}

#[test]
fn a_file_of_the_users_is_read_and_never_written() {
    let directory = TempDir::new();
    let file = directory.join("mine");
    let contents = vec![7_u8; 1 << 20];
    std::fs::write(&file, &contents).unwrap();
    terrace(&format!("measure iolat {}", at(&file, "-c 10 -i 0"))).done();
    terrace(&format!("measure iolat {}", at(&file, "-c 10 -W"))).refused(2, "name a directory");
    assert_eq!(std::fs::read(&file).unwrap(), contents);
}

#[test]
fn ram_is_called_ram() {
    let small = match Tmpfs::mount(64 << 20) {
        Ok(small) => small,
        Err(need) => return testkit::skip(need),
    };
    let json = probe_json("iolat", &at(small.path(), "-c 100 -i 0 -S 4m"));
    assert_eq!(json["result"]["served"]["by"], "ram", "{json}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let directory = TempDir::new();
    let empty = directory.join("empty");
    std::fs::write(&empty, "").unwrap();
    assert!(terrace(&format!("measure iolat {}", empty.display())).code != Some(0));
    assert!(terrace("measure iolat /dev/null").code != Some(0));
    assert!(terrace("measure iolat /proc/meminfo").code != Some(0));
}

#[test]
fn an_ordinary_user_sees_which_rights_are_missing() {
    let directory = TempDir::new();
    if !testkit::is_root() {
        return testkit::skip("root, to make what an ordinary user may not open");
    }
    if let Some(command) =
        as_ordinary_user(&format!("measure iolat {}", directory.path().display()))
    {
        run(command).refused(3, "permission denied");
    }
}

#[test]
fn ctrl_c_prints_what_was_measured_and_leaves_nothing() {
    let directory = TempDir::new();
    let ran =
        signalled("measure iolat -i 1ms -S 8m -w 1h", &[directory.path().as_os_str()], "INT", "2");
    assert_interrupted(&ran, "min/avg/max/mdev");
    assert!(directory.names().is_empty());
}

#[test]
fn a_kill_leaves_nothing() {
    let directory = TempDir::new();
    let ran =
        signalled("measure iolat -i 1ms -S 8m -w 1h", &[directory.path().as_os_str()], "KILL", "1");
    assert!(KILLED.contains(&ran.code), "{ran:?}");
    assert!(directory.names().is_empty());
}
