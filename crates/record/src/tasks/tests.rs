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
    listener.watch(&TaskScope { processes: vec![command.id()], reaper: None });
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
