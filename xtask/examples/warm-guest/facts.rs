//! Facts of a kernel that a restore must get along with: limits of groups, both lists of pages,
//! zswap, a source that goes away midway, Yama. Each gives a line; what it must say is the
//! test's part.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::WorkingSet;

use crate::files::{FOLDER, Mounted, User, drop_caches};
use crate::group::Group;
use crate::system::{self, PAGE, Running, SLOW, SWAP, Swap, failed, run, write};
use crate::{Outcome, write_result};

/// The set of each fact.
const MIB: u64 = 16;
const PAGES: u64 = (16 << 20) / PAGE;
/// What a limited group may take of it.
const ROOM: u64 = 8 << 20;

/// Files have a fact of their own.
const ANONYMOUS: [&str; 2] = ["--only", "anonymous"];

const LRU: &str = "/sys/kernel/mm/lru_gen/enabled";
const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";
const RECLAIM: &str = "/sys/fs/cgroup/memory.reclaim";
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
/// The user and the group of Debian that own nothing.
const UNPRIVILEGED: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
/// Pushing out is tried so often.
const TRIES: usize = 20;
/// A restore that has not ended by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Those facts that are named, or all.
pub(crate) fn scene(names: &[&str]) -> Outcome<()> {
    let wants = |name: &&str| names.is_empty() || names.contains(name);
    let slow = ["swapoff", "kill", "exec"];
    for name in slow.into_iter().filter(wants) {
        midway(name)?;
    }
    let _swap = Swap::on(SWAP)?;
    // The last stage of Yama can never be left again.
    let quick = ["evict", "groups", "files", "lists", "zswap", "yama"];
    for name in quick.into_iter().filter(wants) {
        match name {
            "evict" => lately()?,
            "groups" => limits()?,
            "files" => charged()?,
            "lists" => lists()?,
            "zswap" => compressed()?,
            _ => traced()?,
        }
    }
    Ok(())
}

/// What was pushed out just now has not left memory yet.
fn lately() -> Outcome<()> {
    let mut toucher = WorkingSet::start("terrace", MIB, "contiguous")?;
    let said = run(&["terrace", "warm", "evict", &toucher.pid().to_string()])?;
    let cached = counted("nr_swapcached")?;
    let restored = restore(&[], toucher.pid(), &ANONYMOUS)?;
    let wrong = toucher.wrong_pages()?;
    write_result(&json!({
        "fact": "evict",
        "said": said,
        "cached_pages": cached,
        "restored": restored,
        "wrong_pages": wrong,
    }))
}

fn limits() -> Outcome<()> {
    limited("memory.max", false)?;
    limited("memory.max", true)?;
    limited("memory.high", false)
}

/// A group, or the one above it, has room for half of the set; then for all.
fn limited(file: &str, above: bool) -> Outcome<()> {
    let outer = Group::new("outer")?;
    let inner = outer.child("inner")?;
    let mut toucher = toucher_in(&inner)?;
    push_out(toucher.pid())?;
    let group = if above { &outer } else { &inner };
    let limit = group.usage()? + ROOM;
    group.set(file, &limit.to_string())?;
    let before = reclaims(group)?;
    let first = restore(&[], toucher.pid(), &[])?;
    let (usage, after) = (group.usage()?, reclaims(group)?);
    group.set(file, "max")?;
    let second = restore(&[], toucher.pid(), &ANONYMOUS)?;
    let wrong = toucher.wrong_pages()?;
    drop(toucher);
    drop(inner);
    write_result(&json!({
        "fact": format!("{file}{}", if above { " above" } else { "" }),
        "limit_bytes": limit,
        "usage_bytes": usage,
        "room_bytes": ROOM,
        "reclaims": after - before,
        "limited": first,
        "unlimited": second,
        "wrong_pages": wrong,
    }))
}

/// How often something of the group was made room for, or killed.
fn reclaims(group: &Group) -> Outcome<u64> {
    let counts = ["high", "max", "oom", "oom_kill"].map(|key| group.counter("memory.events", key));
    counts.into_iter().sum()
}

/// Files that a process in another group uses: first all of one, then of a group with little room.
fn charged() -> Outcome<()> {
    let disk = Mounted::new()?;
    let path = format!("{FOLDER}/used");
    let size = format!("count={MIB}");
    run(&["dd", "if=/dev/urandom", &format!("of={path}"), "bs=1M", &size])?;
    disk.settle()?;
    for room in [None, Some(ROOM)] {
        drop_caches()?;
        let group = Group::new("user")?;
        let user = User::start(group.command(Path::new("sleep")), &path)?;
        // A program's own files are charged to who reads them first: that is over by now.
        run(&["terrace", "--version"])?;
        if let Some(room) = room {
            group.set("memory.max", &(group.usage()? + room).to_string())?;
        }
        let charged = || group.counter("memory.stat", "file");
        let (before, reclaims_before) = (charged()?, reclaims(&group)?);
        let restored = restore(&[], user.pid(), &["--only", "files"])?;
        write_result(&json!({
            "fact": if room.is_some() { "files, limited" } else { "files" },
            "charged_bytes": charged()? - before,
            "reclaims": reclaims(&group)? - reclaims_before,
            "restored": restored,
        }))?;
    }
    Ok(())
}

fn lists() -> Outcome<()> {
    let usual = fs::read_to_string(LRU).map_err(failed(LRU))?;
    let reclaimed = reclaimed_by("0").and_then(|()| reclaimed_by("7"));
    write(LRU, usual.trim())?;
    reclaimed
}

/// What the kernel's own choice pushed out: the two lists of old, or generations.
fn reclaimed_by(lists: &str) -> Outcome<()> {
    write(LRU, lists)?;
    let group = Group::new("reclaimed")?;
    let mut toucher = toucher_in(&group)?;
    // It says so if it could not get all, and another try gets more.
    let swapped = until_in_swap(toucher.pid(), || {
        let _ = group.set("memory.reclaim", "16M");
        Ok(())
    })?;
    let restored = restore(&[], toucher.pid(), &ANONYMOUS)?;
    let touched = toucher.touch()?;
    let wrong = toucher.wrong_pages()?;
    write_result(&json!({
        "fact": format!("lru_gen {lists}"),
        "swapped_pages": swapped,
        "restored": restored,
        "major_faults": touched[2],
        "wrong_pages": wrong,
    }))
}

/// Every other page can be compressed and stays in memory, the others go to the disk.
fn compressed() -> Outcome<()> {
    write(ZSWAP, "Y")?;
    let mut toucher = WorkingSet::start("terrace", MIB, "half")?;
    push_out(toucher.pid())?;
    let counters = || Outcome::Ok([counted("zswpin")?, counted("pswpin")?]);
    let before = counters()?;
    let restored = restore(&[], toucher.pid(), &ANONYMOUS)?;
    let after = counters()?;
    let wrong = toucher.wrong_pages()?;
    write(ZSWAP, "N")?;
    write_result(&json!({
        "fact": "zswap",
        "from_pool": after[0] - before[0],
        "from_disk": after[1] - before[1],
        "restored": restored,
        "wrong_pages": wrong,
    }))
}

/// When a quarter of the set is back from a slow disk, its source goes away.
fn midway(event: &str) -> Outcome<()> {
    let swap = Swap::on(SLOW)?;
    let mut toucher = WorkingSet::start("terrace", MIB, "contiguous")?;
    push_out(toucher.pid())?;
    let mut command = restoring(&[], toucher.pid(), &ANONYMOUS);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut restoring = Running::start(&mut command)?;
    while system::swapped_pages(toucher.pid())? > PAGES / 4 * 3 {
        if !restoring.runs() {
            return Err(format!("{event}: the restore ended before"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let began = Instant::now();
    match event {
        "swapoff" => drop(swap),
        "kill" => toucher.kill()?,
        _ => toucher.send("\"exec\"")?,
    }
    let event_s = began.elapsed().as_secs_f64();
    while restoring.runs() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
    let hangs = restoring.runs();
    let ended_s = began.elapsed().as_secs_f64();
    // One that hangs is heard as far as it came.
    let _ = restoring.0.kill();
    let wrong = match event {
        "swapoff" => toucher.wrong_pages()?,
        _ => 0,
    };
    write_result(&json!({
        "fact": event,
        "hangs": hangs,
        "event_s": event_s,
        "ended_s": ended_s,
        "restored": outcome(&restoring.output()?),
        "wrong_pages": wrong,
    }))
}

/// Every stage of Yama.
fn traced() -> Outcome<()> {
    for scope in ["0", "1", "2", "3"] {
        write(YAMA, scope)?;
        let mut toucher = WorkingSet::start("terrace", MIB, "scattered")?;
        push_out(toucher.pid())?;
        let user = match scope {
            "1" | "3" => restore(&UNPRIVILEGED, toucher.pid(), &[])?,
            _ => Value::Null,
        };
        let unadvised = match scope {
            "3" => restore(&["setpriv", "--bounding-set=-sys_nice"], toucher.pid(), &[])?,
            _ => Value::Null,
        };
        let restored = restore(&[], toucher.pid(), &ANONYMOUS)?;
        let touched = toucher.touch()?;
        let wrong = toucher.wrong_pages()?;
        write_result(&json!({
            "fact": format!("ptrace_scope {scope}"),
            "user": user,
            "unadvised": unadvised,
            "restored": restored,
            "major_faults": touched[2],
            "wrong_pages": wrong,
        }))?;
    }
    Ok(())
}

fn toucher_in(group: &Group) -> Outcome<WorkingSet> {
    let mut command = group.command(Path::new("terrace"));
    command.args(WorkingSet::arguments(MIB, "scattered"));
    WorkingSet::spawn(command)
}

/// Pushes the whole set of a process out; how many pages are in swap then. What was written stays
/// in the swap cache until memory is asked for.
fn push_out(pid: u32) -> Outcome<u64> {
    let evict = || run(&["terrace", "warm", "evict", &pid.to_string()]).map(drop);
    let swapped = until_in_swap(pid, evict)?;
    for _ in 0..TRIES {
        // It says so if it could not get all. Programs are not to be read again each time.
        let _ = write(RECLAIM, "16M swappiness=200");
        if counted("nr_swapcached")? < PAGES / 100 {
            return Ok(swapped);
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err("the swap cache stays full".to_owned())
}

/// Pushes until nearly all of the set is in swap: pages that were touched just now are passed over.
fn until_in_swap(pid: u32, push: impl Fn() -> Outcome<()>) -> Outcome<u64> {
    let mut swapped = 0;
    for _ in 0..TRIES {
        push()?;
        swapped = system::swapped_pages(pid)?;
        if swapped >= PAGES / 100 * 98 {
            return Ok(swapped);
        }
    }
    Err(format!("of {PAGES} pages only {swapped} are in swap"))
}

fn counted(name: &str) -> Outcome<u64> {
    system::counted(|counter| counter == name)
}

/// `terrace warm restore` of one process, behind the words of `by`.
fn restoring(by: &[&str], pid: u32, extra: &[&str]) -> Command {
    let mut words = by.to_vec();
    let pid = pid.to_string();
    words.extend(["terrace", "warm", "restore", "--pid", &pid, "--json"]);
    words.extend(extra);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn restore(by: &[&str], pid: u32, extra: &[&str]) -> Outcome<Value> {
    let output = restoring(by, pid, extra).output();
    output.map_err(failed("terrace")).map(|output| outcome(&output))
}

/// How it ended, what it complained of, its receipt.
fn outcome(output: &Output) -> Value {
    json!({
        "status": output.status.code(),
        "complaint": String::from_utf8_lossy(&output.stderr),
        "receipt": serde_json::from_slice::<Value>(&output.stdout).ok().map(|mut text| text["result"].take()),
    })
}
