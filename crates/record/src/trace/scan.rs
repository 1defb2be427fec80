//! The threads that exist already, and their states, from /proc.
//!
//! The instant of a thread is taken before its files are read. What happens between the two is
//! reported by events as well, and an event sets a state whatever it was before, so nothing is
//! counted twice.

use super::event::{Event, EventKind, Sleep, State};
use super::stack::FunctionTable;
use crate::process_tree::{self, numbers, state_and_parent};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use sys::clock::now_ns;

/// Adds an event for each thread of `processes`, or of every process where there are none
/// named.
pub fn threads(processes: Option<&HashSet<u32>>, table: &FunctionTable, events: &mut Vec<Event>) {
    match processes {
        Some(processes) => {
            for process in processes {
                threads_of(*process, table, events);
            }
        }
        None => {
            for process in numbers(Path::new("/proc")) {
                threads_of(process, table, events);
            }
        }
    }
}

/// The given processes with all their children, and the children's children.
pub fn with_children(processes: &[u32]) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (process, parent) in process_tree::parents_around(processes) {
        children.entry(parent).or_default().push(process);
    }
    let mut found: HashSet<u32> = HashSet::new();
    let mut open = processes.to_vec();
    while let Some(process) = open.pop() {
        if found.insert(process) {
            open.extend(children.get(&process).into_iter().flatten());
        }
    }
    found
}

fn threads_of(process: u32, table: &FunctionTable, events: &mut Vec<Event>) {
    let directory = format!("/proc/{process}/task");
    for thread in numbers(Path::new(&directory)) {
        let time_ns = now_ns();
        let Some((letter, _)) = state_and_parent(&format!("{directory}/{thread}/stat")) else {
            continue;
        };
        let stack = || std::fs::read_to_string(format!("{directory}/{thread}/stack"));
        let state = match letter {
            b'R' => None,
            b'Z' | b'X' | b'x' => continue,
            b'T' | b't' => Some(State::Sleep(Sleep::Signal)),
            b'I' => Some(State::Sleep(Sleep::Kernel)),
            _ => Some(match stack() {
                Ok(text) => table.classify_text(letter == b'D', &text),
                Err(_) => State::Sleep(Sleep::Unknown),
            }),
        };
        let what = EventKind::Seen { process, thread, state };
        events.push(Event { time_ns, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_with_all_its_threads() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || wait.recv());
        let own = std::process::id();
        let mut events = Vec::new();
        let table = FunctionTable::of_kernel();
        threads(Some(&HashSet::from([own])), table, &mut events);
        let of_own = |event: &&Event| matches!(event.what, EventKind::Seen { process, .. } if process == own);
        assert!(events.iter().filter(of_own).count() >= 2);
        drop(end);
        sleeper.join().unwrap().unwrap_err();
    }

    #[test]
    fn children_belong_to_their_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = with_children(&[std::process::id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&std::process::id()) && found.contains(&child.id()));
    }
}
