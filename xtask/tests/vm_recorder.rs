//! The recorder in the kernel on a second kernel, Debian's 6.12, and where something that it needs
//! is missing there: settings that a test may not change on this machine.
//!
//! One guest makes all recordings and prints them; what each must say is checked here. Whatever is
//! missing, the command runs, a recording is made, and it says what was not seen, why and what
//! would help. Skipped as `vm.rs` is. Times are not looked at: the guest is emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::TempDir;

/// `made NAME COMMAND...` runs it, and prints how it ended and the recording. Names come by
/// variables: `xtask vm` builds the tool anew, as released, for a command that names it.
const SCRIPT: &str = r#"
cd /tmp
mount -t securityfs none /sys/kernel/security
made() {
    name=$1; shift
    rm -f x.trec; "$@" >said.txt 2>&1; status=$?
    echo "== $name $status $(grep -c panicked said.txt)"
    $RECORDER export x.trec --to json --no-redact | tr -d '\n'; echo
}
run="$RECORDER run -o x.trec --"
# What a command does comes after the first sample, and the sleep at its end lets it be read.
write='./culprit if=/dev/zero of=/dev/vm/d bs=4k'
cp /bin/dd culprit
made counts $run sh -c "$write count=400 oflag=direct; sleep 1"
# Programs in the kernel need no locked memory.
made flushes prlimit --memlock=0:0 $run sh -c "$write count=200 oflag=direct,dsync; sleep 1"
made clock $run sh -c 'sleep 0.5; date -s "+1 hour"; sleep 1; date -s "-3 hours"; sleep 0.5'
run="$run sleep 0.2"
made some setpriv --bounding-set=-all,+bpf,+perfmon --inh-caps=-all $run
made none setpriv --bounding-set=-all --inh-caps=-all $run
echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled
chmod 777 . && made user setpriv --reuid 65534 --regid 65534 --clear-groups $run
made container unshare --pid --fork --mount-proc $run
echo integrity >/sys/kernel/security/lockdown
made integrity $run
mount -t tmpfs none /sys/kernel/btf && mv "$CACHE" /run/away
made btf $run
umount /sys/kernel/btf
echo confidentiality >/sys/kernel/security/lockdown
made confidentiality $run
"#;

/// What `made counts` writes, each by a request.
const WRITES: u64 = 400;

/// Where root's recorder keeps what it has found out about the kernel.
const CACHE: &str = "/run/terrace";

#[test]
fn programs_load_on_another_kernel_and_what_is_missing_is_said() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let made = made_in_a_guest();
    for name in ["counts", "flushes", "clock", "integrity"] {
        for event in ["in_kernel", "sched", "block", "vmscan", "writeback"] {
            let sight = made[name].sight(event);
            assert_eq!(sight["state"], "open", "{name}: {event}: {sight}");
        }
    }
    for (name, least, figures) in
        [("counts", 400, &["reads", "writes"][..]), ("flushes", 400, &["flushes"])]
    {
        every_completion_is_seen(&made[name], least, figures);
    }
    the_culprit_is_named(&made["counts"]);
    a_clock_that_is_set_moves_no_time(&made["clock"]);
    // CAP_BPF and CAP_PERFMON are enough.
    for event in ["in_kernel", "sched", "block"] {
        let sight = made["some"].sight(event);
        assert_eq!(sight["state"], "open", "{event}: {sight}");
    }
    for (name, why, with_rings) in [
        ("none", "CAP_BPF and CAP_PERFMON", false),
        ("container", "not of this container", false),
        ("btf", "/sys/kernel/btf/vmlinux", true),
        ("confidentiality", "locked down", true),
    ] {
        let sight = made[name].sight("in_kernel");
        assert_eq!(sight["state"], "closed", "{name}: {sight}");
        assert!(sight["why"].as_str().unwrap().contains(why), "{name}: {sight}");
        // Rings of samples stand in where the user may open them.
        let rings = made[name].sight("sched")["state"] == "open";
        assert_eq!(rings, with_rings, "{name}: {}", made[name].sight("sched"));
    }
    for name in ["none", "btf", "confidentiality"] {
        let sight = made[name].sight("in_kernel");
        assert!(sight["remedy"].is_string(), "{name}: no remedy: {sight}");
    }
    // A user without rights asks for no events, and the recording has none.
    assert_ne!(made["user"].sight("in_kernel")["state"], "open");
}

/// A recording that the guest made.
struct Made(Value);

impl Made {
    /// What could be seen of these events.
    fn sight(&self, event: &str) -> &Value {
        &self.0["facts"]["sights"][format!("events.{event}")]
    }

    /// By how much the series grew from the first to the last sample; 0 without it.
    fn growth(&self, name: &str) -> i64 {
        let series = self.0["series"].as_array().unwrap();
        let found = series.iter().find(|series| series["name"] == name);
        let steps = found.and_then(|series| series["steps"].as_array());
        let value = |step: Option<&Value>| step.and_then(|step| step[1].as_i64()).unwrap_or(0);
        steps.map_or(0, |steps| value(steps.last()) - value(steps.first()))
    }
}

/// Every recording by its name; all commands ended well, and the recorder never panicked.
fn made_in_a_guest() -> BTreeMap<String, Made> {
    let folder = TempDir::new();
    let recorder = recorder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("vm").env("TMPDIR", folder.path());
    command.args(["--disk", "d:64M", "--mem", "512M", "--timeout", "600", "--bin"]).arg(&recorder);
    let name = recorder.file_name().unwrap().to_str().unwrap();
    command.args(["--env", &format!("RECORDER={name}"), "--env", &format!("CACHE={CACHE}")]);
    let run = command.args(["--", SCRIPT]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let complained = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{complained}");
    let mut made = BTreeMap::new();
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        let Some(heading) = line.strip_prefix("== ") else {
            continue;
        };
        let words: Vec<&str> = heading.split(' ').collect();
        assert_eq!(words[1..], ["0", "0"], "status, panics: {heading}\n{complained}");
        let recording = serde_json::from_str(lines.next().unwrap());
        made.insert(words[0].to_owned(), Made(recording.unwrap()));
    }
    assert_eq!(made.len(), 10, "{:?}\n{complained}", made.keys());
    made
}

/// The tool as the tests' own profile has it: cargo knows whether it is new.
fn recorder() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--message-format=json", "-p", "terrace", "--bin", "terrace"]);
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = String::from_utf8(built.stdout).unwrap();
    let messages = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut programs =
        messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back().unwrap()
}

/// Against the kernel's own counts. Those of writes hold empty ones that only flush, so flushes are
/// compared apart.
fn every_completion_is_seen(made: &Made, least: i64, figures: &[&str]) {
    let of = |source: &str| -> i64 {
        figures.iter().map(|figure| made.growth(&format!("{source}.{figure}"))).sum()
    };
    let seen = of("trace.block");
    let kernel: i64 = ["disk.vda", "disk.vdb", "disk.vdc"].into_iter().map(of).sum();
    assert!(kernel >= least, "{kernel} requests");
    // The two are not read at one instant.
    assert!((seen - kernel).abs() * 100 <= kernel * 3, "{figures:?}: {seen} of {kernel}");
    assert_eq!(made.growth("trace.lost"), 0);
}

/// It made all writes of its command, and each is known as its own.
fn the_culprit_is_named(made: &Made) {
    let list = |name: &str| made.0["who"][name].as_array().unwrap().iter();
    let found = list("processes").find(|process| process["name"] == "culprit");
    assert!(found.is_some(), "{:?}", made.0["who"]["processes"]);
    let id = found.map(|process| &process["id"]);
    let writes =
        list("requests").filter(|row| Some(&row["process"]) == id && row["is_write"] == true);
    let count: u64 = writes.map(|row| row["requests"].as_u64().unwrap()).sum();
    assert_eq!(count, WRITES, "{:?}", made.0["who"]["requests"]);
}

fn a_clock_that_is_set_moves_no_time(made: &Made) {
    let ticks = made.0["samples"].as_array().unwrap();
    let at = |tick: &Value| tick["at_ns"].as_i64().unwrap();
    assert!(ticks.windows(2).all(|pair| at(&pair[0]) < at(&pair[1])));
    assert!(at(ticks.last().unwrap()) < 1_800_000_000_000, "half an hour");
    let spans = made.0["spans"].as_array().unwrap().iter();
    let said: Vec<&str> = spans
        .filter(|span| span["kind"] == "clock_jump")
        .map(|span| span["text"].as_str().unwrap())
        .collect();
    let (forward, back) = ("the clock was set forward by ", "the clock was set back by ");
    assert!(said.len() == 2 && said[0].starts_with(forward), "{said:?}");
    assert!(said[1].starts_with(back), "{said:?}");
}
