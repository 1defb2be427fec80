//! Who did it: names of processes by the rule for those of threads, groups, users' numbers, and the
//! paths of files.
//!
//! There may be hundreds of thousands of them, and no text of the recorder quotes any but those
//! that the facts have too: so only the first of them are looked for in texts.

use super::comm;
use super::names::StandIns;
use crate::known_identities::is_others;
use model::recording::Who;
use std::collections::HashMap;

/// The first number of people's accounts; those below are of services, the same on all machines.
const FIRST_PERSON: u32 = 1000;

/// The account `nobody`.
const NO_PERSON: u32 = 65_534;

/// Replaces what is personal; `program` is the subject's, which stays.
pub(super) fn redact(who: &mut Who, program: Option<&str>, names: &mut StandIns) {
    names.begin_listing();
    let mut users = HashMap::new();
    for process in &mut who.processes {
        if !is_others(process) {
            comm(&mut process.name, process.is_kernel, program, names);
        }
        if !process.group.is_empty() {
            names.group(&mut process.group);
        }
        if process.user >= FIRST_PERSON && process.user != NO_PERSON {
            let next = FIRST_PERSON.saturating_add(users.len() as u32);
            process.user = *users.entry(process.user).or_insert(next);
        }
    }
    for path in who.files.iter_mut().filter_map(|file| file.path.as_mut()) {
        names.path(path);
    }
}
