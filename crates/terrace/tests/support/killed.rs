//! `terrace` killed at each of the calls that change something, by `strace`.
//!
//! Strace counts the calls of each name by itself, so a point is "the third fsync". It kills before
//! the call takes effect.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a store, a mount and a record are changed with. Opens and `ioctl` are not among them, as
/// most change nothing: what one of them made or set is there when the next of these calls is made.
const CHANGING_CALLS: &str = "mkdirat,mknodat,pwrite64,pwritev,write,fallocate,ftruncate,fsync,\
                              fdatasync,syncfs,renameat,renameat2,unlinkat,linkat,symlinkat,flock,\
                              sync_file_range,fchmod,fchmodat,fchown,fchownat,fsetxattr,utimensat,\
                              fsopen,fsconfig,fsmount,open_tree,move_mount,mount_setattr,mount,\
                              umount2";
/// The number of SIGKILL.
const KILL: i32 = 9;

/// The n-th call of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KillPoint {
    pub call: String,
    pub number: usize,
}

/// Runs `terrace` with the words of `line`, killed at `point`. Whether it got there.
pub fn is_killed_at(line: &str, point: &KillPoint) -> bool {
    let KillPoint { call, number } = point;
    let inject = format!("inject={call}:signal=KILL:when={number}");
    let mut command = traced(line, call, Path::new("/dev/null"), &["-e", &inject]);
    // Strace ends as the program that it follows does.
    command.status().unwrap().signal() == Some(KILL)
}

/// Runs `terrace` to its end; its calls that change something, in their order. Those of several
/// threads are counted apart, as strace does.
pub fn kill_points(line: &str) -> Vec<KillPoint> {
    let directory = testkit::TempDir::new();
    let log = directory.join("log");
    assert!(traced(line, CHANGING_CALLS, &log, &[]).status().unwrap().success(), "{line}");
    let mut counts = BTreeMap::<(String, String), usize>::new();
    let mut points = Vec::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        // "123   fsync(3) = 0"; other lines are ends of calls and of threads.
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        if call.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            continue;
        }
        let count = counts.entry((thread.to_owned(), call.to_owned())).or_default();
        *count += 1;
        let point = KillPoint { call: call.to_owned(), number: *count };
        if !points.contains(&point) {
            points.push(point);
        }
    }
    points
}

/// Both ends, and one of each of `stretches`; all with `TERRACE_KILL_AT_ALL_CALLS`.
pub fn sample(points: &[KillPoint], stretches: usize) -> Vec<KillPoint> {
    if points.len() <= stretches || std::env::var_os("TERRACE_KILL_AT_ALL_CALLS").is_some() {
        return points.to_vec();
    }
    let mut random = model::random::Random(stretches as u64);
    let drawn = (0..stretches).map(|stretch| {
        let begin = points.len() * stretch / stretches;
        let end = points.len() * (stretch + 1) / stretches;
        begin + random.below((end - begin) as u64) as usize
    });
    let mut all: Vec<usize> = drawn.chain([0, points.len() - 1]).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|at| points[at].clone()).collect()
}

fn traced(line: &str, calls: &str, log: &Path, more: &[&str]) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(log);
    strace.arg("-e").arg(format!("trace={calls}")).args(more);
    strace.arg("--").arg(super::TERRACE).args(line.split(' '));
    strace.stdout(Stdio::null()).stderr(Stdio::null());
    strace
}
