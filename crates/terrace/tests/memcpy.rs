//! `terrace measure memcpy`: rates in each form, the list of methods, the disassembly, the
//! program of 2001, and Ctrl-C.

mod support;

use support::{Ran, assert_interrupted, interrupted, probe_csv, probe_json, terrace};

/// A method that only this kind of processor has.
const OWN: &str = if cfg!(target_arch = "x86_64") { "rep-movsb" } else { "neon" };

#[test]
fn each_method_has_a_rate_with_its_error_bars() {
    let json = probe_json("memcpy", &format!("memcpy,{OWN} char --size 64k,1m --budget 3s"));
    let rows = json["result"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row["verified"], true, "{row}");
        let rate = &row["bytes_per_s"];
        assert!(rate["median"].as_f64().unwrap() > 1e8, "{row}");
        assert!(rate["best"].as_f64() >= rate["median"].as_f64(), "{row}");
        assert!(rate["trials"].as_u64().unwrap() > 0, "{row}");
    }
    assert!(json["result"]["winners"].as_array().unwrap().len() == 2);
}

#[test]
fn the_table_is_rectangular_csv() {
    let rows = probe_csv("memcpy", "memcpy --size 64k --budget 500ms");
    assert_eq!(
        (rows[0][0].as_str(), rows[0][1].as_str(), rows[0][2].as_str()),
        ("memcpy", "copy", "65536")
    );
}

#[test]
fn the_page_names_the_winner_and_the_c_library() {
    let page = terrace("measure memcpy memcpy char --size 64k --budget 1s").done();
    assert!(page.contains("64 KiB copy: memcpy is fastest"), "{page}");
    assert!(page.contains("trials count"), "{page}");
    assert!(!page.contains('\x1b'));
}

#[test]
fn other_operations_blocks_strides_offsets_and_threads_are_said() {
    let page = terrace("measure memcpy --operation read,write --size 64k --budget 2s").done();
    assert!(page.contains("read-u64") && page.contains("memset"), "{page}");
    let page = terrace("measure memcpy char --size 1m --stride 12 --budget 1s").done();
    assert!(page.contains("every 12th element"), "{page}");
    let page =
        terrace("measure memcpy memcpy --size 64k --offset 1,64 --block 4k --budget 1s").done();
    assert!(
        page.contains("target 1 B and source 64 B") && page.contains("blocks of 4 KiB"),
        "{page}"
    );
    let json = probe_json("memcpy", "memcpy --size 64k --threads 2 --pages 4k --budget 1s");
    assert_eq!(json["result"]["threads"], 2);
    assert_eq!(json["result"]["pages"][0]["asked"], "4k");
}

#[test]
fn every_method_is_listed_and_absent_ones_say_why() {
    let list = terrace("measure memcpy --list").done();
    for name in [
        "char",
        "struct",
        "memcpy",
        "rep-movsb",
        "avx512-nt",
        "clzero",
        "pipe",
        "tmpfs-file",
        "neon",
    ] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name}");
    }
    let text = terrace("measure memcpy --list --json").done();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let absent: Vec<_> =
        json.as_array().unwrap().iter().filter(|m| m["absent"].is_string()).collect();
    assert!(!absent.is_empty(), "no machine has both NEON and AVX");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_loop_is_shown_as_it_runs() {
    let code = terrace("measure memcpy --disassemble rep-movsb").done();
    assert!(code.contains("rep movs"), "{code}");
    terrace("measure memcpy --disassemble pipe").refused(3, "goes through the kernel");
}

/// Runs the program of 2001 with its arguments in one word, and `options` of ours.
fn classic(options: &str, line: &str) -> Ran {
    let options = format!("measure memcpy --budget 20s {options} --classic");
    let mut command = support::command(&options);
    command.arg(line);
    support::run(command)
}

#[test]
fn the_program_of_2001_runs_from_its_own_arguments() {
    let table = classic("", "-p 16m 3 0 1 5").done();
    assert!(table.contains("__int64 *") && table.contains("173.644"), "{table}");
    for words in ["pass", "average", "verified", "Control", "10^6"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let csv = classic("", "-s -csv 64k 3").done();
    assert_eq!(csv.lines().count(), 8, "{csv}");
    assert!(csv.starts_with("method,average MB/s\nmemcpy,"), "{csv}");
    let csv = classic("", "-csv 64k 2 1").done();
    assert!(csv.starts_with("method,pass 1,pass 2,average MB/s\nchar *,"), "{csv}");
    classic("", "-f 1m 2 0").done();
    classic("", "-w 64k 2 0").done();
    for option in ["--size 1m", "--threads 2", "--pages thp", "char"] {
        classic(option, "64k 2 0").refused(2, "--classic");
    }
}

#[test]
fn the_json_of_the_program_of_2001_has_every_pass() {
    let json: serde_json::Value =
        serde_json::from_str(&classic("--json", "-f -p -s 1m 5 0 5").done()).unwrap();
    assert_eq!(json["schema"], "terrace.measure.classic/1");
    let result = &json["result"];
    assert_eq!(result["allocate_each_pass"], true);
    assert_eq!(result["methods"], serde_json::json!([0, 5]));
    for row in result["rows"].as_array().unwrap() {
        let passes: Vec<f64> = row["bytes_per_s"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|rate| rate.as_f64())
            .collect();
        assert_eq!(passes.len(), 5, "{row}");
        // All bytes over all time is the harmonic mean.
        let mean = 5.0 / passes.iter().map(|rate| 1.0 / rate).sum::<f64>();
        let average = row["average_bytes_per_s"].as_f64().unwrap();
        assert!((average / mean - 1.0).abs() < 1e-9, "{row}");
        assert_eq!(row["verified"], true);
    }
    assert!(result["control"]["seconds"].as_f64().unwrap() > 0.0);
    classic("--json", "-csv 64k 2").refused(2, "exclude each other");
}

#[test]
fn a_method_this_processor_lacks_is_impossible() {
    let lacking = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    terrace(&format!("measure memcpy {lacking} --budget 1s")).refused(3, "needs");
}

#[test]
fn too_much_memory_is_impossible() {
    terrace("measure memcpy memcpy --size 64g --budget 1s").refused(3, "may be taken here");
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let line = format!("measure memcpy memcpy {OWN} --size 64k,1m --budget 1h");
    assert_interrupted(&interrupted(&line, &["0.7", "1", "1.3"]), "memcpy");
}

/// A processor set of one: two threads would measure the scheduler.
#[test]
fn a_restricted_processor_set_bounds_the_threads() {
    let confined = |line: &str| {
        let mut command = std::process::Command::new("taskset");
        command.args(["-c", "0", support::TERRACE]);
        command.args(line.split_whitespace());
        support::run(command)
    };
    confined("measure memcpy memcpy --size 64k --threads 2").refused(3, "1 processors");
    confined("measure memcpy memcpy --size 64k --cpu 1").refused(2, "may use [0]");
    let ran = confined("measure memcpy memcpy --size 64k --budget 2s");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn huge_pages_that_are_not_there_are_named() {
    let pool = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    if pool.trim() != "0" {
        return testkit::skip("a machine without reserved huge pages");
    }
    terrace("measure memcpy memcpy --size 16m --pages hugetlb").refused(3, "hugetlb pages");
}
