//! What an ordinary user records, and who is root in a container with few rights: none of the
//! suspects that root finds guilty of the same work is cleared, as the witness that root had was
//! absent.

use crate::support::{TERRACE, print_figure, terrace, valid_explanation};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::{Cgroup, TempDir};

/// How a recorder is started: its words come before those of the program.
const ROOT: &[&str] = &["env"];
const ORDINARY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const CONTAINER: &[&str] = &[
    "unshare",
    "--pid",
    "--mount",
    "--cgroup",
    "--fork",
    "--mount-proc",
    "--kill-child",
    "setpriv",
    "--bounding-set=-all,+chown,+dac_override,+fowner,+kill,+setuid,+setgid,+net_bind_service",
];

/// A piece of work that one suspect is guilty of.
struct Work {
    shell: &'static str,
    guilty: &'static [&'static str],
    group: fn() -> Result<Cgroup, String>,
}

/// `FILE` is one of 96 MB, not cached; `OUT` can be made.
const WORKS: [Work; 4] = [
    Work {
        shell: "for i in 1 2 3; do cat FILE >/dev/null; done",
        guilty: &["reads_from_device", "cache_too_small", "memory_limit"],
        group: || Cgroup::v1_memory(48 << 20),
    },
    Work {
        shell: "dd if=/dev/zero of=OUT bs=4k count=500 oflag=dsync 2>/dev/null",
        guilty: &["small_sync_writes", "writes_to_device"],
        group: || Cgroup::v1_memory(256 << 20),
    },
    Work {
        shell: "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done",
        guilty: &["cpu_limit"],
        group: || Cgroup::v1_cpu(20_000, 100_000),
    },
    Work { shell: "sleep 1", guilty: &["timer_sleep"], group: || Cgroup::v1_memory(256 << 20) },
];

/// The words for [`testkit::skip`] if a recorder cannot be started so.
fn can_start(words: &[&str]) -> Result<(), String> {
    let mut probe = Command::new(words[0]);
    probe.args(&words[1..]).args([TERRACE, "--version"]).stdin(Stdio::null());
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("`{}`, and a binary that everyone may run", words.join(" "))),
    }
}

/// What is said of `work`, as it was recorded by a recorder that was started with `words`.
fn explained(work: &Work, words: &[&str], directory: &Path) -> Result<Value, String> {
    let group = (work.group)()?;
    let (file, out) = (directory.join("data"), directory.join("out"));
    std::fs::write(&file, vec![7; 96 << 20]).unwrap();
    let of = format!("of={}", file.display());
    // Written, and out of the cache.
    let mut evict = Command::new("dd");
    evict.args(["if=/dev/null", &of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"]);
    assert!(evict.stderr(Stdio::null()).status().unwrap().success());
    let recording = directory.join("work.trec");
    for old in [&recording, &out] {
        let _ = std::fs::remove_file(old);
    }
    let shell = work.shell.replace("FILE", file.to_str().unwrap());
    let shell = shell.replace("OUT", out.to_str().unwrap());
    let mut command = group.command(words[0]);
    command.args(&words[1..]).args([TERRACE, "run", "--no-group", "--quiet", "-o"]);
    command.arg(&recording).args(["--", "sh", "-c", &shell]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    let line = format!("explain --json {}", recording.display());
    Ok(valid_explanation(&terrace(&line).done()))
}

fn ids(explanation: &Value, list: &str) -> BTreeSet<String> {
    let all = explanation[list].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn cleared_blindly(words: &[&str]) -> Result<Vec<String>, String> {
    can_start(ROOT)?;
    can_start(words)?;
    let directory = TempDir::new();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let mut wrong = Vec::new();
    for work in &WORKS {
        let of_root = explained(work, ROOT, directory.path())?;
        let mut guilty = ids(&of_root, "findings");
        // What runs beside the one need not run beside the other.
        guilty.remove("cpu_contention");
        if !work.guilty.iter().any(|id| guilty.contains(*id)) {
            return Err(format!("a disk for which `{}` is slow: {guilty:?}", work.shell));
        }
        let cleared = ids(&explained(work, words, directory.path())?, "cleared");
        let blindly = guilty.intersection(&cleared).map(|id| format!("{id} of `{}`", work.shell));
        wrong.extend(blindly);
    }
    print_figure("cleared_blindly", wrong.len() as f64);
    Ok(wrong)
}

#[test]
fn an_ordinary_user_clears_nothing_that_root_finds_guilty() {
    match cleared_blindly(ORDINARY) {
        Ok(wrong) => assert!(wrong.is_empty(), "{wrong:#?}"),
        Err(need) => testkit::skip(need),
    }
}

#[test]
fn root_of_a_container_clears_nothing_that_root_finds_guilty() {
    match cleared_blindly(CONTAINER) {
        Ok(wrong) => assert!(wrong.is_empty(), "{wrong:#?}"),
        Err(need) => testkit::skip(need),
    }
}
