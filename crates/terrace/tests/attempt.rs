//! `--try`: a remedy is applied for real, measured in turn with how it was, and put back, also
//! where the trial is interrupted or killed.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use postgres::PostgresServer;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{command, in_group, run, schema_complaint, terrace};
use testkit::{Cgroup, SwapArea, TempDir};

const SCHEMA: &str = include_str!("../../../docs/compare.schema.json");

/// More than the group's limit, so that each pass reads it from the device.
const FILE_BYTES: u64 = 96 << 20;
const LIMIT_BYTES: u64 = 48 << 20;

/// One trial at a time: what each of them measures would disturb the others, and each says what
/// hurts most.
static MACHINE: Mutex<()> = Mutex::new(());

fn machine_alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A group with a limit, and a file that does not fit into it.
struct Tight {
    _alone: MutexGuard<'static, ()>,
    group: Cgroup,
    directory: TempDir,
}

impl Tight {
    fn new() -> Result<Self, String> {
        let _alone = machine_alone();
        let group = Cgroup::v1_memory(LIMIT_BYTES)?;
        let directory = TempDir::new();
        // Written in the group, so that no page of it is charged elsewhere.
        let mut write = group.command("dd");
        write.arg(format!("of={}", directory.join("data").display()));
        write.args(["if=/dev/urandom", "bs=1M", "conv=fsync", "status=none"]);
        let written = write.arg(format!("count={}", FILE_BYTES >> 20)).status();
        assert!(written.unwrap().success());
        Ok(Self { _alone, group, directory })
    }

    fn limit(&self) -> u64 {
        let text = std::fs::read_to_string(self.limit_path()).unwrap();
        text.trim().parse().unwrap()
    }

    fn limit_path(&self) -> PathBuf {
        self.group.path().join("memory.limit_in_bytes")
    }

    /// Reads the file again and again.
    fn trial(&self, options: &str, passes: u32) -> std::process::Command {
        let data = self.directory.join("data");
        let script =
            format!("for i in $(seq {passes}); do cat {} >/dev/null; done", data.display());
        let mut command = in_group(&self.group, &format!("run --try {options} --"));
        command.args(["sh", "-c", &script]);
        command.env_remove("NO_COLOR").env("COLUMNS", "100");
        command
    }

    /// A program of the group that reads the file again and again, and counts in a file.
    fn reader(&self) -> support::Started {
        let (data, count) = (self.directory.join("data"), self.count());
        let script = format!(
            "n=0; while :; do cat {} >/dev/null; n=$((n+1)); echo $n >{count}.new; \
             mv {count}.new {count}; done",
            data.display(),
            count = count.display()
        );
        std::fs::write(&count, "0\n").unwrap();
        let mut command = self.group.command("sh");
        command.args(["-c", &script]).stdin(Stdio::null());
        support::Started(self.group.spawn(&mut command).unwrap())
    }

    fn count(&self) -> PathBuf {
        self.directory.join("count")
    }

    /// A trial of what runs in the group.
    fn record(&self) -> std::process::Command {
        let mut command = command("record --try --for 2s --work");
        command.arg(format!("file:{}", self.count().display()));
        command.arg("--cgroup").arg(self.group.path());
        command
    }

    /// A trial in the background, once its change is there.
    fn changed(&self, mut command: std::process::Command) -> Child {
        let said = self.directory.join("said");
        let file = std::fs::File::create(&said).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(300);
        while self.limit() == LIMIT_BYTES {
            let ended = child.try_wait().unwrap();
            let waits = ended.is_none() && Instant::now() < until;
            let text = || std::fs::read_to_string(&said).unwrap();
            assert!(waits, "nothing was changed: {ended:?}: {}", text());
            std::thread::sleep(Duration::from_millis(2));
        }
        child
    }
}

/// A page without its line ends.
fn flowing(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn nothing_is_left(limit_path: &Path) {
    let list = terrace("undo --list").done();
    assert!(!list.contains(&limit_path.display().to_string()), "{list}");
}

#[test]
fn a_raised_limit_is_tried_in_turn_and_put_back() {
    let tight = match Tight::new() {
        Ok(tight) => tight,
        Err(need) => return testkit::skip(need),
    };
    let json = tight.directory.join("tried.json");
    let ran = run(tight.trial(&format!("--json {}", json.display()), 40));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let limit = tight.limit_path().display().to_string();
    assert!(
        flowing(&ran.err).contains("terrace: run: tries the limit 48 MiB of group "),
        "{ran:?}"
    );
    assert!(flowing(&ran.err).contains(&format!("Put back: {limit} is {LIMIT_BYTES}.")), "{ran:?}");
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{value}");
    assert_eq!(value["tried"]["path"], *limit);
    assert_eq!(value["tried"]["kept"], false);
    let wall = &value["items"][0];
    assert_eq!((&wall["of"], &wall["verdict"]), (&"wall".into(), &"smaller".into()), "{value:#}");
    assert_eq!(tight.limit(), LIMIT_BYTES);
    nothing_is_left(&tight.limit_path());
}

/// The limit that is raised would be that of the group in which the command began.
#[test]
fn of_a_command_that_changes_its_group_no_limit_is_touched() {
    let (tight, first) = match (Tight::new(), Cgroup::v1_memory(1 << 40)) {
        (Ok(tight), Ok(first)) => (tight, first),
        (Err(need), _) | (_, Err(need)) => return testkit::skip(need),
    };
    let before = std::fs::read_to_string(first.path().join("memory.limit_in_bytes")).unwrap();
    let (data, inner) = (tight.directory.join("data"), tight.group.path().join("cgroup.procs"));
    let script = format!(
        "echo $$ > {}; for i in $(seq 12); do cat {} >/dev/null; done",
        inner.display(),
        data.display()
    );
    let mut command = in_group(&first, "run --try --");
    command.args(["sh", "-c", &script]);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("limit 48 MiB of group "), "{ran:?}");
    assert!(ran.err.contains("run: nothing was tried: "), "{ran:?}");
    let after = std::fs::read_to_string(first.path().join("memory.limit_in_bytes")).unwrap();
    assert_eq!((before, tight.limit()), (after, LIMIT_BYTES));
}

#[test]
fn what_helps_is_kept_if_that_was_asked_for() {
    let tight = match Tight::new() {
        Ok(tight) => tight,
        Err(need) => return testkit::skip(need),
    };
    let ran = run(tight.trial("--keep-change", 40));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(tight.limit() > LIMIT_BYTES, "{ran:?}");
    let back = format!("echo {LIMIT_BYTES} | sudo tee {}", tight.limit_path().display());
    assert!(flowing(&ran.err).contains(&back), "{ran:?}");
    nothing_is_left(&tight.limit_path());
}

#[test]
fn an_interrupted_trial_is_put_back_and_a_killed_one_by_undo() {
    let tight = match Tight::new() {
        Ok(tight) => tight,
        Err(need) => return testkit::skip(need),
    };
    ended_trials_are_put_back(&tight, || tight.trial("-q", 40));
}

/// The group goes on beside it: what ends is the recorder alone.
#[test]
fn of_a_service_an_interrupted_trial_is_put_back_and_a_killed_one_by_undo() {
    let tight = match Tight::new() {
        Ok(tight) => tight,
        Err(need) => return testkit::skip(need),
    };
    let reader = tight.reader();
    ended_trials_are_put_back(&tight, || tight.record());
    assert!(Path::new(&format!("/proc/{}", reader.pid())).exists());
}

/// The change of a trial is gone after SIGTERM; after SIGKILL `terrace undo` puts it back.
fn ended_trials_are_put_back(tight: &Tight, trial: impl Fn() -> std::process::Command) {
    let asked = support::terminate(tight.changed(trial()));
    assert_ne!(asked.code, Some(0));
    assert_eq!(tight.limit(), LIMIT_BYTES);
    nothing_is_left(&tight.limit_path());
    let mut killed = tight.changed(trial());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(tight.limit() > LIMIT_BYTES, "it had no time to put it back");
    let undone = terrace("undo");
    assert!(
        undone.out.contains(&format!("{}: put back", tight.limit_path().display())),
        "{undone:?}"
    );
    assert_eq!(tight.limit(), LIMIT_BYTES);
    nothing_is_left(&tight.limit_path());
}

#[test]
fn without_such_a_remedy_nothing_is_tried_and_the_status_is_the_command_s() {
    let mut idle = command("run --try --trace none --");
    idle.args(["sleep", "0.2"]);
    let ran = run(idle);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("nothing was tried: no remedy is a setting"), "{ran:?}");
    let mut failing = command("run --try --trace none --");
    failing.args(["sh", "-c", "exit 7"]);
    let ran = run(failing);
    assert_eq!(ran.code, Some(7));
    assert!(ran.err.contains("nothing was tried: the command failed (exit 7)"), "{ran:?}");
    for line in ["record --try --for 1s", "record --try --work pg:x", "run --keep-change -- true"] {
        let refused = terrace(line);
        assert_eq!((refused.code == Some(0), refused.out.as_str()), (false, ""), "{refused:?}");
    }
}

/// The first day of a newcomer: a database in a group that is too small for it.
#[test]
fn the_limit_of_a_database_is_tried_by_its_transactions() {
    let _alone = machine_alone();
    let group = match Cgroup::v1_memory(160 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let server = match PostgresServer::start(40, Some(&group)) {
        Ok(server) => server,
        Err(need) => return testkit::skip(need),
    };
    let load = server.load(2);
    let mut command = command("record --try --for 4s --work pg:xact_commit");
    command.arg("--cgroup").arg(group.path()).env("PGHOST", server.socket_directory());
    let ran = run(command);
    drop(load);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    println!("{}", ran.out);
    // Whether the gain is proven is a matter of how fast the machine's disk is.
    assert!(flowing(&ran.out).contains("times as much"), "{ran:?}");
    assert!(flowing(&ran.out).contains("xact_commit a second"), "{ran:?}");
    assert!(flowing(&ran.out).contains("Put back: /"), "{ran:?}");
    let limit = group.path().join("memory.limit_in_bytes");
    assert_eq!(std::fs::read_to_string(limit).unwrap().trim(), (160 << 20).to_string());
}

/// Uses its memory at random: 50 pages for each unit of work, which it counts in a file once it may
/// begin.
const RANDOM_USER: &str = r"
import mmap, os, random, sys, time
bytes, directory = int(sys.argv[1]), sys.argv[2]
memory = mmap.mmap(-1, bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
pages = bytes // 4096
block = os.urandom(4096)
for page in range(pages):
    memory[page * 4096:(page + 1) * 4096] = block
open(directory + '/ready', 'w').close()
while not os.path.exists(directory + '/go'):
    time.sleep(0.02)
out = os.open(directory + '/begun', os.O_CREAT | os.O_WRONLY)
os.pwrite(out, b'%020d' % 0, 0)
os.rename(directory + '/begun', directory + '/done')
done, last = 0, 0
while True:
    for _ in range(50):
        memory[random.randrange(pages) * 4096]
    done += 1
    if time.monotonic() - last > 0.05:
        os.pwrite(out, b'%020d' % done, 0)
        last = time.monotonic()
";

/// A process that a limit had pushed into swap before it was raised.
struct Pushed {
    child: Child,
    _swap: SwapArea,
    group: Cgroup,
    directory: TempDir,
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pushed {
    fn new() -> Result<Self, String> {
        const BYTES: u64 = 1 << 30;
        let has_python = std::process::Command::new("python3").arg("-c").arg("0").status();
        has_python.map_err(|_| "python3".to_owned())?;
        let group = Cgroup::v1_memory(4 << 30)?;
        let swap = SwapArea::on(BYTES + (256 << 20))?;
        let directory = TempDir::new();
        let mut command = group.command("python3");
        command.args(["-c", RANDOM_USER, &BYTES.to_string()]).arg(directory.path());
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let pushed = Self { child, _swap: swap, group, directory };
        pushed.until("ready");
        for limit in [64u64 << 20, 4 << 30] {
            let path = pushed.group.path().join("memory.limit_in_bytes");
            std::fs::write(path, limit.to_string())
                .map_err(|_| "swap that takes all".to_owned())?;
        }
        std::fs::write(pushed.directory.join("go"), "").unwrap();
        pushed.until("done");
        Ok(pushed)
    }

    /// Waits until it has made this file.
    fn until(&self, name: &str) {
        let end = Instant::now() + Duration::from_secs(120);
        while !self.directory.join(name).exists() {
            assert!(Instant::now() < end, "there is no {name}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_pressure_left_in_swap_is_restored_and_measured_again() {
    let try_once = || {
        let pushed = Pushed::new()?;
        let pid = pushed.child.id().to_string();
        let mut command = command("record --try --for 2s --work");
        command.arg(format!("file:{}", pushed.directory.join("done").display()));
        command.args(["--pid", &pid]).env("COLUMNS", "100");
        Ok::<_, String>((pid, run(command)))
    };
    // While others push pages out, what is in swap is not of an earlier pressure alone.
    let is_disturbed = |ran: &support::Ran| ran.err.contains("nothing was tried");
    let mut tried = (0..4).map(|_| try_once());
    let ended = tried.find(|tried| !tried.as_ref().is_ok_and(|(_, ran)| is_disturbed(ran)));
    let (pid, ran) = match ended.unwrap() {
        Ok(ended) => ended,
        Err(need) => return testkit::skip(need),
    };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    println!("{}", ran.out);
    let page = flowing(&ran.out);
    assert!(
        page.contains(" read back in ") && page.contains("the sides did not take turns"),
        "{ran:?}"
    );
    assert!(page.contains(&format!("(`terrace warm restore --pid {pid}`)")), "{ran:?}");
    assert!(flowing(&ran.err).contains("measures it as it is, then tries what was"), "{ran:?}");
    // It did more in a second.
    assert!(page.contains("The second does ") && page.contains(" larger, better"), "{ran:?}");
}
