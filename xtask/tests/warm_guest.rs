//! `terrace warm restore` among facts of a kernel that the machine of a developer may lack: limits
//! of groups of version 2, both lists of pages, zswap, a source that goes away midway, every stage
//! of Yama. And `warm watch` on a machine that really gets short of memory.
//!
//! One guest makes all facts (`xtask/examples/warm-guest/facts.rs`) and says what came of each;
//! what must stand there is said here. Skipped as `vm.rs` is. Times are not looked at: the guest is
//! emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::TempDir;

/// The set that is evicted.
const SET_PAGES: u64 = (16 << 20) / 4096;
/// The most pages of the program itself in swap with it: 309 were seen of `terrace` as the dev
/// profile builds it, whose data is relocated when it starts.
const PROGRAM_PAGES: u64 = 512;
/// What is left free below a group's limit, and the portions that the kernel charges in.
const MARGIN_BYTES: u64 = 3 << 20;

#[test]
fn a_restore_gets_along_with_groups_lists_zswap_lost_sources_and_yama() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    // At 2 MB/s there is time for something to happen midway.
    let slow = "slow:256M,model=hdd,read_bps=2000000";
    let facts = Facts::of_a_guest("384M", &["swap:256M", slow, "data:256M"], "facts");
    for fact in &facts.0 {
        assert!(fact["wrong_pages"].as_u64().unwrap_or(0) == 0, "{fact}");
    }
    what_was_pushed_out_lately_spares_nothing(facts.get("evict"));
    for name in ["memory.max", "memory.max above", "memory.high"] {
        a_group_is_filled_up_to_its_limit_and_not_beyond(facts.get(name));
    }
    files_count_where_they_are_used(facts.get("files"), facts.get("files, limited"));
    for name in ["lru_gen 0", "lru_gen 7"] {
        all_is_back(&facts.get(name)["restored"]);
        nearly_none(&facts.get(name)["major_faults"]);
    }
    zswap_and_disk_are_distinguished(facts.get("zswap"));
    for name in ["swapoff", "kill", "exec"] {
        a_lost_source_ends_it(facts.get(name));
    }
    for name in ["ptrace_scope 0", "ptrace_scope 1", "ptrace_scope 2"] {
        all_is_back(&facts.get(name)["restored"]);
        nearly_none(&facts.get(name)["major_faults"]);
    }
    refused_in_a_line(&facts.get("ptrace_scope 1")["user"], "needs CAP_SYS_ADMIN");
    a_process_that_may_not_read_advises(facts.get("ptrace_scope 3"));
}

/// Two hogs come together, hold memory and end.
#[test]
fn a_watch_restores_once_a_shortage_is_over_and_only_then() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let facts = Facts::of_a_guest("320M", &["swap:256M,model=hdd"], "watch");
    let fact = facts.get("watch");
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let lines = |of: &Value, name: &str| -> Vec<String> {
        let lines = of[name].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect()
    };
    let begin_with =
        |lines: &[String], words: &str| lines.iter().filter(|line| line.starts_with(words)).count();
    let set = number(fact, "set_pages");
    // Most of it went, and stayed there for as long as memory was short.
    let shortage = &fact["shortage"];
    let most = number(shortage, "most_swapped");
    assert!(most > set / 2, "{fact:#}");
    assert!(number(shortage, "least_swapped") > most / 10 * 9, "{fact:#}");
    let held = lines(shortage, "lines_while_held");
    assert_eq!(begin_with(&held, "restored"), 0, "{fact:#}");
    assert!(begin_with(&held, "memory is short: ") > 0, "{fact:#}");
    // Then it came back, and no process had touched it.
    assert!(number(shortage, "swapped_after") < set / 50, "{fact:#}");
    // One restore for the shortage, and none in the calm after it.
    let calm = lines(fact, "calm");
    assert!(calm[0].starts_with("watching: process "), "{fact:#}");
    assert_eq!(begin_with(&calm, "restored"), 1, "{fact:#}");
    let is_good = |line: &String| {
        line.starts_with("restored: read ") && line.ends_with("; ended: all was done")
    };
    assert!(calm.iter().any(is_good), "{fact:#}");
    assert_eq!(number(fact, "wrong_pages"), 0, "{fact:#}");
    assert!(number(fact, "major_faults") < set / 50, "{fact:#}");
    // It ran until it was asked to end, which is no failure.
    assert_eq!((&fact["runs"], &fact["status"]), (&true.into(), &0.into()), "{fact:#}");
    assert_eq!(fact["complaint"], "", "{fact:#}");
}

/// The guest's results, line by line.
struct Facts(Vec<Value>);

impl Facts {
    /// Of a guest with so much memory and these disks, in which one scene is played.
    fn of_a_guest(memory: &str, disks: &[&str], scene: &str) -> Self {
        let folder = TempDir::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("vm").env("TMPDIR", folder.path());
        for disk in disks {
            command.args(["--disk", disk]);
        }
        for program in programs() {
            command.arg("--bin").arg(program);
        }
        command.args(["--mem", memory, "--timeout", "900"]);
        let run = command.args(["--", "warm-guest", scene]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        let complained = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{said}{complained}");
        let lines = said.lines().filter(|line| line.starts_with('{'));
        Self(lines.map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn get(&self, name: &str) -> &Value {
        let found = self.0.iter().find(|fact| fact["fact"] == name);
        found.unwrap_or_else(|| panic!("the guest stated nothing of {name}"))
    }
}

/// The tool and the guest's program, as the tests' own profile has them: cargo knows whether they
/// are new.
fn programs() -> Vec<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--message-format=json"]);
    cargo.args(["-p", "terrace", "-p", "xtask"]);
    cargo.args(["--bin", "terrace", "--example", "warm-guest"]);
    let built = cargo.output().unwrap();
    let complained = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{complained}");
    let output = String::from_utf8(built.stdout).unwrap();
    let messages = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let programs: Vec<PathBuf> =
        messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect();
    assert_eq!(programs.len(), 2, "{programs:?}");
    programs
}

/// The kernel writes pages to swap and leaves them in memory until that is short: both ways tell
/// so.
fn what_was_pushed_out_lately_spares_nothing(fact: &Value) {
    assert_eq!(stop(&fact["restored"]), "done", "{fact}");
    assert!(fact["cached_pages"].as_u64().unwrap() > SET_PAGES / 2, "{fact}");
    assert!(fact["said"].as_str().unwrap().contains("in the swap cache as well"), "{fact}");
    let part = &fact["restored"]["receipt"]["done"]["parts"][0];
    let avoided = part["avoided_faults"].as_u64().unwrap();
    assert!(avoided < SET_PAGES / 2, "{fact}");
    let notes = notes(&fact["restored"]);
    let tells = |note: &&str| note.contains("were still in memory");
    assert_eq!(notes.into_iter().filter(tells).count(), 1, "{fact}");
}

fn a_group_is_filled_up_to_its_limit_and_not_beyond(fact: &Value) {
    let [limit, usage, room] =
        ["limit_bytes", "usage_bytes", "room_bytes"].map(|name| fact[name].as_u64().unwrap());
    assert_eq!(stop(&fact["limited"]), "group_limit", "{fact}");
    assert_eq!(fact["limited"]["status"], 1, "{fact}");
    complains_of(&fact["limited"], "a control group is at its limit");
    // Nothing of the group was made room for, so nothing in it was pushed out for the rest.
    assert_eq!(fact["reclaims"], 0, "{fact}");
    let [pages, present] = anonymous(&fact["limited"]);
    assert_eq!(present, pages, "{fact}");
    assert!(pages * 4096 <= room, "{fact}");
    assert!(usage <= limit && usage + MARGIN_BYTES >= limit, "{fact}");
    // Without a limit the rest comes.
    assert_eq!(stop(&fact["unlimited"]), "done", "{fact}");
    let [rest, present] = anonymous(&fact["unlimited"]);
    assert_eq!(present, rest, "{fact}");
    assert!(pages + rest >= SET_PAGES, "{fact}");
}

fn files_count_where_they_are_used(whole: &Value, limited: &Value) {
    let charged = |fact: &Value| fact["charged_bytes"].as_u64().unwrap();
    assert_eq!(stop(&whole["restored"]), "done", "{whole}");
    assert!(charged(whole) >= SET_PAGES * 4096, "{whole}");
    assert_eq!(stop(&limited["restored"]), "group_limit", "{limited}");
    assert_eq!(limited["restored"]["status"], 1, "{limited}");
    assert_eq!(limited["reclaims"], 0, "{limited}");
    let some = 1..SET_PAGES * 4096 / 2;
    assert!(some.contains(&charged(limited)), "{limited}");
}

/// The receipt's figures are the kernel's own, and of what was asked for none is counted twice.
fn zswap_and_disk_are_distinguished(fact: &Value) {
    all_is_back(&fact["restored"]);
    let notes = notes(&fact["restored"]);
    let note = notes
        .iter()
        .find(|note| note.contains("came from zswap"))
        .unwrap_or_else(|| panic!("{fact}"));
    let numbers: Vec<u64> = note
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    let half = SET_PAGES / 2;
    for (stated, counted) in numbers.iter().zip(["from_pool", "from_disk"]) {
        let counted = fact[counted].as_u64().unwrap();
        assert!(*stated >= half - half / 10 && *stated <= counted, "{fact}");
    }
    assert_eq!(numbers.len(), 2, "{note}");
}

fn a_lost_source_ends_it(fact: &Value) {
    assert_eq!(fact["hangs"], false, "{fact}");
    let restored = &fact["restored"];
    if fact["fact"] == "swapoff" && stop(restored) == "done" {
        // Both brought back the same, and the restore was the first to be through.
        return all_is_back(restored);
    }
    assert_eq!(stop(restored), "source_gone", "{fact}");
    assert_eq!(restored["status"], 1, "{fact}");
    complains_of(restored, "its source is gone");
    let is_gone = fact["fact"] != "swapoff";
    let [pages, present] = anonymous(restored);
    // Programs lie at fixed addresses in the guest, so the one that it became has some of the
    // pages.
    assert!(!is_gone || present <= pages / 10, "{fact}");
}

/// With the last stage of Yama no process may read another, but one may advise the kernel of
/// it.
fn a_process_that_may_not_read_advises(fact: &Value) {
    refused_in_a_line(&fact["user"], "needs CAP_SYS_ADMIN");
    refused_in_a_line(&fact["unadvised"], "kernel.yama.ptrace_scope is 3");
    let restored = &fact["restored"];
    assert_eq!(stop(restored), "done", "{fact}");
    assert_eq!(restored["status"], 0, "{fact}");
    let part = &restored["receipt"]["done"]["parts"][0];
    assert_eq!(part["method"], "advice_only", "{fact}");
    let notes = notes(restored);
    let explains = |note: &&str| note.contains("kernel.yama.ptrace_scope is 3");
    assert_eq!(notes.into_iter().filter(explains).count(), 1, "{fact}");
    let [pages, present] = anonymous(restored);
    assert!(pages >= SET_PAGES && present <= pages, "{fact}");
    assert!(present >= pages - pages / 10, "{fact}");
    // It is there indeed: touching all of it needs no disk.
    nearly_none(&fact["major_faults"]);
}

fn all_is_back(restored: &Value) {
    assert_eq!(stop(restored), "done", "{restored}");
    assert_eq!(restored["status"], 0, "{restored}");
    assert_eq!(restored["complaint"], "", "{restored}");
    let [pages, present] = anonymous(restored);
    assert_eq!(present, pages, "{restored}");
    assert!(pages >= SET_PAGES / 100 * 98, "{restored}");
    assert!(pages <= SET_PAGES + PROGRAM_PAGES, "{restored}");
}

/// Some pages of the program itself may go again before it is asked.
fn nearly_none(faults: &Value) {
    assert!(faults.as_u64().unwrap() < SET_PAGES / 100, "{faults}");
}

/// Nothing was done for want of a right, and one line says which; a hint may follow.
fn refused_in_a_line(ended: &Value, needs: &str) {
    assert_eq!(ended["status"], 3, "{ended}");
    assert!(ended["receipt"].is_null(), "{ended}");
    complains_of(ended, needs);
}

fn complains_of(ended: &Value, what: &str) {
    let complaint = ended["complaint"].as_str().unwrap();
    let lines: Vec<&str> = complaint.lines().filter(|line| !line.starts_with("hint: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains(what), "{ended}");
}

fn stop(ended: &Value) -> &str {
    ended["receipt"]["done"]["stop"].as_str().unwrap_or("nothing")
}

fn notes(ended: &Value) -> Vec<&str> {
    let notes = ended["receipt"]["done"]["notes"].as_array().unwrap();
    notes.iter().filter_map(Value::as_str).collect()
}

/// Pages of anonymous memory that were asked for, and how many of them are there.
fn anonymous(ended: &Value) -> [u64; 2] {
    let parts = ended["receipt"]["done"]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["kind"] == "anonymous");
    parts.fold([0, 0], |[pages, present], part| {
        let count = |name: &str| part[name].as_u64().unwrap();
        [pages + count("pages"), present + count("present_pages")]
    })
}
