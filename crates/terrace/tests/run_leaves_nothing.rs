//! What a process of Terrace leaves behind when it ends: nothing that holds its caller's group or
//! directory, and no program that `lab` started as another user.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{TERRACE, in_group, run};
use testkit::{Cgroup, Tmpfs};

/// Far longer than a signal takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn after_run_the_group_and_the_directory_of_the_caller_are_free() {
    for group in [Cgroup::v2(), Cgroup::v1_memory(256 << 20)] {
        let group = match group {
            Ok(group) => group,
            Err(why) => {
                testkit::skip(why);
                continue;
            }
        };
        let ran = run(in_group(&group, "run --quiet -- true"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fs::remove_dir(group.path()).expect("a process is left in the group");
    }
    let directory = match Tmpfs::mount(1 << 20) {
        Ok(directory) => directory,
        Err(why) => return testkit::skip(why),
    };
    let mut command = support::command("run --quiet -- true");
    command.current_dir(directory.path());
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let unmounted = Command::new("umount").arg(directory.path()).output().unwrap();
    let text = String::from_utf8_lossy(&unmounted.stderr);
    assert!(unmounted.status.success(), "{text}");
}

#[test]
fn a_program_of_the_lab_ends_with_it_also_as_another_user() {
    let line =
        format!("{TERRACE} lab-process member --user 65534:65534 -- sleep 1000 & echo $!; wait");
    let mut parent = Command::new("sh")
        .args(["-c", &line])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    output.read_line(&mut pid).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    let name = || fs::read_to_string(process.join("comm")).unwrap_or_default();
    let start = Instant::now();
    while name() != "sleep\n" {
        if !process.exists() || start.elapsed() > PATIENCE {
            parent.kill().unwrap();
            parent.wait().unwrap();
            return testkit::skip("root, to become another user");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    let start = Instant::now();
    while name() == "sleep\n" {
        let is_over = start.elapsed() > PATIENCE;
        if is_over {
            let _ = Command::new("kill").args(["-KILL", pid.trim()]).status();
        }
        assert!(!is_over, "it outlives its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
}
