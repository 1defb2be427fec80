//! Scenes of the whole machine about memory: one program takes it, another one waits.
//! A memory group stands for a machine of that size, so that nothing else is short of memory.

use super::Made;
use super::make::{MIB, cold_file};
use super::scenes::{Program, workload_as};
use testkit::{Cgroup, Mounted, SwapArea, TempDir};

/// A backup reads a large file through the cache that holds the file of a service, which is on a
/// hard disk. Both are in one group, which stands for a machine of that much memory.
pub fn backup_evicts() -> Result<Made, String> {
    let directory = TempDir::new();
    let disk = Mounted::on_hdd(160 * MIB)?;
    let hot = cold_file(disk.path(), "hot", 96);
    let source = cold_file(directory.path(), "source", 400);
    let group = Cgroup::v1_memory(128 * MIB)?;
    let service = workload_as(&directory, "service", &["serve_file", &hot]);
    let backup = workload_as(&directory, "backup", &["back_up", &source]);
    Ok(Made {
        scene: vec![
            Program::resident(service).within(&group),
            Program::lead(backup).within(&group),
        ],
        _held_groups: vec![group],
        _mounts: vec![disk],
        _directories: vec![directory],
        ..Made::default()
    })
}

/// A program leaks until the memory of a database in the same group is swapped.
pub fn leak_swaps() -> Result<Made, String> {
    let directory = TempDir::new();
    let swap = SwapArea::on(512 * MIB)?;
    let group = Cgroup::v1_memory(192 * MIB)?;
    let database = workload_as(&directory, "database", &["serve_memory", "128"]);
    let leak = workload_as(&directory, "leak", &["leak", "256"]);
    Ok(Made {
        scene: vec![Program::resident(database).within(&group), Program::lead(leak).within(&group)],
        _held_groups: vec![group],
        _swaps: vec![swap],
        _directories: vec![directory],
        ..Made::default()
    })
}

/// A job takes fresh memory again and again, beside a service that has hardly any work.
pub fn analytics_touches() -> Result<Made, String> {
    let directory = TempDir::new();
    let frontend = workload_as(&directory, "frontend", &["answer"]);
    let analytics = workload_as(&directory, "analytics", &["analyse", "512", "6"]);
    let scene = vec![Program::resident(frontend), Program::lead(analytics)];
    Ok(Made { scene, _directories: vec![directory], ..Made::default() })
}
