//! Mutants of what other tools write, imported; what could be imported is then read.
//!
//! The samples are short reports of `vmstat -t`, `iostat`, `sadf -j` and fio. Mutants change numbers,
//! lines, words and bytes.

use std::path::Path;

use testkit::Random;

use super::judge::Form;
use super::mutate::{self, chance, pick, place};
use super::stage::{Bad, Stage, text, words};

pub(super) const VMSTAT: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
18  0      0 14280712  17160 5481860  918 1135 18667 15108  839 3468 54 15 27  4  0 2026-11-22 10:15:32
19  1      0 14280712  17160 5481860    8    4 10284     0 1099 2664 93  7  0  0  0 2026-11-22 10:15:34
23  0    512 14280000  17160 5481860    0    0 50720  1408 1460 3632 89 11  0  0  0 2026-11-22 10:15:35
";

const IOSTAT: &str = "\
Linux 6.18.44 (vm) \t11/22/26 \t_x86_64_\t(2 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          53.63    0.58   14.69    4.02    0.18   26.89

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
vda            847.92  29689.94   341.37  28.70    1.09    35.02   84.31  27994.15   540.43  86.50    3.79   332.02    1.25   7.96


avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          25,00    0,00    0,00   50,00    0,00   25,00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
vda            100.00   1024.00     0.00   0.00    2.00    10.24    0.00      0.00     0.00   0.00    0.00     0.00    0.20  20.00
";

const SADF: &str = r#"{"sysstat": {"hosts": [{"nodename": "vm", "number-of-cpus": 2, "statistics": [
 {"timestamp": {"date": "2026-11-22", "time": "10:15:10", "utc": 1, "interval": 10},
  "cpu-load": [{"cpu": "all", "user": 10.0, "idle": 90.0}, {"cpu": "1", "usr": 20.0}],
  "swap-pages": {"pswpin": 2.5, "pswpout": 0.0},
  "memory": {"memfree": 1000, "swpused": 4},
  "disk": [{"disk-device": "vda", "tps": 1.0, "rkB": 2.0, "wkB": 0.0, "aqu-sz": 0.5, "util-percent": 50.0}],
  "psi": {"psi-io": {"some_avg": 10.0}}},
 {"timestamp": {"date": "2026-11-22", "time": "10:15:20", "utc": 1, "interval": 10},
  "swap-pages": {"pswpin": 0.3}}
]}]}}"#;

const FIO: &str = r#"{"fio version": "fio-3.33", "timestamp_ms": 10000, "jobs": [{"jobname": "w 1", "read":
 {"io_bytes": 4096000, "runtime": 2000, "total_ios": 1000, "lat_ns": {"mean": 5000.4},
  "clat_ns": {"percentile": {"99.000000": 9000}}}, "write": {"total_ios": 0, "runtime": 0}}],
 "disk_util": [{"name": "vda", "read_ios": 1000, "read_ticks": 7, "util": 25.0}]}"#;

const FIO_LOG: &str = "200, 19360, 0, 0, 0\n200, 20480, 1, 0, 0\n400, 23280, 0, 0, 0\n";

/// The texts with the name of their tool.
const SEEDS: &[(&str, &str)] = &[
    ("vmstat", VMSTAT),
    ("iostat", IOSTAT),
    ("sadf", SADF),
    ("fio", FIO),
    ("fio-log", FIO_LOG),
];

const TOKENS: &[&str] = &[
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e999",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "0",
    "-0",
    "0.0000001",
    "99999999999999999999999",
    "",
    "é",
    "\u{202e}",
    "\u{1b}[31m",
    "\0",
    "99:99:99",
    "0000-00-00",
    "9999999-12-31 23:59:59",
    "1970-01-01 00:00:00",
    "null",
    "[]",
    "{}",
    "\"x\"",
    ",",
    ":",
];

/// A mutant grows by repetition; more is not an attack but a bomb.
const TEXT_BYTES_MAX: usize = 200_000;

/// One mutant, imported; the recording that came out of it is read.
pub(super) fn attack(stage: &Stage, random: &mut Random, directory: &Path) -> Result<(), Bad> {
    let (tool, seed) = *pick(random, SEEDS);
    let name = format!(
        "a_{}.1.log",
        pick(random, &["bw", "iops", "lat", "clat", "slat"])
    );
    let [input, recording, out] =
        [name.as_str(), "out.trec", "out"].map(|name| directory.join(name));
    std::fs::write(&input, mutant(random, seed))?;
    let [input, recording, out] = [&input, &recording, &out].map(|path| text(path));
    let mut arguments = words(["import", input, "-o", recording]);
    if chance(random, 40) {
        let from = if chance(random, 50) {
            tool
        } else {
            pick(random, SEEDS).0
        };
        arguments.extend(words(["--from", from]));
    }
    if chance(random, 40) {
        let interval = *pick(random, &["1s", "0s", "1ns", "99999999h", "0.5s", "100ms"]);
        arguments.extend(words(["--interval", interval]));
    }
    if stage.attack(&arguments, Form::Text)?.status != Some(0) {
        return Ok(());
    }
    let (arguments, form) = match random.below(4) {
        0 => (words(["explain", "--json", recording]), Form::Json),
        1 => (words(["explain", "--details", recording]), Form::Text),
        2 => (words(["view", "--html", out, recording]), Form::Text),
        _ => (
            words(["export", "--to", "csv", "-o", out, recording]),
            Form::Text,
        ),
    };
    stage.attack(&arguments, form).map(drop)
}

fn mutant(random: &mut Random, seed: &str) -> Vec<u8> {
    let mut text = seed.to_owned();
    for _ in 0..*pick(random, &[1, 1, 2, 4, 10]) {
        text = change(random, &text);
        let mut cut = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
    }
    let mut bytes = text.into_bytes();
    if chance(random, 3) {
        mutate::bytes(random, &mut bytes);
    }
    bytes
}

/// One change of a word, a line or a place.
fn change(random: &mut Random, text: &str) -> String {
    let token = *pick(random, TOKENS);
    let separator = *pick(random, &[' ', '\n', ',', ':']);
    let mut pieces: Vec<&str> = text.split(separator).collect();
    let at = random.below(pieces.len() as u64) as usize;
    match random.below(6) {
        0 | 1 => pieces[at] = token,
        2 => pieces.insert(at, pieces[at]),
        3 => drop(pieces.remove(at)),
        4 => pieces.truncate(at),
        _ => {
            let copy = pieces[at..].iter().take(5).copied().collect::<Vec<_>>();
            let count = *pick(random, &[2, 50]);
            let end = place(random, pieces.len());
            pieces.splice(end..end, copy.repeat(count));
        }
    }
    pieces.join(&separator.to_string())
}
