//! Another user of the machine plants links, files and directories where root writes: results,
//! the directory of an experiment, the log of a database. Nothing outside changes.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{command, has_program, terrace};
use testkit::TempDir;

/// The number of `nobody`.
const OTHER: u32 = 65534;
/// Far longer than a database needs to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory of another user; says what it needs if this test cannot make one.
fn directory_of_another_user(parent: &TempDir) -> Option<PathBuf> {
    let path = parent.join("theirs");
    fs::create_dir(&path).unwrap();
    match chown(&path, Some(OTHER), Some(OTHER)) {
        Ok(()) => Some(path),
        Err(_) => {
            testkit::skip("root, to be attacked by another user");
            None
        }
    }
}

/// A link of another user.
fn plant(link: &Path, target: &Path) {
    symlink(target, link).unwrap();
    lchown(link, Some(OTHER), Some(OTHER)).unwrap();
}

#[test]
fn a_result_is_not_written_through_a_link_of_another_user() {
    let parent = TempDir::new();
    let Some(theirs) = directory_of_another_user(&parent) else {
        return;
    };
    let secret = parent.join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("file"), "kept").unwrap();
    plant(&theirs.join("file"), &secret.join("file"));
    plant(&theirs.join("way"), &secret);
    plant(&theirs.join("new"), &secret.join("new"));
    for name in ["file", "way/file", "way/new", "new"] {
        let line = format!("measure memcpy --list -o {}", theirs.join(name).display());
        let ran = terrace(&line);
        assert_eq!(ran.code, Some(3), "{name}: {ran:?}");
        assert!(ran.err.contains("symbolic link that another user can change"), "{name}: {ran:?}");
    }
    assert_eq!(fs::read_to_string(secret.join("file")).unwrap(), "kept");
    assert!(!secret.join("new").exists());
    // A sticky directory that all may write to: the link is its maker's there as well.
    let shared = parent.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    plant(&shared.join("file"), &secret.join("file"));
    let line = format!("measure memcpy --list -o {}", shared.join("file").display());
    assert_eq!(terrace(&line).code, Some(3));
    assert_eq!(fs::read_to_string(secret.join("file")).unwrap(), "kept");
    // What root itself links is written through, and the link stays one.
    symlink(secret.join("file"), parent.join("own")).unwrap();
    terrace(&format!("measure memcpy --list -o {}", parent.join("own").display())).done();
    assert!(parent.join("own").is_symlink());
    assert_ne!(fs::read_to_string(secret.join("file")).unwrap(), "kept");
}

#[test]
fn a_result_that_is_not_redacted_is_its_owners_only() {
    let directory = TempDir::new();
    let mode = |name: &str| fs::metadata(directory.join(name)).unwrap().mode() & 0o777;
    let recording = directory.join("a.trec");
    let recorded = format!("run -q -o {} -- true", recording.display());
    terrace(&recorded).done();
    for (name, options) in [("open.csv", ""), ("closed.csv", "--no-redact")] {
        let (from, to) = (recording.display(), directory.join(name));
        let line = format!("export --to csv {options} {from} -o {}", to.display());
        terrace(&line).done();
    }
    for (name, options) in [("open.html", ""), ("closed.html", "--no-redact")] {
        let (from, to) = (recording.display(), directory.join(name));
        let line = format!("view {options} {from} --html {}", to.display());
        terrace(&line).done();
    }
    let verdict = directory.join("run.json");
    terrace(&format!("run -q --json {} -- true", verdict.display())).done();
    for private in ["a.trec", "closed.csv", "closed.html", "run.json"] {
        assert_eq!(mode(private), 0o600, "{private}");
    }
    for redacted in ["open.csv", "open.html"] {
        assert_ne!(mode(redacted) & 0o044, 0, "{redacted}");
    }
    // One that exists keeps its mode, whatever it is replaced by.
    fs::set_permissions(directory.join("open.csv"), Permissions::from_mode(0o640)).unwrap();
    let (from, to) = (recording.display(), directory.join("open.csv"));
    terrace(&format!("export --to csv {from} -o {}", to.display())).done();
    assert_eq!(mode("open.csv"), 0o640);
    let left = directory.names();
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}

#[test]
fn an_experiment_keeps_nothing_in_a_directory_of_another_user() {
    let parent = TempDir::new();
    let Some(theirs) = directory_of_another_user(&parent) else {
        return;
    };
    let secret = parent.join("secret");
    fs::write(&secret, "kept").unwrap();
    let line = format!("lab run memory-copy-2001 --out {}", theirs.display());
    let ran = terrace(&line);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("it belongs to another user"), "{ran:?}");
    plant(&theirs.join("result.json"), &secret);
    assert_eq!(terrace(&line).code, Some(2));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
    let ran = terrace(&format!(
        "lab run recovery-2012 --app toucher --memory 32m --out {} --disk {}",
        parent.join("out").display(),
        theirs.display()
    ));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("it belongs to another user"), "{ran:?}");
}

/// The directory of the database as soon as it belongs to another user.
fn database_directory(disk: &Path) -> Option<PathBuf> {
    let workplaces = fs::read_dir(disk).ok()?.flatten();
    let mut directories = workplaces.map(|entry| entry.path().join("postgresql"));
    directories.find(|path| fs::metadata(path).is_ok_and(|about| about.uid() != 0))
}

#[test]
fn the_log_of_a_database_is_out_of_reach_of_its_user() {
    let parent = TempDir::new();
    if directory_of_another_user(&parent).is_none() {
        return;
    }
    if !Path::new("/usr/lib/postgresql").is_dir() && !has_program("initdb") {
        return testkit::skip("PostgreSQL");
    }
    if let Err(why) = testkit::Cgroup::v1_memory(64 << 20) {
        return testkit::skip(why);
    }
    // The user of the database has to pass through.
    fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
    let disk = parent.join("disk");
    fs::create_dir(&disk).unwrap();
    let options = "--app postgresql --memory 32m --repeat 1 --runs 1 --limit 5s";
    let mut lab = command(&format!("lab run recovery-2012 {options}"))
        .arg("--out")
        .arg(parent.join("out"))
        .arg("--disk")
        .arg(&disk)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let database = loop {
        if let Some(found) = database_directory(&disk) {
            break found;
        }
        assert!(start.elapsed() < PATIENCE, "no database was started");
        assert!(lab.try_wait().unwrap().is_none(), "the lab ended early");
        std::thread::sleep(Duration::from_millis(5));
    };
    let user = fs::metadata(&database).unwrap().uid();
    let (mut processes, mut wrong) = (0, Vec::new());
    while processes == 0 && start.elapsed() < PATIENCE && lab.try_wait().unwrap().is_none() {
        // What the user of the database could exchange must not be open for it in root's name.
        for (pid, error_file) in error_files_of(user) {
            processes += 1;
            let about = fs::metadata(&error_file).unwrap();
            let inside = error_file.starts_with(&database);
            if inside || about.uid() != 0 || about.mode() & 0o077 != 0 {
                wrong.push(format!("{pid}: {}", error_file.display()));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // A signal that it handles, so that it removes its swap.
    interrupt(lab.id());
    lab.wait().unwrap();
    assert!(processes > 0, "no process of the database was seen");
    assert_eq!(wrong, [""; 0]);
}

/// The processes of `user` below the lab with the files that are their standard error.
fn error_files_of(user: u32) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user))
        .filter_map(|pid| Some((pid, fs::read_link(format!("/proc/{pid}/fd/2")).ok()?)))
        .filter(|(_, file)| file.to_string_lossy().contains("terrace-lab-"))
        .collect()
}

fn interrupt(pid: u32) {
    let pid = pid.to_string();
    let status = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(status.unwrap().success());
}
