//! Files of other users that are made to hold root's commands up: on a mount whose server no longer
//! answers, sparse ones of exabytes, reserved address space, hostile snapshots. Parts need root.
#![allow(clippy::unwrap_used, reason = "a test program")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]

mod support;

use place::read_plan::FileIdentity;
use place::workingset::snapshot::{self, CachedFile, ProcessSnapshot, Snapshot};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::command;
use testkit::{Dead, DeadFuse, TempDir};

/// Far more than any of these takes, also on a busy machine; without the bounds it is hours.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is started while another test has a dead file open waits in its exec, which
/// closes that file and asks its server; and whoever reads its `/proc/PID/stat` waits for it.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of `terrace` with the words of `line`; `None` if it does not end.
fn ended(line: &str) -> Option<(Option<i32>, String)> {
    let directory = TempDir::new();
    let path = directory.join("output");
    let output = File::create(&path).unwrap();
    let mut child = command(line)
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            let text = std::fs::read_to_string(&path).unwrap();
            return Some((status.code(), text));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    // It may not die before its server is gone, which the caller's fixture sees to.
    std::thread::spawn(move || child.wait());
    None
}

/// A dead file that a process holds open; and whose.
fn held() -> Result<(DeadFuse, u32), String> {
    let mut dead = DeadFuse::mount()?;
    let holder = dead.hold()?;
    dead.stop(Dead::Silent);
    Ok((dead, holder))
}

#[test]
fn a_file_whose_server_is_dead_is_left_out_and_named() {
    let _alone = alone();
    let (dead, holder) = match held() {
        Ok(held) => held,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let noted = directory.join("snapshot");
    let lines = [
        format!("warm show --pid {holder}"),
        format!("warm show --pid {holder} --json"),
        format!("warm snapshot {} --pid {holder}", noted.display()),
        format!("warm restore --pid {holder} --dry-run"),
        "hog --size 1M --hold 0s".to_owned(),
    ];
    for line in lines {
        let (code, text) = ended(&line).unwrap_or_else(|| panic!("{line}: does not end"));
        let point = dead.path().display().to_string();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("left out") && words.contains("(fuse)"), "{line}: {code:?} {text}");
        // A line of a page may break within the path.
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        assert!(letters(&text).contains(&letters(&point)), "{line}: {text}");
    }
}

#[test]
fn a_mapped_file_whose_server_is_dead_is_left_out() {
    let _alone = alone();
    let dead = match DeadFuse::mount() {
        Ok(dead) => dead,
        Err(need) => return testkit::skip(need),
    };
    let file = File::open(dead.path()).unwrap();
    let mapped = sys::file::MappedFile::part(&file, 0, 4096).unwrap();
    // Closing asks the server, and the mapping stays.
    drop(file);
    dead.stop(Dead::Silent);
    let own = std::process::id();
    let shown = ended(&format!("warm show --pid {own}"));
    drop(dead);
    drop(mapped);
    let (_, text) = shown.expect("does not end");
    assert!(text.contains("(fuse)"), "{text}");
}

#[test]
fn a_tree_is_walked_past_a_mount_whose_server_is_dead() {
    let _alone = alone();
    let (dead, _) = match held() {
        Ok(held) => held,
        Err(need) => return testkit::skip(need),
    };
    let tree = dead.path().parent().unwrap().display().to_string();
    let directory = TempDir::new();
    let noted = directory.join("snapshot").display().to_string();
    let own = std::process::id();
    for line in [
        format!("warm snapshot {noted} --pid {own} --tree {tree}"),
        format!("warm evict {tree}"),
        format!("warm restore --metadata {tree}"),
    ] {
        let (code, text) = ended(&line).unwrap_or_else(|| panic!("{line}: does not end"));
        assert_eq!(code, Some(0), "{line}: {text}");
    }
}

#[test]
fn sparse_files_of_other_users_cost_nothing() {
    let _alone = alone();
    const FILES: usize = 600;
    let directory = TempDir::new();
    let mut held = Vec::new();
    for number in 0..FILES {
        let file = File::create(directory.join(number.to_string())).unwrap();
        // 16 TiB less a page: the longest file of ext4.
        if file.set_len((16 << 40) - 4096).is_err() {
            return testkit::skip("a file system that takes files of 16 TiB");
        }
        held.push(file);
    }
    let own = std::process::id();
    let (code, text) = ended(&format!("warm show --pid {own}")).expect("does not end");
    assert_eq!(code, Some(0), "{text}");
}

/// A snapshot of one file, and of this process, in a directory of its own.
fn hostile(path: &Path, cached: Vec<std::ops::Range<u64>>) -> (TempDir, PathBuf) {
    let directory = TempDir::new();
    let identity = FileIdentity::of(&std::fs::metadata(path).unwrap());
    let most = u64::MAX / 4096 * 4096;
    let of_process = ProcessSnapshot {
        pid: std::process::id(),
        start_ticks: 1,
        name: "x".to_owned(),
        executable: None,
        present: vec![0..most],
    };
    let file = CachedFile { path: path.to_owned(), identity, cached };
    let taken = Snapshot { files: vec![file], processes: vec![of_process], ..Snapshot::default() };
    let noted = directory.join("snapshot");
    snapshot::write(&taken, &noted).unwrap();
    (directory, noted)
}

#[test]
fn a_hostile_snapshot_ends() {
    let _alone = alone();
    let (on_disk, in_ram) = (TempDir::new(), TempDir::in_dir("/dev/shm".as_ref()));
    let mut tried = 0;
    for (directory, bytes) in [(&in_ram, (1u64 << 63) - 4097), (&on_disk, (16 << 40) - 4096)] {
        let path = directory.join("sparse");
        if File::create(&path).unwrap().set_len(bytes).is_err() {
            continue;
        }
        tried += 1;
        let most = u64::MAX / 4096 * 4096;
        let many = (0..1u64 << 17).map(|number| number * 8192..number * 8192 + 4096);
        for cached in [vec![0..most], many.collect()] {
            let (_directory, noted) = hostile(&path, cached);
            for option in ["--dry-run", "--only files"] {
                let line = format!("warm restore {option} {}", noted.display());
                let (code, text) = ended(&line).unwrap_or_else(|| panic!("{line}: does not end"));
                assert!(matches!(code, Some(0 | 1)), "{line}: {code:?} {text}");
            }
        }
    }
    if tried == 0 {
        testkit::skip("a file system that takes long files");
    }
}

#[test]
fn a_snapshot_does_not_lead_over_a_link_to_a_dead_server() {
    let _alone = alone();
    let (dead, _) = match held() {
        Ok(held) => held,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let link = directory.join("link");
    std::fs::write(&link, "x").unwrap();
    let (_directory, noted) = hostile(&link, vec![0..4096]);
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(dead.path(), &link).unwrap();
    let line = format!("warm restore --only files {}", noted.display());
    let (code, text) = ended(&line).expect("does not end");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("changed or is gone"), "{text}");
}
