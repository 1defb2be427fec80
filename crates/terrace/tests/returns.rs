//! Pages that leave memory and come back: a real file and real swap under the limit of a group,
//! recorded; what a larger limit would have kept, and then the larger limit itself.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use support::limited_set::{needs, write_random};
use support::{run, run_command, terrace};
use testkit::{Cgroup, SwapArea, TempDir};

const MIB: u64 = 1 << 20;
const SET_BYTES: u64 = 192 * MIB;
const PAGE_BYTES: u64 = 4096;
/// The limit of the group of which less is tried.
const LARGE_LIMIT: u64 = 112 * MIB;

/// Reads pages in an order from a seed, some much more often than others.
const READER: &str = "
import os, random, sys, time
path, pages, reads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
end = time.time() + float(sys.argv[4])
numbers = random.Random(3)
places = list(range(pages))
random.Random(7).shuffle(places)
file = os.open(path, os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
for _ in range(reads):
    os.pread(file, 4096, places[int(pages * numbers.random() ** 2.5)] * 4096)
time.sleep(max(0, end - time.time()))
";

/// Reads pieces of so many pages at a stride, in order, twice.
const STRIDER: &str = "
import os, sys
path, pages, stride, count = sys.argv[1], *map(int, sys.argv[2:])
file = os.open(path, os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
for turn in range(2):
    for place in range(count):
        os.pread(file, pages * 4096, place * stride * 4096)
";

/// Writes twice to each page of more memory than its group may have.
const TOUCHER: &str = "
import mmap, sys
length = int(sys.argv[1])
memory = mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for turn in range(2):
    for place in range(0, length, 4096):
        memory[place] = turn + 1
";

/// The growth of the series of returns while a command ran, as `run` saw it.
fn recorded(directory: &Path, options: &[&str], argv: &[&str]) -> BTreeMap<String, u64> {
    let file = directory.join("returns.trec");
    let path = file.to_string_lossy();
    let ran = run(run_command(&[&["--force", "-o", &path], options].concat(), argv));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = terrace(&format!("export {} --to json --no-redact", file.display())).done();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut growths = BTreeMap::new();
    for series in value["series"].as_array().unwrap() {
        let name = series["name"].as_str().unwrap();
        if let Some(name) = name.strip_prefix("trace.returns.") {
            let last = series["steps"].as_array().and_then(|steps| steps.last()?[1].as_u64());
            growths.insert(name.to_owned(), last.unwrap_or(0));
        }
    }
    growths
}

/// What would have stayed with `more` bytes, by the distances counted in one way.
fn kept(growths: &BTreeMap<String, u64>, order: &str, more: u64) -> u64 {
    let bound = |name: &str| -> Option<u64> {
        let class = name.strip_prefix(order)?.strip_prefix("_lt_")?.strip_suffix("kib")?;
        class.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let classes = growths.iter().filter(|(name, _)| bound(name).is_some_and(|at| at <= more));
    classes.map(|(_, bytes)| *bytes).sum()
}

/// A counter of the group's pages.
fn counter(group: &Cgroup, name: &str) -> u64 {
    let text = std::fs::read_to_string(group.path().join("memory.stat")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// The growths of a script in the group, which the recorder is outside of.
fn python(
    directory: &TempDir,
    (group, options): (&Cgroup, &[&str]),
    script: &str,
    words: &[&str],
) -> BTreeMap<String, u64> {
    let members = group.path().join("cgroup.procs");
    let join = "echo $$ > \"$0\" && exec python3 -c \"$@\"";
    let mut argv = vec!["sh", "-c", join];
    let members = members.to_string_lossy();
    argv.extend([&*members, script]);
    argv.extend(words);
    recorded(directory.path(), options, &argv)
}

/// What the reader's group read again, by the kernel, and the growths of the recording.
fn read_within(
    limit: u64,
    (options, seconds): (&[&str], u64),
    directory: &TempDir,
    set: &Path,
) -> (u64, BTreeMap<String, u64>) {
    let group = Cgroup::v1_memory(limit).unwrap();
    let file = File::open(set).unwrap();
    sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::DontNeed).unwrap();
    let pages = (SET_BYTES / PAGE_BYTES).to_string();
    let (set, seconds) = (set.to_string_lossy(), seconds.to_string());
    let growths = python(directory, (&group, options), READER, &[&set, &pages, "100000", &seconds]);
    (counter(&group, "workingset_refault_file ") * PAGE_BYTES, growths)
}

#[test]
fn what_more_memory_would_keep_is_known_before_there_is_more() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let directory = TempDir::new();
    // Which pages are followed is drawn for each file: of one file alone it may be off by chance.
    let recording_of = |number: usize| {
        let set = directory.join(format!("set-{number}"));
        write_random(&set, SET_BYTES);
        let (again, growths) = read_within(64 * MIB, (&[], 0), &directory, &set);
        // What is seen is what the kernel counts.
        let seen = growths["file.came_back_bytes"];
        assert!(again > 20 * MIB, "{again}");
        assert!(seen.abs_diff(again) < again / 10, "{seen} of {again}: {growths:?}");
        growths
    };
    let mut recordings: Vec<_> = (0..4).map(recording_of).collect();
    for more in [32 * MIB, 64 * MIB] {
        let (again, _) =
            read_within(64 * MIB + more, (&[], 0), &directory, &directory.join("set-0"));
        let error_of = |small: &BTreeMap<String, u64>| {
            let seen = small["file.came_back_bytes"];
            let [out, left] =
                ["file.still_out", "file.left"].map(|order| seen - kept(small, order, more));
            assert!(out <= left, "more left than are still out: {out}, {left}");
            (out as f64 - again as f64) / seen as f64
        };
        // 3 to 8 % were seen of most, up to 31 of single ones; of four by chance 21 once.
        let is_right = |recordings: &[BTreeMap<String, u64>]| {
            let errors: f64 = recordings.iter().map(error_of).sum();
            (errors / recordings.len() as f64).abs() < 0.15
        };
        if !is_right(&recordings) {
            let from = recordings.len();
            recordings.extend((from..from + 4).map(recording_of));
        }
        let errors: Vec<f64> = recordings.iter().map(error_of).collect();
        assert!(is_right(&recordings), "{} MiB more: {errors:?}, {again} came back", more / MIB);
    }
}

/// What is predicted to come back with less, by the recording at [`LARGE_LIMIT`] of a file of its
/// own, and what came back in it.
fn predicted_with_less(directory: &TempDir, number: usize) -> ([u64; 2], u64) {
    let set = directory.join(format!("set-{number}"));
    write_random(&set, SET_BYTES);
    // Shorter recordings are unproven.
    let (base, _) = read_within(LARGE_LIMIT, (&["--hits"], 11), directory, &set);
    let file = directory.join("returns.trec");
    let line = format!("advise {} --ram -24m,-48m --json", file.display());
    let advice: serde_json::Value = serde_json::from_str(&terrace(&line).done()).unwrap();
    let lost = [0, 1].map(|size| {
        let lost = advice["memory"]["sizes"][size]["lost_bytes"].as_u64();
        lost.unwrap_or_else(|| panic!("{advice:#}"))
    });
    (lost, base)
}

/// The smaller limits are tried after the recording at the larger one.
#[test]
fn what_less_memory_would_cost_is_known_before_there_is_less() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let directory = TempDir::new();
    let mut recordings = vec![predicted_with_less(&directory, 0)];
    let again = [24 * MIB, 48 * MIB].map(|less| {
        read_within(LARGE_LIMIT - less, (&[], 0), &directory, &directory.join("set-0")).0
    });
    // Which pages are followed is drawn for each file: of one alone it may be off by chance.
    let parts = |recordings: &[([u64; 2], u64)]| {
        [0, 1].map(|size| {
            let predicted: u64 = recordings.iter().map(|(lost, _)| lost[size]).sum();
            let seen = recordings.iter().map(|(_, base)| again[size].saturating_sub(*base));
            predicted as f64 / seen.sum::<u64>() as f64
        })
    };
    // 1.27 and 1.18 were seen. To predict nothing gives 0.
    let are_right =
        |recordings: &[_]| parts(recordings).iter().all(|part| (0.8..1.4).contains(part));
    if !are_right(&recordings) {
        recordings.extend((1..5).map(|number| predicted_with_less(&directory, number)));
    }
    let said = format!("{:?}, {again:?} came back: {recordings:?}", parts(&recordings));
    println!("{said}");
    assert!(are_right(&recordings), "{said}");
}

/// A database reads 8 KiB at once; of records of 64 KiB each 16th page is read. What is read in
/// order, three times as much as there is room for, has left when its turn comes again.
#[test]
fn what_is_read_in_strides_is_seen_as_often_as_all_else() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    const READ_BYTES: u64 = 96 * MIB;
    let directory = TempDir::new();
    for (pages, stride) in [(1, 2), (2, 4), (1, 16)] {
        let set = directory.join(format!("every-{stride}"));
        let count = READ_BYTES / PAGE_BYTES / pages;
        // Holes are pages of the cache like any others.
        File::create(&set).unwrap().set_len(count * stride * PAGE_BYTES).unwrap();
        let group = Cgroup::v1_memory(READ_BYTES / 3).unwrap();
        let numbers = [pages, stride, count].map(|number| number.to_string());
        let set = set.to_string_lossy().into_owned();
        let words = [&*set, &*numbers[0], &*numbers[1], &*numbers[2]];
        let growths = python(&directory, (&group, &[]), STRIDER, &words);
        let seen = growths["file.came_back_bytes"];
        // Chance gives 2.5 %, of pages in pairs 3.5 %.
        let error = seen.abs_diff(READ_BYTES);
        assert!(error < READ_BYTES / 6, "{pages} of {stride}: {seen} of {READ_BYTES}");
    }
}

#[test]
fn a_file_that_is_deleted_or_cut_off_leaves_nothing() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let directory = TempDir::new();
    let path = directory.join("file");
    let script = "for turn in 1 2 3; do
        head -c 33554432 /dev/urandom > \"$0\" && cat \"$0\" > /dev/null
        truncate -s 1048576 \"$0\" && cat \"$0\" > /dev/null && rm \"$0\"
    done";
    let growths = recorded(directory.path(), &[], &["sh", "-c", script, &path.to_string_lossy()]);
    // A few pages of the programs may have left before.
    assert!(growths["file.came_back_bytes"] < 2 * MIB, "{growths:?}");
}

/// A database's own buffers look like pages of swap.
#[test]
fn a_file_that_is_written_and_read_past_the_cache_is_not_swap() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let directory = TempDir::new();
    let script = "
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
buffer = mmap.mmap(-1, 1 << 20)
for turn in range(3):
    buffer[0] = turn
    for place in range(32):
        os.pwritev(file, [buffer], place << 20)
    for place in range(32):
        assert os.preadv(file, [buffer], place << 20) == 1 << 20
";
    let file = directory.join("file");
    let argv = ["python3", "-c", script, &*file.to_string_lossy()];
    let growths = recorded(directory.path(), &[], &argv);
    let (left, back) = (growths["swap.left_bytes"], growths["swap.came_back_bytes"]);
    assert!(left < 2 * MIB && back < 2 * MIB, "{growths:?}");
}

#[test]
fn pages_come_back_from_swap() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let (_swap, group) = match (SwapArea::on(256 * MIB), Cgroup::v1_memory(64 * MIB)) {
        (Ok(swap), Ok(group)) => (swap, group),
        (Err(need), _) | (_, Err(need)) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let length = (128 * MIB).to_string();
    let growths = python(&directory, (&group, &[]), TOUCHER, &[&length]);
    let again = counter(&group, "workingset_refault_anon ") * PAGE_BYTES;
    let (left, seen) = (growths["swap.left_bytes"], growths["swap.came_back_bytes"]);
    assert!(again > 60 * MIB && left > 60 * MIB, "{again} of {left}");
    assert!(seen.abs_diff(again) < again / 5, "{seen} of {again}: {growths:?}");
    // In turn each of the 128 MiB is touched after all others: none stays with a little more.
    let stays = kept(&growths, "swap.still_out", 8 * MIB);
    assert!(stays < seen / 4, "{stays} of {seen}: {growths:?}");
}
