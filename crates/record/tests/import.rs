//! The texts of other tools as recordings: figures that can be checked by hand, and invented
//! texts.
#![allow(clippy::unwrap_used)]

use model::recording::Recording;
use proptest::prelude::*;
use record::export::{Exporter, Trec};
use record::import::{Form, ImportOptions, form_of, import};
use std::time::Duration;
use testkit::tool_reports::{FIO, FIO_LOG, IOSTAT, SADF, VMSTAT};

fn recording(text: &str) -> Recording {
    let form = form_of(text).unwrap();
    let options = ImportOptions {
        interval: Some(Duration::from_secs(2)),
        name: "runs/db_bw.1.log".to_owned(),
    };
    import(text, form, &options).unwrap()
}

/// All growth of a counter.
fn growth(recording: &Recording, name: &str) -> u64 {
    let last = recording.ticks.len() as u32 - 1;
    let series = recording.series(name).unwrap_or_else(|| panic!("{name}"));
    series.growth(0, last).unwrap()
}

fn level(recording: &Recording, name: &str) -> Option<i64> {
    let last = recording.ticks.len() as u32 - 1;
    recording.series(name).unwrap().at(last)
}

#[test]
fn the_first_report_of_vmstat_is_left_out_and_the_stamps_are_its_clock() {
    let recording = recording(VMSTAT);
    assert_eq!(recording.facts.started_unix_ns, 1_795_342_532_000_000_000);
    let at: Vec<u64> = recording.ticks.iter().map(|tick| tick.at_ns).collect();
    assert_eq!(at, [0, 2_000_000_000, 3_000_000_000]);
    assert_eq!(growth(&recording, "vmstat.pswpin"), 2 * 2);
    assert_eq!(growth(&recording, "vmstat.pgpgin"), 2 * 10284 + 50720);
    assert_eq!(growth(&recording, "stat.cpu.user_ns"), 1_860_000_000 + 890_000_000);
    assert_eq!(level(&recording, "meminfo.MemFree"), Some(14_280_000 * 1024));
    assert_eq!(level(&recording, "stat.procs_running"), Some(23));
}

#[test]
fn iostat_without_stamps_follows_the_given_interval() {
    let recording = recording(IOSTAT);
    assert_eq!(recording.ticks.len(), 2);
    assert_eq!(recording.wall_ns(), 2_000_000_000);
    assert_eq!(growth(&recording, "disk.vda.reads"), 200);
    assert_eq!(growth(&recording, "disk.vda.read_bytes"), 2 << 20);
    assert_eq!(growth(&recording, "disk.vda.read_ns"), 400_000_000);
    assert_eq!(growth(&recording, "disk.vda.io_ns"), 400_000_000);
    assert_eq!(growth(&recording, "disk.vda.weighted_ns"), 400_000_000);
    // Half of two processors, over two seconds, with a comma.
    assert_eq!(growth(&recording, "stat.cpu.iowait_ns"), 2_000_000_000);
}

#[test]
fn sadf_begins_an_interval_before_its_first_report_and_loses_no_fraction() {
    let recording = recording(SADF);
    assert_eq!(recording.facts.started_unix_ns, 1_795_342_500_000_000_000);
    assert_eq!(recording.facts.processors, 2);
    assert_eq!(recording.wall_ns(), 20_000_000_000);
    assert_eq!(growth(&recording, "vmstat.pswpin"), 25 + 3);
    assert_eq!(growth(&recording, "stat.cpu.user_ns"), 2_000_000_000);
    assert_eq!(growth(&recording, "stat.cpu1.user_ns"), 2_000_000_000);
    assert_eq!(growth(&recording, "disk.vda.read_bytes"), 20 * 1024);
    assert_eq!(growth(&recording, "disk.vda.io_ns"), 5_000_000_000);
    assert_eq!(growth(&recording, "pressure.io.some_ns"), 1_000_000_000);
    assert_eq!(level(&recording, "meminfo.SwapUsed"), Some(4096));
}

#[test]
fn fio_becomes_two_samples_and_its_logs_a_course() {
    let whole = recording(FIO);
    assert_eq!(whole.facts.started_unix_ns, 8_000_000_000);
    assert_eq!(growth(&whole, "fio.w_1.read_bytes"), 4_096_000);
    assert_eq!(level(&whole, "fio.w_1.read_p99_ns"), Some(9000));
    assert_eq!(growth(&whole, "disk.vda.io_ns"), 500_000_000);
    assert!(whole.series("fio.w_1.write_requests").is_none());
    let log = recording(FIO_LOG);
    assert_eq!(log.ticks.len(), 3);
    assert_eq!(growth(&log, "fio.db.read_bytes"), (19360 + 23280) * 1024 / 5);
    assert_eq!(growth(&log, "fio.db.write_bytes"), 20480 * 1024 / 5);
}

#[test]
fn a_text_without_a_report_is_refused_in_a_line() {
    let options = ImportOptions::default();
    for (text, form) in [
        ("", Form::Vmstat),
        (VMSTAT.lines().take(3).collect::<Vec<_>>().join("\n").as_str(), Form::Vmstat),
        ("{\"sysstat\": {}}", Form::Sadf),
        ("{\"sysstat\": ", Form::Sadf),
        ("{}", Form::Fio),
        (FIO_LOG, Form::FioLog),
        ("Device tps\nvda x\n", Form::Iostat),
    ] {
        let error = import(text, form, &options).unwrap_err().to_string();
        assert!(!error.contains('\n') && error.len() < 200, "{form:?}: {error}");
    }
    assert_eq!(form_of("hello\n"), None);
}

/// A seed with a few bytes changed, or with lines cut, doubled and moved.
fn broken() -> impl Strategy<Value = String> {
    let seeds = prop::sample::select(vec![VMSTAT, IOSTAT, SADF, FIO, FIO_LOG]);
    let change = (any::<prop::sample::Index>(), "[ -~\n]{0,12}");
    (seeds, prop::collection::vec(change, 1..8)).prop_map(|(seed, changes)| {
        let mut text = seed.to_owned();
        for (at, new) in changes {
            let at = at.index(text.len());
            let end = (at + new.len() / 2).min(text.len());
            text.replace_range(at..end, &new);
        }
        text
    })
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader_and_what_it_gives_can_be_kept(text in broken(), form in 0..5usize) {
        let all = [Form::Sadf, Form::Fio, Form::FioLog, Form::Vmstat, Form::Iostat];
        let options = ImportOptions { interval: None, name: "x_lat.1.log".to_owned() };
        let form = form_of(&text).unwrap_or(all[form]);
        if let Ok(recording) = import(&text, form, &options) {
            let mut bytes = Vec::new();
            Trec.export(&recording, &mut bytes).unwrap();
            let again = record::file::read(&bytes[..]).unwrap();
            prop_assert_eq!(again.series.len(), recording.series.len());
            prop_assert_eq!(again.ticks, recording.ticks);
        }
    }
}
