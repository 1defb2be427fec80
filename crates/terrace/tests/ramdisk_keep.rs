//! `terrace ramdisk keep` on real RAM disks: it saves again and again and at its end, goes on where
//! a save fails, never saves what is not the directory that it keeps, and leaves no users frozen.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use support::described::{assert_is, described};
use support::{Ran, as_ordinary_user, command, terminate, terrace};
use testkit::{TempDir, Tmpfs};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A keeper, and what it reports to its service manager.
struct Kept {
    child: Child,
    messages: Receiver<String>,
    /// Of the socket. The thread that reads it may outlive the test program's main function, and
    /// would then leave it behind.
    _directory: TempDir,
}

impl Kept {
    /// Starts one and waits until it is ready.
    fn start(command: Command) -> Self {
        let kept = Self::begin(command);
        kept.await_message("READY=1\nSTATUS=");
        kept
    }

    /// Starts one, with a socket of its own.
    fn begin(mut command: Command) -> Self {
        let directory = TempDir::new();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = directory.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        command.env("NOTIFY_SOCKET", &path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let (sender, messages) = std::sync::mpsc::channel();
        // The kernel keeps ten messages, so they are read all the time.
        std::thread::spawn(move || {
            socket.set_read_timeout(Some(LIMIT)).unwrap();
            let mut bytes = [0; 4096];
            while let Ok(length) = socket.recv(&mut bytes) {
                let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { child, messages, _directory: directory }
    }

    fn message(&self) -> String {
        self.messages.recv_timeout(LIMIT).unwrap()
    }

    /// Waits for a message with these words.
    fn await_message(&self, words: &str) -> String {
        loop {
            let message = self.message();
            if message.contains(words) {
                return message;
            }
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Ends by itself.
    fn ended(self) -> Ran {
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn terminated(self) -> Ran {
        terminate(self.child)
    }
}

fn keep(source: &Path, store: &Path, more: &str) -> Command {
    keep_every("1s", source, store, more)
}

fn keep_every(every: &str, source: &Path, store: &Path, more: &str) -> Command {
    let (source, store) = (source.display(), store.display());
    command(&format!("ramdisk keep {source} --persist {store} --every {every} {more}"))
}

/// As [`keep`], around each save both commands, which are shell scripts.
fn keep_frozen(source: &Path, store: &Path, freeze: &str, thaw: &str) -> Command {
    let mut command = keep_every("1h", source, store, "");
    command.args(["--freeze-cmd", freeze, "--thaw-cmd", thaw]);
    command
}

/// The numbers of the generations.
fn generations(store: &Path) -> Vec<u64> {
    let ran = terrace(&format!("ramdisk list --persist {} --json", store.display()));
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let all = json["result"]["generations"].as_array().unwrap();
    all.iter().map(|one| one["generation"].as_u64().unwrap()).collect()
}

fn until(mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < limit, "it did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Restores the newest generation beside the store and compares it.
fn assert_holds(store: &Path, source: &Path) {
    let directory = TempDir::new();
    let back = directory.join("back");
    let newest = generations(store).last().copied().unwrap();
    let (store, to) = (store.display(), back.display());
    terrace(&format!("ramdisk extract {newest} {to} --persist {store}")).done();
    assert_is(&described(source), &back);
}

/// A tmpfs; without it the test is skipped.
fn ram_disk(bytes: u64) -> Option<Tmpfs> {
    match Tmpfs::mount(bytes) {
        Ok(tmpfs) => Some(tmpfs),
        Err(need) => {
            testkit::skip(need);
            None
        }
    }
}

#[test]
fn it_saves_again_and_again_and_at_its_end() {
    let Some(ram) = ram_disk(16 << 20) else { return };
    let disk = TempDir::new();
    let store = disk.join("store");
    fs::write(ram.path().join("first"), "1").unwrap();
    let kept = Kept::start(keep(ram.path(), &store, ""));
    assert_eq!(generations(&store), [1]);
    fs::write(ram.path().join("second"), "2").unwrap();
    kept.await_message("STATUS=saved as generation 2");
    // What is not changed makes no generation.
    kept.await_message("STATUS=saved as generation 2");
    fs::write(ram.path().join("third"), vec![3; 1 << 20]).unwrap();
    kept.signal("-TERM");
    kept.await_message("STOPPING=1\nSTATUS=saves for the last time");
    let ran = kept.ended();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    assert_holds(&store, ram.path());
}

/// Processor time of a process and its threads, in ticks, 100 to the second.
fn ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = text.rsplit_once(')').unwrap().1;
    let mut times = after_name.split_whitespace().skip(11).map(|field| field.parse::<u64>());
    times.next().unwrap().unwrap() + times.next().unwrap().unwrap()
}

/// Ends threads that wait for it, also when a test fails.
struct OverOnDrop<'a>(&'a AtomicBool);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Also within one file: all of what is to be saved may be one.
#[test]
fn a_large_file_is_saved_with_pauses_while_others_work() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if !(2..=4).contains(&processors) {
        return testkit::skip("two to four processors");
    }
    let Some(ram) = ram_disk(160 << 20) else { return };
    let disk = TempDir::new();
    fs::write(ram.path().join("large"), vec![7; 128 << 20]).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = OverOnDrop(&is_over);
        for _ in 1..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let started = Instant::now();
        let kept = Kept::start(keep_every("1h", ram.path(), &disk.join("store"), ""));
        let share = ticks(kept.pid()) as f64 / 100.0 / started.elapsed().as_secs_f64();
        drop(over);
        kept.terminated();
        // A tenth of all processors is its part then; without pauses it has one, and more.
        let most = 0.15 * processors as f64 + 0.15;
        assert!(share < most, "{share} of a processor");
    });
}

#[test]
fn a_second_keeper_is_refused_and_learns_of_the_first() {
    let disk = TempDir::new();
    let (source, store) = (disk.join("source"), disk.join("store"));
    fs::create_dir(&source).unwrap();
    let kept = Kept::start(keep(&source, &store, ""));
    let second = support::run(keep(&source, &store, ""));
    second.refused(3, &format!("process {}, since 20", kept.pid()));
    // Saving by hand is no second keeper.
    fs::write(source.join("file"), "x").unwrap();
    let line = format!("ramdisk save {} --persist {} --wait", source.display(), store.display());
    assert_eq!(terrace(&line).code, Some(0));
    // Its file outlives it, its lock does not.
    kept.signal("-KILL");
    kept.ended();
    assert_eq!(Kept::start(keep(&source, &store, "")).terminated().code, Some(0));
}

#[test]
fn what_is_not_the_directory_any_more_is_not_saved_over_it() {
    let Some(ram) = ram_disk(16 << 20) else { return };
    let point = ram.path().to_owned();
    let disk = TempDir::new();
    for (case, change) in ["umount \"$0\"", "mount -t tmpfs none \"$0\""].into_iter().enumerate() {
        let store = disk.join(format!("store{case}"));
        fs::write(point.join("file"), "dear").unwrap();
        let kept = Kept::start(keep(&point, &store, ""));
        let before = generations(&store);
        let changed = Command::new("sh").args(["-c", change]).arg(&point).status();
        assert!(changed.unwrap().success());
        let ran = kept.ended();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let last = ran.err.lines().last().unwrap();
        assert!(last.contains("it was unmounted or replaced"), "{last}");
        assert_eq!(generations(&store), before);
        // A new one is refused as well, until it is restored.
        support::run(keep(&point, &store, "")).refused(3, "is not the directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&point).status();
        assert!(mounted.unwrap().success());
    }
    for _ in 0..2 {
        let _ = Command::new("umount").arg(&point).status();
    }
}

#[test]
fn an_empty_ram_disk_is_restored_before_it_is_ready() {
    let Some(ram) = ram_disk(16 << 20) else { return };
    let disk = TempDir::new();
    let store = disk.join("store");
    // The first time there is nothing to restore.
    let kept = Kept::start(keep(ram.path(), &store, "--restore"));
    fs::create_dir(ram.path().join("directory")).unwrap();
    fs::write(ram.path().join("directory/file"), vec![7; 300_000]).unwrap();
    let before = described(ram.path());
    assert_eq!(kept.terminated().code, Some(0));
    let again = ram_disk(16 << 20).unwrap();
    let kept = Kept::start(keep(again.path(), &store, "--restore"));
    assert_is(&before, again.path());
    // What its users remove stays removed, also if they remove everything.
    fs::remove_dir_all(again.path().join("directory")).unwrap();
    assert_eq!(kept.terminated().code, Some(0));
    let kept = Kept::start(keep(again.path(), &store, "--restore"));
    assert!(fs::read_dir(again.path()).unwrap().next().is_none());
    assert_eq!(kept.terminated().code, Some(0));
}

#[test]
fn a_full_store_keeps_its_last_generation_and_the_service_goes_on() {
    let (Some(ram), Some(disk)) = (ram_disk(16 << 20), ram_disk(2 << 20)) else { return };
    let store = disk.path().join("store");
    fs::write(ram.path().join("small"), vec![1; 100_000]).unwrap();
    let kept = Kept::start(keep(ram.path(), &store, ""));
    let large: Vec<u8> =
        (0..4_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(ram.path().join("large"), large).unwrap();
    kept.await_message("no space left");
    kept.await_message("no space left");
    assert_eq!(generations(&store), [1]);
    fs::remove_file(ram.path().join("large")).unwrap();
    fs::write(ram.path().join("other"), "room").unwrap();
    kept.await_message("STATUS=saved as generation 2");
    let ran = kept.terminated();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Ready, full, whole again: what fails again and again is said once.
    assert_eq!(ran.err.lines().count(), 3, "{ran:?}");
    assert_holds(&store, ram.path());
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_rest_is_saved() {
    let disk = TempDir::new();
    let (source, store) = (disk.join("source"), disk.join("store"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("readable"), "x").unwrap();
    let (from, to) = (source.display(), store.display());
    let line = format!("ramdisk keep {from} --persist {to} --every 1s");
    let Some(command) = as_ordinary_user(&line) else {
        return testkit::skip("root, to become an ordinary user");
    };
    for path in [disk.path(), &source] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    let kept = Kept::start(command);
    fs::write(source.join("secret"), "x").unwrap();
    fs::set_permissions(source.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let said = kept.await_message("entries are not saved as they are");
    assert!(said.contains("secret"), "{said}");
    let ran = kept.terminated();
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

/// Scripts that note what they do in a file.
fn noting(log: &Path, freeze: &str) -> [String; 2] {
    let log = log.display();
    [format!("echo freeze >>{log}; {freeze}"), format!("echo thaw >>{log}")]
}

fn started(disk: &TempDir, freeze: &str) -> (Kept, [PathBuf; 2]) {
    let (source, store, log) = (disk.join("source"), disk.join("store"), disk.join("log"));
    fs::create_dir(&source).unwrap();
    let [freeze, thaw] = noting(&log, freeze);
    let kept = Kept::begin(keep_frozen(&source, &store, &freeze, &thaw));
    until(|| log.exists());
    (kept, [store, log])
}

#[test]
fn users_are_thawed_also_when_the_service_is_killed() {
    let disk = TempDir::new();
    let (kept, [_, log]) = started(&disk, "sleep 1");
    kept.signal("-KILL");
    kept.ended();
    until(|| fs::read_to_string(&log).unwrap() == "freeze\nthaw\n");
}

#[test]
fn users_are_thawed_also_when_the_service_is_asked_to_end_meanwhile() {
    let disk = TempDir::new();
    let (kept, [store, log]) = started(&disk, "sleep 1");
    let ran = kept.terminated();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The save that was under way, and the last one or none.
    let text = fs::read_to_string(&log).unwrap();
    let pairs = text.lines().count() / 2;
    assert_eq!(text, "freeze\nthaw\n".repeat(pairs));
    assert!((1..=2).contains(&pairs) && generations(&store) == [1], "{text}");
}

#[test]
fn a_second_signal_ends_it_without_a_last_save_and_its_users_are_thawed() {
    let disk = TempDir::new();
    let (kept, [_, log]) = started(&disk, "sleep 2");
    kept.signal("-TERM");
    // Sooner would be the same request.
    std::thread::sleep(Duration::from_millis(700));
    kept.signal("-TERM");
    assert_eq!(kept.ended().code, None);
    until(|| fs::read_to_string(&log).unwrap() == "freeze\nthaw\n");
}

#[test]
fn without_a_freeze_nothing_is_saved() {
    let disk = TempDir::new();
    let (kept, [store, log]) = started(&disk, "exit 4");
    let ready = kept.await_message("READY=1");
    assert!(ready.contains("is not saved yet"), "{ready}");
    let ran = kept.terminated();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the freeze command ended with status 4"), "{ran:?}");
    assert!(generations(&store).is_empty());
    assert_eq!(fs::read_to_string(log).unwrap(), "freeze\nthaw\nfreeze\nthaw\n");
}

#[test]
fn a_save_freezes_too_and_says_for_how_long() {
    let disk = TempDir::new();
    let (source, store, log) = (disk.join("source"), disk.join("store"), disk.join("log"));
    fs::create_dir(&source).unwrap();
    let save = |freeze: &str, thaw: &str| {
        let mut command = command("ramdisk save");
        command.arg(&source).arg("--persist").arg(&store);
        support::run({
            command.args(["--freeze-cmd", freeze, "--thaw-cmd", thaw]);
            command
        })
    };
    let [freeze, thaw] = noting(&log, "true");
    let ran = save(&freeze, &thaw);
    assert!(ran.code == Some(0) && ran.out.contains("its users were frozen for"), "{ran:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "freeze\nthaw\n");
    fs::write(source.join("file"), "x").unwrap();
    let ran = save("true", "exit 5");
    assert!(
        ran.err.contains("may still be frozen: the thaw command ended with status 5"),
        "{ran:?}"
    );
    assert_eq!((ran.code, generations(&store).len()), (Some(1), 2));
    let alone = format!("ramdisk save {} --persist {}", source.display(), store.display());
    let mut command = command(&alone);
    command.args(["--freeze-cmd", "true"]);
    assert_eq!(support::run(command).code, Some(2));
}

fn install(point: &Path, units: &Path, more: &[&str]) -> Ran {
    let mut command = command("ramdisk install");
    command.arg(point).args(["--persist", "/var/lib/a store"]).arg("--to").arg(units).args(more);
    support::run(command)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut all: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

#[test]
fn units_are_written_that_systemd_accepts_and_no_other_unit_is_touched() {
    let Some(ram) = ram_disk(8 << 20) else { return };
    let disk = TempDir::new();
    let units = disk.join("units");
    let freeze = ["--freeze-cmd", "echo \"$A\" 100% \\", "--thaw-cmd", "true"];
    let more = [&freeze[..], &["--before", "a-database.service"]].concat();
    let dry = install(ram.path(), &units, &[&more[..], &["--dry-run"]].concat()).done();
    assert!(!units.exists(), "a dry run writes nothing");
    assert!(dry.contains("\n# tmpfs /") && dry.contains("tmpfs size=8192k"), "{dry}");
    assert!(dry.contains("\nExecStopPost=-timeout 60 sh -c \"true\"\n"), "{dry}");
    install(ram.path(), &units, &more).done();
    let all = names(&units);
    let ends =
        ["a-database.service.requires", "local-fs.target.wants", "sleep.target.wants", ".mount"];
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(ends.iter().all(|end| all.iter().any(|name| name.ends_with(end))), "{all:?}");
    for unit in all.iter().filter(|name| !name.contains(".target.") && !name.ends_with(".requires"))
    {
        let text = fs::read_to_string(units.join(unit)).unwrap();
        assert!(dry.contains(&text), "{unit}");
    }
    if support::has_program("systemd-analyze") {
        verify(&units);
    }
    // Once more, with another interval: its own are replaced.
    install(ram.path(), &units, &["--every", "7s"]).done();
    let is_service = |name: &&String| name.starts_with("terrace-") && !name.contains("-sleep");
    let service = units.join(all.iter().find(is_service).unwrap());
    let text = fs::read_to_string(&service).unwrap();
    assert!(text.contains("--every 7s") && !text.contains("ExecStopPost"), "{text}");
    // One of another maker stops everything before anything is written.
    fs::write(&service, "[Unit]\n").unwrap();
    install(ram.path(), &units, &["--every", "9s"]).refused(3, "was not made by this program");
    let uninstall = |more: &str| {
        let (point, to) = (ram.path().display(), units.display());
        terrace(&format!("ramdisk uninstall {point} --to {to} {more}"))
    };
    uninstall("").refused(3, "was not made by this program");
    assert_eq!((names(&units), fs::read_to_string(&service).unwrap().as_str()), (all, "[Unit]\n"));
    fs::remove_file(&service).unwrap();
    install(ram.path(), &units, &[]).done();
    assert_eq!(uninstall("--dry-run").done().lines().count(), 6);
    uninstall("").done();
    assert!(names(&units).is_empty(), "{:?}", names(&units));
    uninstall("").refused(2, "has no units in");
}

/// What systemd itself says of all units.
fn verify(units: &Path) {
    fs::write(units.join("a-database.service"), "[Service]\nExecStart=/bin/true\n").unwrap();
    let mut command = Command::new("systemd-analyze");
    command.arg("verify").env("SYSTEMD_UNIT_PATH", format!("{}:", units.display()));
    let is_unit = |name: &&String| [".mount", ".service"].iter().any(|kind| name.ends_with(kind));
    command.args(names(units).iter().filter(is_unit).map(|name| units.join(name)));
    let ran = support::run(command);
    let ours: Vec<&str> = ran.err.lines().filter(|line| line.contains("ramdisk")).collect();
    assert!(ran.code == Some(0) && ours.is_empty(), "{ran:?}");
    fs::remove_file(units.join("a-database.service")).unwrap();
}

/// What `ramdisk list` knows of a mount point.
fn listed(point: &Path) -> Option<serde_json::Value> {
    let ran = terrace("ramdisk list --json");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let all = json["result"]["ramdisks"].as_array().unwrap();
    let point = point.to_str().unwrap();
    all.iter().find(|one| one["ramdisk"]["mount_point"] == *point).cloned()
}

#[test]
fn what_another_program_mounted_is_known_by_its_name_while_it_is_kept_and_mounted() {
    let Some(ram) = ram_disk(16 << 20) else { return };
    let point = ram.path().to_owned();
    let name = Path::new(point.file_name().unwrap());
    let disk = TempDir::new();
    let store = disk.join("store");
    assert_eq!(listed(&point), None);
    support::run(command(&format!("ramdisk keep {}", name.display()))).refused(2, "known here");
    assert_eq!(
        Kept::start(keep_every("7s", &point, &store, "--keep 5")).terminated().code,
        Some(0)
    );
    let known = listed(&point).unwrap();
    assert_eq!(
        (known["state"].as_str(), known["ramdisk"]["options"]["size"].as_u64()),
        (Some("mounted"), Some(16 << 20)),
        "{known}"
    );
    // Nothing of it is typed again.
    fs::write(point.join("file"), "more").unwrap();
    let again = Kept::begin(command(&format!("ramdisk keep {}", name.display())));
    let ready = again.await_message("READY=1");
    assert!(ready.contains("generation 2") && ready.contains("every 7"), "{ready}");
    assert_eq!(again.terminated().code, Some(0));
    let units = terrace(&format!("ramdisk install {} --dry-run", name.display())).done();
    let words = format!("--persist {} --keep 5 --restore --every 7s", store.display());
    assert!(units.contains(&words) && units.contains("size=16384k"), "{units}");
    let to = disk.join("units");
    for change in ["install", "uninstall"] {
        terrace(&format!("ramdisk {change} {} --to {}", name.display(), to.display())).done();
    }
    terrace(&format!("ramdisk status {}", name.display())).done();
    drop(ram);
    assert_eq!(listed(&point), None, "it is forgotten when it is gone");
}

#[test]
fn what_is_no_ram_disk_gets_no_units() {
    let disk = TempDir::new();
    let ran = install(disk.path(), &disk.join("units"), &[]);
    ran.refused(2, "is not where a tmpfs is mounted now");
    assert!(!disk.join("units").exists());
}
