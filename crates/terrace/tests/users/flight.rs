//! The engineer with the flight recorder, on this machine: three real incidents under
//! `record --keep`, and the question afterwards. Two groups at their memory limits, one by reads
//! of a mapped file and one by a leak that swaps, and a group at its limit of processor time.
//!
//! The recorder still runs when she asks; she does not know when anything happened.

use crate::machine_alone;
use crate::support::{command, print_figure, terminate, terrace, valid_explanation};
use serde_json::Value;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};
use testkit::{Cgroup, SwapArea, TempDir};

/// An incident takes so long, and between two of them there is as much of usual business.
const INCIDENT: Duration = Duration::from_secs(9);
const QUIET: Duration = Duration::from_secs(11);

/// So many moments that are none of the incidents may be listed.
const MOST_FALSE: usize = 2;

/// Until the first right answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A moment may begin so much before its incident and end so much after it: windows are of
/// seconds, and what a program leaves behind is written later.
const MARGIN_S: f64 = 4.0;

const FILE_BYTES: u64 = 384 << 20;
const LOOKUP_LIMIT_BYTES: u64 = 64 << 20;
const LEAK_LIMIT_BYTES: u64 = 96 << 20;
const SWAP_BYTES: u64 = 768 << 20;
/// Of the time of one processor.
const QUOTA_US: u64 = 30_000;
const PERIOD_US: u64 = 100_000;

/// Reads bytes of a mapped file at random for so many seconds.
const LOOKUP: &str = "\
import mmap, random, sys, time
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
data.madvise(mmap.MADV_RANDOM)
end = time.monotonic() + float(sys.argv[2])
total = 0
while time.monotonic() < end:
    for _ in range(100):
        total += data[random.randrange(len(data))]
";

/// Takes more and more memory, up to 240 MiB, and looks at half of it again and again.
const LEAK: &str = "\
import os, sys, time
kept = []
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    if len(kept) < 60:
        kept.append(bytearray(os.urandom(4 << 20)))
    for block in kept[-32:]:
        for page in range(0, len(block), 4096):
            block[page] = 1
        if time.monotonic() > end:
            break
";

/// Calculates with two processes.
const REPORT: &str = "\
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
os.fork()
while time.monotonic() < end:
    sum(range(10000))
";

/// What was done, when, and what is right to say of it.
struct Incident {
    program: &'static str,
    when: Range<SystemTime>,
    /// Any of these findings names the cause.
    causes: &'static [&'static str],
    /// None of these may be cleared of it.
    guilty: &'static [&'static str],
}

/// The groups, the swap, the scripts and the recorder; all of it goes away with the test.
struct Day {
    lookup: Cgroup,
    leak: Cgroup,
    report: Cgroup,
    _swap: SwapArea,
    directory: TempDir,
}

impl Day {
    fn begin() -> Result<Self, String> {
        let day = Self {
            lookup: Cgroup::v1_memory(LOOKUP_LIMIT_BYTES)?,
            leak: Cgroup::v1_memory(LEAK_LIMIT_BYTES)?,
            report: Cgroup::v1_cpu(QUOTA_US, PERIOD_US)?,
            _swap: SwapArea::on(SWAP_BYTES)?,
            directory: TempDir::new(),
        };
        if !crate::support::has_program("python3") {
            return Err("python3".to_owned());
        }
        for (name, script) in
            [("lookup.py", LOOKUP), ("leaky.py", LEAK), ("nightly_report.py", REPORT)]
        {
            std::fs::write(day.directory.join(name), script).unwrap();
        }
        // Written in the group: no page of it is charged elsewhere.
        let mut write = day.lookup.command("dd");
        write.arg(format!("of={}", day.data().display())).arg("if=/dev/urandom").arg("bs=1M");
        write.args([&format!("count={}", FILE_BYTES >> 20), "conv=fsync", "status=none"]);
        assert!(write.status().unwrap().success());
        Ok(day)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn ring(&self) -> PathBuf {
        self.directory.join("flight")
    }

    /// The recorder, as her service starts it.
    fn record(&self) -> Recorder {
        let mut record = command("record --keep 1h --apply -o");
        record.arg(self.ring()).stdin(Stdio::null());
        record.stdout(Stdio::piped()).stderr(Stdio::piped());
        Recorder(Some(record.spawn().unwrap()))
    }

    /// Runs a script in its group, and waits until it has ended.
    fn run(&self, group: &Cgroup, script: &str, words: &[&Path]) -> Range<SystemTime> {
        let start = SystemTime::now();
        // Where the swap area is slow the kernel kills in a group that could still swap: again.
        let mut ended = None;
        for _ in 0..5 {
            let mut command = group.command("python3");
            command.arg(self.directory.join(script)).args(words);
            command.arg(INCIDENT.as_secs().to_string()).stdin(Stdio::null());
            let status = command.status().unwrap();
            ended = Some(status);
            if status.signal() != Some(9) {
                break;
            }
        }
        assert!(ended.is_some_and(|ended| ended.success()), "{script}: {ended:?}");
        start..SystemTime::now()
    }

    fn incidents(&self) -> [Incident; 3] {
        let pause = || std::thread::sleep(QUIET);
        pause();
        let lookup = Incident {
            program: "lookup.py",
            when: self.run(&self.lookup, "lookup.py", &[&self.data()]),
            causes: &["memory_limit", "cache_too_small"],
            guilty: &["memory_limit", "cache_too_small", "reads_from_device"],
        };
        pause();
        let leak = Incident {
            program: "leaky.py",
            when: self.run(&self.leak, "leaky.py", &[]),
            causes: &["memory_limit", "swapping"],
            guilty: &["memory_limit", "swapping"],
        };
        pause();
        let report = Incident {
            program: "nightly_report.py",
            when: self.run(&self.report, "nightly_report.py", &[]),
            causes: &["cpu_limit"],
            guilty: &["cpu_limit"],
        };
        pause();
        [lookup, leak, report]
    }
}

/// A recorder that is asked to end, also by a test that fails.
struct Recorder(Option<Child>);

impl Recorder {
    fn end(mut self) {
        let ended = terminate(self.0.take().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(recorder) = self.0.take() {
            terminate(recorder);
        }
    }
}

fn explained(ring: &Path, more: &str) -> Value {
    let line = format!("explain {} --json {more}", ring.display());
    valid_explanation(&terrace(&line).done())
}

/// The seconds since the start of the recording at which an incident began and ended.
fn seconds(incident: &Incident, ring: &Path) -> Range<f64> {
    let started_ns = record::file::open(ring).unwrap().facts.started_unix_ns;
    let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(started_ns);
    let since = |at: SystemTime| at.duration_since(started).unwrap().as_secs_f64();
    since(incident.when.start)..since(incident.when.end)
}

/// The moment that names the cause and the program of an incident, or what there is instead. Those
/// that are of the incident are removed from `moments`.
fn right_moment(
    incident: &Incident,
    ring: &Path,
    moments: &mut Vec<Value>,
) -> Result<Value, String> {
    let when = seconds(incident, ring);
    let at = |moment: &Value, end: &str| moment[end].as_f64().unwrap() / 1e9;
    let is_of_it = |moment: &Value| {
        let (from, to) = (at(moment, "from_ns"), at(moment, "to_ns"));
        let is_inside = from > when.start - MARGIN_S && to < when.end + MARGIN_S;
        is_inside && from < when.end && to > when.start
    };
    let (own, others): (Vec<_>, Vec<_>) = std::mem::take(moments).into_iter().partition(is_of_it);
    *moments = others;
    let names_it = |moment: &&Value| {
        incident.causes.iter().any(|cause| moment["finding"] == *cause)
            && moment["who"].to_string().contains(incident.program)
    };
    let missing = || format!("{} in {when:?}: {own:#?}", incident.program);
    own.iter().find(names_it).cloned().ok_or_else(missing)
}

/// The guilty of an incident that an explanation clears.
fn blindly_cleared(incident: &Incident, explanation: &Value) -> Vec<String> {
    let all = explanation["cleared"].as_array().unwrap().iter();
    let ids = all.map(|one| one["id"].as_str().unwrap());
    ids.filter(|id| incident.guilty.contains(id)).map(str::to_owned).collect()
}

#[test]
fn three_real_incidents_are_found_while_the_recorder_runs() {
    let _alone = machine_alone();
    let day = match Day::begin() {
        Ok(day) => day,
        Err(need) => return testkit::skip(need),
    };
    let recorder = day.record();
    let incidents = day.incidents();
    let ring = day.ring();
    let asked = Instant::now();
    let explanation = explained(&ring, "");
    let mut moments = explanation["moments"].as_array().unwrap().clone();
    let page = terrace(&format!("explain {}", ring.display())).done();

    let mut wrong = Vec::new();
    let mut answered = None;
    let (mut missed, mut cleared_guilty) = (0, 0);
    for incident in &incidents {
        let mut blindly = blindly_cleared(incident, &explanation);
        match right_moment(incident, &ring, &mut moments) {
            Ok(moment) => {
                answered = answered.or(Some(asked.elapsed()));
                let of_part = explained(&ring, &format!("--at {}", moment["at"].as_str().unwrap()));
                blindly.extend(blindly_cleared(incident, &of_part));
            }
            Err(why) => {
                missed += 1;
                wrong.push(why);
            }
        }
        cleared_guilty += blindly.len();
        let said = blindly.into_iter().map(|id| format!("{}: {id} is cleared", incident.program));
        wrong.extend(said);
    }
    print_figure("sre_found", (incidents.len() - missed) as f64);
    print_figure("sre_false", moments.len() as f64);
    print_figure("sre_cleared", cleared_guilty as f64);
    answered.iter().for_each(|after| print_figure("sre_first_answer_s", after.as_secs_f64()));
    assert!(wrong.is_empty(), "{}\n{page}", wrong.join("\n"));
    assert!(moments.len() <= MOST_FALSE, "{moments:#?}");
    assert!(answered.is_some_and(|after| after < PATIENCE), "{answered:?}");
    is_said_to_be_recording(&explanation, &page);
    recorder.end();
    let ended = explained(&ring, "");
    assert_eq!(ended["ending"], "stopped", "{ended:#}");
}

/// A ring that is being written is not a cut one.
fn is_said_to_be_recording(explanation: &Value, page: &str) {
    let ending = explanation["ending"].as_str().unwrap();
    assert!(ending.starts_with("still recording, since "), "{ending}");
    assert!(page.contains(ending), "{page}");
    let flowing = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!flowing.contains("was cut"), "{page}");
}
