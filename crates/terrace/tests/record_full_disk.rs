//! A flight recorder and a recording without space, without a directory, and with neighbours
//! that must not disturb them.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::{Ran, command, has_program, run, run_command, terminate, terrace};
use testkit::{TempDir, Tmpfs};

/// The user that another process becomes.
const OTHER_UID: u32 = 65_534;

/// How often a test looks whether something has come; it ends long before, or never.
const LOOKS: u32 = 3_000;

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let came = (0..LOOKS).any(|_| {
        sleep(Duration::from_millis(20));
        is_there()
    });
    assert!(came, "{what} did not come");
}

fn segments(ring: &Path) -> Vec<String> {
    let entries = fs::read_dir(ring).into_iter().flatten().flatten();
    let all = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = all.filter(|name| name.ends_with(".trec")).collect();
    names.sort();
    names
}

/// A ring with a segment each second, in the background.
fn ring_in(ring: &Path) -> Child {
    let line = "record --trace none --rate 50 --keep 24s --keep-bytes 256k -o";
    let mut command = command(&format!("{line} {}", ring.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// It lived on after the first failed write, silent, and never recorded again.
#[test]
fn a_ring_goes_on_when_there_is_space_again_and_counts_what_it_lost() {
    let tmpfs = match Tmpfs::mount(300 << 10) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let (ring, filler) = (tmpfs.path().join("ring"), tmpfs.path().join("filler"));
    let child = ring_in(&ring);
    wait_for("the second segment", || segments(&ring).len() >= 2);
    let mut zeros = fs::File::create(&filler).unwrap();
    std::io::copy(&mut std::io::repeat(0), &mut zeros).unwrap_err();
    // Whatever the ring frees goes to the filler, until the recorder has seen that.
    for _ in 0..30 {
        sleep(Duration::from_millis(100));
        let _ = std::io::copy(&mut std::io::repeat(0), &mut zeros);
    }
    let last = segments(&ring).pop();
    drop(zeros);
    fs::remove_file(&filler).unwrap();
    wait_for("another segment", || {
        let all = segments(&ring);
        all.len() >= 3 && all.last() > last.as_ref()
    });
    let ran = terminate(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.err.matches("lost until there is room").count(), 1, "{ran:?}");
    assert!(ran.err.contains("were lost for lack of space"), "{ran:?}");
    let json = terrace(&format!("export --no-redact --to json {}", ring.display())).done();
    assert!(json.contains("were lost: no space left on device"));
}

/// A supervisor can only start again what has ended.
#[test]
fn a_recorder_ends_when_its_directory_or_file_is_gone_or_full() {
    let directory = TempDir::new();
    let ring = directory.join("ring");
    let child = ring_in(&ring);
    wait_for("a segment", || !segments(&ring).is_empty());
    fs::remove_dir_all(&ring).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the directory was removed"), "{ran:?}");

    let file = directory.join("x.trec");
    let record = |file: &Path| {
        let mut command = command(&format!("record --trace none -o {}", file.display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let child = record(&file);
    wait_for("the file", || file.metadata().is_ok_and(|about| about.len() > 0));
    fs::remove_file(&file).unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("was removed or replaced"), "{ran:?}");
}

/// Before the command begins nothing may be left that is in the way of the next run.
#[test]
fn a_full_disk_before_the_command_leaves_no_file() {
    let tmpfs = match Tmpfs::mount(4 << 10) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    fs::write(tmpfs.path().join("filler"), [1; 4 << 10]).unwrap();
    let file = tmpfs.path().join("x.trec");
    let ran = run(run_command(&["-o", file.to_str().unwrap()], &["echo", "ran"]));
    ran.refused(125, "no space");
    assert!(!file.exists());
}

/// Any user could lock a directory that all may read, and keep the recorder from its work.
#[test]
fn another_user_cannot_lock_a_ring() {
    if !testkit::is_root() || !has_program("flock") || !has_program("setpriv") {
        return testkit::skip("root, flock and setpriv (util-linux)");
    }
    let directory = TempDir::new();
    let ring = directory.join("ring");
    fs::create_dir(&ring).unwrap();
    fs::set_permissions(&ring, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("record --trace none --for 100ms --keep 1h -o {}", ring.display());
    terrace(&line).done();
    for name in ["", "terrace.lock"] {
        let locked = ring.join(name);
        let mut locker = Command::new("setpriv");
        locker.args(["--reuid=65534", "--regid=65534", "--clear-groups", "flock"]);
        locker.arg(&locked).args(["sleep", "1000"]).stderr(Stdio::null());
        let mut locker = locker.spawn().unwrap();
        sleep(Duration::from_millis(300));
        let ran = terrace(&line);
        let _ = Command::new("pkill").args(["-P", &locker.id().to_string()]).status();
        let _ = locker.kill();
        locker.wait().unwrap();
        ran.done();
    }
    // A second recorder of the same user is kept out.
    let child = ring_in(&ring);
    let refused = || terrace(&line).err.contains("another recorder writes to it");
    wait_for("a recorder that has the lock", refused);
    terminate(child);
}

#[test]
fn a_ring_in_a_directory_of_another_user_is_refused() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    let ring = directory.join("ring");
    fs::create_dir(&ring).unwrap();
    let line = format!("record --for 100ms --keep 1h -o {}", ring.display());
    chown(&ring, Some(OTHER_UID), Some(OTHER_UID)).unwrap();
    terrace(&line).refused(3, "belongs to another user");
    chown(&ring, Some(0), Some(0)).unwrap();
    fs::set_permissions(&ring, fs::Permissions::from_mode(0o777)).unwrap();
    terrace(&line).refused(3, "others may write");
    assert_eq!(fs::read_dir(&ring).unwrap().count(), 0);
}
