//! One reader per source of counters, over a root directory: files held open, read whole
//! with `pread` into one buffer, nothing allocated for a sample.

use crate::registry::{Registry, Row};
use machine::Root;
use model::recording::Facts;

/// What is collected for whom.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The processes at the top of the subject's tree; empty for the whole machine.
    pub processes: Vec<u32>,
    /// A group whose members are the subject instead of a tree; its directory.
    pub group: Option<std::path::PathBuf>,
}

/// All sources that this machine has.
#[derive(Debug)]
pub struct Collectors {}

impl Collectors {
    /// Opens every source; what is absent is left out. Fills in the facts that the
    /// sources know: devices, mounts, swaps, groups, settings, sights.
    pub fn open(
        _root: &Root,
        _scope: &Scope,
        _registry: &mut Registry,
        _facts: &mut Facts,
    ) -> Self {
        Self {}
    }

    /// Reads the sources that are due at `at_ns` into `row`: fast ones always, slow ones
    /// once a second, or all of them where `all` is set (first and last sample).
    pub fn read(&mut self, _at_ns: u64, _all: bool, _registry: &mut Registry, _row: &mut Row) {}
}
