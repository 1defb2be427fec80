//! A file that does not fit into the limit of a group: what pages that leave memory and come back
//! are made with.

use super::has_program;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use testkit::{Cgroup, Random};

const MIB: u64 = 1 << 20;

/// What lacks here for a group with a limit, programs in the kernel and readers in Python.
pub fn needs() -> Option<&'static str> {
    if !testkit::is_admin() {
        return Some("root outside of a container: groups with a limit, programs in the kernel");
    }
    if let Err(_need) = Cgroup::v1_memory(MIB) {
        return Some("control groups of version 1 with the memory controller");
    }
    (!has_program("python3")).then_some("python3")
}

/// Writes whole MiB that no disk can shorten, always the same ones.
pub fn write_random(path: &Path, bytes: u64) {
    let mut random = Random(5);
    let mut file = File::create(path).unwrap();
    let mut piece = vec![0; MIB as usize];
    for _ in 0..bytes / MIB {
        random.fill(&mut piece);
        file.write_all(&piece).unwrap();
    }
    file.sync_all().unwrap();
}
