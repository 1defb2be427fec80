//! The tests on a processor of another kind, in an emulated machine: crate by crate, each in a
//! guest of its own, with what an emulator cannot judge left out by name.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::TempDir;

use crate::error::Error;
use crate::process::quoted;
use crate::tidy::tree;
use crate::vm::{self, Arch};
use crate::workspace;

/// Memory of each guest: a test reserves 4 GiB.
const MEMORY: &str = "5G";
/// Where the tests' files are: the guest's root has no disk.
const FILES_DISK: &str = "tmp:8G";
/// A crate whose tests take longer under emulation hangs.
const TIMEOUT_S: &str = "10800";
/// And a program of them.
const TEST_S: &str = "1200";
/// Programs that tests use.
const PACKAGES: [&str; 2] = ["diffutils", "gzip"];
/// What tests of devices use and no kernel loads by itself.
const MODULES: [&str; 4] = ["fuse", "loop", "zram", "nbd"];
/// What tests read of the tree, where they were built.
const READ: [&str; 3] = ["crates/", "docs/", "README.md"];
const ARCHIVE: &str = "tree.tar";

/// A test that says nothing in an emulated machine.
struct LeftOut {
    package: &'static str,
    /// A part of its name, or of those of several.
    test: &'static str,
    why: &'static str,
}

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        package: "record",
        test: "a_process_number_that_is_used_again_at_once_is_another_process",
        why: "an emulated shell takes half a minute for what is to happen within a second",
    },
    LeftOut {
        package: "record",
        test: "processors_are_sampled_while_they_run_the_subject",
        why: "an emulator makes first touches cheap, of which it wants many samples",
    },
    LeftOut {
        package: "record",
        test: "too_many_events_are_paused_and_followed_again",
        why: "it compares spans of 30 ms, in which an emulated machine does little",
    },
    LeftOut {
        package: "sys",
        test: "a_reader_sees_a_whole_file_whenever_the_writer_is_killed",
        why: "it kills a program sooner than an emulated one has started",
    },
    LeftOut {
        package: "terrace",
        test: "a_read_beyond_the_end_of_a_file_asks_for_no_more_than_its_pages",
        why: "an emulated recorder has not begun half a second after its file is there",
    },
    LeftOut {
        package: "terrace",
        test: "a_sound_stick_is_measured_and_the_disk_decides",
        why: "an emulated machine proves less of a stick in the 8 s that it has",
    },
    LeftOut {
        package: "terrace",
        test: "one_request_is_in_flight_while_another_program_reads_and_many_when_it_has_gone",
        why: "the other program does not get to read without a pause",
    },
    LeftOut {
        package: "terrace",
        test: "both_paces_are_there_with_intervals_and_the_rate_that_was_made",
        why: "an emulated machine does not fill a test file in half a second",
    },
    LeftOut {
        package: "terrace",
        test: "every_part_has_its_figures_and_each_verdict_its_numbers",
        why: "an emulated processor does not measure all methods in its time",
    },
    LeftOut {
        package: "terrace",
        test: "other_operations_blocks_strides_offsets_and_threads_are_said",
        why: "it needs two processors, and the emulated machine has one",
    },
    LeftOut {
        package: "terrace",
        test: "a_quick_survey_is_valid_in_time_and_leaves_nothing",
        why: "an emulated processor does not touch memory beyond its caches in its time",
    },
    LeftOut {
        package: "terrace",
        test: "a_signal_that_comes_twice_counts_once",
        why: "an emulated processor has not measured memory within 4 s",
    },
    LeftOut {
        package: "terrace",
        test: "ctrl_c_prints_what_was_seen_and_leaves_nothing",
        why: "an emulated processor has not measured memory within 4 s",
    },
    LeftOut {
        package: "terrace",
        test: "a_survey_and_the_probe_agree_on_the_same_size",
        why: "an emulated processor ends no second run in its time",
    },
    LeftOut {
        package: "terrace",
        test: "three_measurements_of_one_method_overlap",
        why: "an emulated processor ends no second run in its time",
    },
    LeftOut {
        package: "terrace",
        test: "verdicts::",
        why: "a cause and what it slows down need a processor each, and the emulated machine has one",
    },
    LeftOut {
        package: "terrace",
        test: "the_table_is_rectangular_csv",
        why: "an emulated processor ends no trial in half a second",
    },
    LeftOut {
        package: "viewer",
        test: "clients_without_the_secret_keep_out_none_that_has_it",
        why: "an emulated server does not get on with 200 clients at once",
    },
];

/// Runs the tests of `packages`, of all without any, in guests with this processor.
///
/// # Errors
/// When a part of the toolchain is missing, and when tests fail: of which packages.
pub(crate) fn run(arch: Arch, packages: &[String]) -> Result<(), Error> {
    let root = workspace::current_root()?;
    let all = crates(&root)?;
    if let Some(unknown) = packages.iter().find(|name| !all.contains(name)) {
        return Err(Error::Usage(format!("there is no crate {unknown}")));
    }
    let wanted = if packages.is_empty() { &all } else { packages };
    let archived = TempDir::new();
    archive(&root, archived.path())?;
    let mut failed = Vec::new();
    for package in wanted {
        println!("== {package} on {}", arch.target());
        let temporary = vm::temporary_directory(&root, arch)?;
        if run_package(&root, &temporary, archived.path(), arch, package) != 0 {
            failed.push(package.as_str());
        }
    }
    println!("{} crates, {} with failures: {}", wanted.len(), failed.len(), failed.join(" "));
    if failed.is_empty() { Ok(()) } else { Err(Error::Failed("test: other processor".to_owned())) }
}

/// The crates that a guest can test: this one builds guests, and there are none within them.
fn crates(root: &Path) -> Result<Vec<String>, Error> {
    let metadata = workspace::metadata(root)?;
    let packages = workspace::packages(&metadata)?.into_iter().map(|package| package.name);
    Ok(packages.filter(|name| root.join("crates").join(name).is_dir()).collect())
}

/// Puts what tests read of the tree into a file of `directory`.
fn archive(root: &Path, directory: &Path) -> Result<(), Error> {
    let read = |path: &String| READ.iter().any(|start| path.starts_with(start));
    let files: Vec<String> = tree::list(root)?.into_iter().filter(read).collect();
    let path = directory.join(ARCHIVE);
    let file = fs::File::create(&path).map_err(Error::io("make", &path))?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(root).args(["--null", "-T", "-", "-cf", "-"]);
    let started = tar.stdin(Stdio::piped()).stdout(file).spawn();
    let mut tar = started.map_err(Error::io("start", Path::new("tar")))?;
    if let Some(mut names) = tar.stdin.take() {
        // If tar ends early, its status says so.
        let _ = names.write_all(files.join("\0").as_bytes());
    }
    let ended = tar.wait().map_err(Error::io("wait for", Path::new("tar")))?;
    if ended.success() { Ok(()) } else { Err(Error::Failed(format!("tar: {ended}"))) }
}

/// The status of the guest.
fn run_package(root: &Path, temporary: &Path, archived: &Path, arch: Arch, package: &str) -> u8 {
    let left_out: Vec<&LeftOut> =
        LEFT_OUT.iter().filter(|left_out| left_out.package == package).collect();
    for LeftOut { test, why, .. } in &left_out {
        println!("left out: {test}: {why}");
    }
    let skips: String =
        left_out.iter().map(|left_out| format!(" --skip {}", left_out.test)).collect();
    let folder = quoted(&root.join("crates").join(package).to_string_lossy());
    let [root, temporary] = [root, temporary].map(|path| quoted(&path.to_string_lossy()));
    let script = format!(
        "mkfs.ext4 -q /dev/vm/tmp && mount /dev/vm/tmp /tmp || exit 125\n\
         mkdir -p {temporary} && mount --bind $(mktemp -d) {temporary} || exit 125\n\
         mkdir -p {root} && tar -xf {ARCHIVE} -C {root} || exit 125\n\
         cd {folder}; failed=0\n\
         for test in /tests/*; do\n\
         echo \"== $test\"; timeout {TEST_S} \"$test\"{skips} || {{ echo \"status $?\"; failed=1; }}\n\
         done\n\
         exit $failed"
    );
    let mut words = vec!["--arch", arch.name(), "--tests", package];
    words.extend(["--mem", MEMORY, "--timeout", TIMEOUT_S, "--disk", FILES_DISK]);
    words.extend(PACKAGES.iter().flat_map(|package| ["--package", package]));
    words.extend(MODULES.iter().flat_map(|module| ["--module", module]));
    let archived = archived.to_string_lossy();
    words.extend(["--dir", &archived, "--", &script]);
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    vm::run(&words)
}
