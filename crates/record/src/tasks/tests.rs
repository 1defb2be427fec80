//! The listener where it needs no rights: it opens everywhere and says what it cannot see.
//! What needs root is in the tests of the crate.

use super::*;
use model::recording::SourceState;

#[test]
fn there_is_a_listener_with_or_without_rights() {
    let (listener, sights) = Listener::open(sys::clock::now_ns());
    let names: Vec<&str> = sights.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["exits", "delay_accounting"]);
    assert!(sights.iter().all(|(_, sight)| *sight != SourceState::NotAsked));
    assert!(listener.is_some());
}

#[test]
fn threads_that_still_run_are_reported_from_proc_alone() {
    if !std::path::Path::new("/proc/self/schedstat").exists() {
        return testkit::skip("/proc/self/schedstat");
    }
    let (listener, _) = Listener::open(sys::clock::now_ns());
    let mut listener = listener.unwrap();
    // As an ordinary user has it.
    listener.ends = None;
    listener.asks = None;
    let mut command = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    listener.watch(&TaskScope { processes: Some(vec![command.id()]), reaper: None });
    listener.read();
    let report = listener.finish(sys::clock::now_ns());
    command.kill().unwrap();
    command.wait().unwrap();
    assert_eq!((report.processes, report.lost), (1, 0));
    let task = report.tasks.first().unwrap();
    assert_eq!((task.pid, task.source), (command.id(), TaskSource::Proc));
    assert_eq!((task.threads, task.thrash), (1, None));
}

#[test]
fn without_a_subject_nothing_is_kept() {
    let (listener, _) = Listener::open(sys::clock::now_ns());
    let mut listener = listener.unwrap();
    listener.read();
    let report = listener.finish(sys::clock::now_ns());
    assert!(report.tasks.is_empty());
    assert_eq!(report.processes, 0);
}

/// One that left the group and came back is new in its list again.
#[test]
fn what_joins_again_keeps_what_it_was_charged_since() {
    let (listener, _) = Listener::open(sys::clock::now_ns());
    let mut listener = listener.unwrap();
    let script = ["-c", "while :; do :; done"];
    let mut first = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut joined = std::process::Command::new("sh").args(script).spawn().unwrap();
    let a_while = std::time::Duration::from_millis(300);
    listener.watch(&TaskScope { processes: Some(vec![first.id()]), reaper: None });
    std::thread::sleep(a_while);
    let pid = joined.id();
    let ran_ns = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0u64)
    };
    let before_ns = ran_ns();
    listener.join(&[pid]);
    std::thread::sleep(a_while);
    let after_ns = ran_ns();
    listener.join(&[pid]);
    let report = listener.finish(sys::clock::now_ns());
    for child in [&mut first, &mut joined] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if after_ns == before_ns {
        return testkit::skip("/proc/PID/schedstat");
    }
    let task = report.tasks.iter().find(|task| task.pid == pid).unwrap();
    let run_ns = task.run_ns;
    assert!(run_ns * 2 > after_ns - before_ns, "{run_ns} of {after_ns} less {before_ns}");
}
