//! The control groups of the subject and their parents, of version 1, version 2 or both.
//!
//! Each controller is looked for on its own, so a host that has memory in version 1 and an
//! otherwise empty tree of version 2 gives both. Level 0 is the subject's own group in each
//! hierarchy. The top of a version 2 tree is the machine itself and left out. The own group is read
//! for each sample, parents and limits once a second. [`FollowedGroups`] goes with a subject that
//! changes its group.

mod followed;

use super::group_files::{GroupFiles, TieredSources};
use super::group_io;
use super::keyed::Single;
use super::table::{Column, LineTable};
use super::{Scope, pressure};
use machine::Root;
use machine::cgroup::{CgroupVersion, Controller, Group, GroupPlace, LimitKind, locate};
use machine::mounts::{self, Mount};
use model::recording::GroupFacts;
use std::path::Path;

pub(super) use followed::FollowedGroups;

/// Levels that are read; real trees are not nested more deeply.
const MAX_LEVELS: usize = 16;
const NS_PER_US: u64 = 1_000;
/// Of memory.stat, what starts so is counted; all else is a level in bytes.
const COUNTED: [&str; 10] = [
    "pg",
    "workingset_",
    "thp_",
    "zswpin",
    "zswpout",
    "zswpwb",
    "numa_",
    "swpin_",
    "swpout_",
    "allocstall",
];

/// What a level is made of: the group of each hierarchy at that depth.
#[derive(Default)]
struct Level {
    memory: Option<(CgroupVersion, Group)>,
    cpu: Option<(CgroupVersion, Group)>,
    cpu_accounting: Option<Group>,
    io: Option<(CgroupVersion, Group)>,
    pids: Option<(CgroupVersion, Group)>,
    unified: Option<Group>,
}

/// Opens the files of all levels of the groups that a /proc/PID/cgroup names; and which
/// groups those are.
fn open_levels(root: &Root, membership: &str) -> (TieredSources, Vec<GroupFacts>) {
    let mut sources = TieredSources::new();
    let mut facts = Vec::new();
    let levels = levels(root, &mounts::read(root), membership);
    for (number, level) in levels.into_iter().enumerate() {
        let prefix = format!("group{number}");
        let before = sources.len();
        open_level(root, &prefix, number > 0, &level, &mut sources);
        if sources.len() > before {
            facts.push(level_facts(number, &level));
        }
    }
    (sources, facts)
}

/// The text of /proc/PID/cgroup for the subject. The machine's own group is the top.
fn membership(root: &Root, scope: &Scope) -> String {
    let of_process = |pid: u32| root.read(format!("/proc/{pid}/cgroup")).ok();
    let Some(directory) = &scope.group else {
        let first = scope.processes.first();
        let found = first.and_then(|pid| of_process(*pid));
        return found.unwrap_or_else(|| "1:memory,cpu,cpuacct,blkio:/\n0::/\n".to_owned());
    };
    let member = || {
        let list = root.read(directory.join("cgroup.procs")).ok()?;
        list.lines().next()?.trim().parse().ok()
    };
    let pid = scope.processes.first().copied().or_else(member);
    let rest = pid.and_then(of_process).unwrap_or_default();
    // The directory itself is first: it holds whatever its members' file says.
    let own = line_of(directory, &mounts::read(root)).unwrap_or_default();
    format!("{own}\n{rest}")
}

/// The line of /proc/PID/cgroup that a process in this directory would have.
fn line_of(directory: &Path, mounts: &[Mount]) -> Option<String> {
    let mount = mounts::behind(mounts, directory)?;
    let below = directory.strip_prefix(&mount.mount_point).ok()?;
    let path = mount.root.join(below).display().to_string();
    match mount.fs_type.as_str() {
        "cgroup2" => Some(format!("0::{path}")),
        "cgroup" => Some(format!("1:{}:{path}", mount.super_options)),
        _ => None,
    }
}

fn levels(root: &Root, mounts: &[Mount], membership: &str) -> Vec<Level> {
    let place = |controller| locate(mounts, membership, controller);
    // A version 2 tree also answers for controllers that it may not have: then no file opens.
    let groups = |place: Option<GroupPlace>| {
        let version = place.as_ref().map(|place| place.version);
        let groups = place.map(|place| place.groups()).unwrap_or_default();
        let is_machine = move |group: &Group| {
            version == Some(CgroupVersion::V2)
                && group.path == "/"
                && !root.path(group.directory.join("cgroup.type")).exists()
        };
        let kept = groups.into_iter().filter(move |group| !is_machine(group));
        kept.filter_map(move |group| Some((version?, group)))
    };
    let mut levels: Vec<Level> = Vec::new();
    let mut put = |controller, set: fn(&mut Level, (CgroupVersion, Group))| {
        for (number, group) in groups(place(controller)).take(MAX_LEVELS).enumerate() {
            if levels.len() <= number {
                levels.push(Level::default());
            }
            set(&mut levels[number], group);
        }
    };
    put(Controller::Memory, |level, group| level.memory = Some(group));
    put(Controller::Cpu, |level, group| level.cpu = Some(group));
    put(Controller::Io, |level, group| level.io = Some(group));
    put(Controller::Pids, |level, group| level.pids = Some(group));
    put(Controller::Unified, |level, (_, group)| level.unified = Some(group));
    put(Controller::CpuAccounting, |level, (version, group)| {
        level.cpu_accounting = (version == CgroupVersion::V1).then_some(group);
    });
    levels
}

fn level_facts(number: usize, level: &Level) -> GroupFacts {
    let path = |group: Option<&Group>| group.map(|group| group.path.clone());
    let versioned = |group: &Option<(CgroupVersion, Group)>| {
        group.as_ref().map(|(_, group)| group.path.clone())
    };
    let paths = [
        ("memory", versioned(&level.memory)),
        ("cpu", versioned(&level.cpu)),
        ("cpuacct", path(level.cpu_accounting.as_ref())),
        ("io", versioned(&level.io)),
        ("pids", versioned(&level.pids)),
        ("unified", path(level.unified.as_ref())),
    ];
    let known = paths.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path?)));
    GroupFacts {
        level: u32::try_from(number).unwrap_or(u32::MAX),
        paths: known.collect(),
        made: false,
    }
}

fn open_level(root: &Root, prefix: &str, parent: bool, level: &Level, sources: &mut TieredSources) {
    let mut at = |group: &Group, open: &mut dyn FnMut(&mut GroupFiles<'_>)| {
        open(&mut GroupFiles {
            root,
            prefix,
            directory: &group.directory,
            parent,
            sources: &mut *sources,
            first: None,
        });
    };
    if let Some((version, group)) = &level.memory {
        at(group, &mut |files| memory(files, *version));
    }
    if let Some((version, group)) = &level.cpu {
        at(group, &mut |files| cpu(files, *version));
    }
    if let Some((version, group)) = &level.io {
        at(group, &mut |files| group_io::open(files, *version));
    }
    if let Some((_, group)) = &level.pids {
        at(group, &mut pids);
    }
    let mut has_times = matches!(level.cpu, Some((CgroupVersion::V2, _)));
    if let Some(group) = &level.unified {
        at(group, &mut |files| {
            // Where the controller is of version 1 the tree of version 2 still has the times.
            has_times = has_times || files.keep(files.lines("cpu.stat", cpu_times));
            pressures(files);
        });
    }
    if let Some(group) = level.cpu_accounting.as_ref().filter(|_| !has_times) {
        at(group, &mut cpu_accounting);
    }
}

fn memory(files: &mut GroupFiles<'_>, version: CgroupVersion) {
    match version {
        CgroupVersion::V1 => {
            files.keep(files.level("memory.usage_in_bytes", "memory.usage_bytes", "bytes"));
            files.keep_slow(files.level("memory.limit_in_bytes", "memory.limit_bytes", "bytes"));
            let both = "memory.memsw_limit_bytes";
            files.keep_slow(files.level("memory.memsw.limit_in_bytes", both, "bytes"));
            files.keep(files.count("memory.failcnt", "memory.failcnt", "count"));
            files.keep(files.lines("memory.oom_control", memory_events));
            files.keep(files.lines("memory.stat", memory_stat_v1));
        }
        CgroupVersion::V2 => {
            files.keep(files.level("memory.current", "memory.usage_bytes", "bytes"));
            files.keep_slow(files.level("memory.max", "memory.limit_bytes", "bytes"));
            files.keep_slow(files.level("memory.high", "memory.high_bytes", "bytes"));
            files.keep(files.level("memory.swap.current", "memory.swap_bytes", "bytes"));
            files.keep_slow(files.level("memory.swap.max", "memory.swap_limit_bytes", "bytes"));
            files.keep(files.lines("memory.events", memory_events));
            files.keep(files.lines("memory.stat", memory_stat));
        }
    }
}

/// Opens what belongs to one limit of a group that is not the subject's: the limit, what it counts,
/// and how much of it is used.
pub(super) fn open_limited(files: &mut GroupFiles<'_>, version: CgroupVersion, kind: LimitKind) {
    match (version, kind) {
        (CgroupVersion::V1, LimitKind::Memory) => {
            files.keep(files.level("memory.usage_in_bytes", "memory.usage_bytes", "bytes"));
            files.keep_slow(files.level("memory.limit_in_bytes", "memory.limit_bytes", "bytes"));
            files.keep(files.count("memory.failcnt", "memory.failcnt", "count"));
            files.keep(files.lines("memory.oom_control", memory_events));
        }
        (CgroupVersion::V2, LimitKind::Memory) => {
            files.keep(files.level("memory.current", "memory.usage_bytes", "bytes"));
            files.keep_slow(files.level("memory.max", "memory.limit_bytes", "bytes"));
            files.keep_slow(files.level("memory.high", "memory.high_bytes", "bytes"));
            // A process that is killed for this limit may be in a group below.
            let has_local = files.keep(files.lines("memory.events.local", own_memory_events));
            let events = if has_local { killed_below } else { memory_events };
            files.keep(files.lines("memory.events", events));
        }
        (_, LimitKind::Cpu) => cpu(files, version),
        (_, LimitKind::Io) => group_io::open(files, version),
        (_, LimitKind::Pids) => pids(files),
    }
    let resource = match kind {
        LimitKind::Memory => "memory",
        LimitKind::Cpu => "cpu",
        LimitKind::Io => "io",
        LimitKind::Pids => return,
    };
    let prefix = format!("{}.pressure.{resource}", files.prefix);
    let path = files.path(&format!("{resource}.pressure"));
    files.keep(pressure::file(files.root, path, prefix));
}

fn pids(files: &mut GroupFiles<'_>) {
    files.keep_slow(files.level("pids.max", "pids.limit", "count"));
    files.keep_slow(files.level("pids.current", "pids.current", "count"));
    files.keep_slow(files.lines("pids.events", refused_forks));
}

fn own_memory_events(prefix: &str, key: &str) -> Vec<Column> {
    if key == "oom_kill" { Vec::new() } else { memory_events(prefix, key) }
}

fn killed_below(prefix: &str, key: &str) -> Vec<Column> {
    if key == "oom_kill" { memory_events(prefix, key) } else { Vec::new() }
}

fn refused_forks(prefix: &str, key: &str) -> Vec<Column> {
    let column = Column::counter(0, format!("{prefix}.pids.refused"), "count", 1);
    Vec::from_iter((key == "max").then_some(column))
}

fn memory_events(prefix: &str, key: &str) -> Vec<Column> {
    match key {
        "low" | "high" | "max" | "oom" | "oom_kill" => {
            let name = format!("{prefix}.memory.events.{key}");
            vec![Column::counter(0, name, "count", 1)]
        }
        _ => Vec::new(),
    }
}

fn memory_stat(prefix: &str, key: &str) -> Vec<Column> {
    let name = format!("{prefix}.memory.stat.{key}");
    vec![if COUNTED.iter().any(|start| key.starts_with(start)) {
        Column::counter(0, name, "count", 1)
    } else {
        Column::gauge(0, name, "bytes", 1)
    }]
}

/// Version 1 has each figure twice: of the group alone, and with its children ("total_").
fn memory_stat_v1(prefix: &str, key: &str) -> Vec<Column> {
    let Some(key) = key.strip_prefix("total_") else {
        return Vec::new();
    };
    let swap = Column::gauge(0, format!("{prefix}.memory.swap_bytes"), "bytes", 1);
    let mut columns = memory_stat(prefix, key);
    columns.extend((key == "swap").then_some(swap));
    columns
}

fn cpu(files: &mut GroupFiles<'_>, version: CgroupVersion) {
    match version {
        CgroupVersion::V1 => {
            files.keep(files.lines("cpu.stat", cpu_throttling));
            files.keep_slow(files.level("cpu.cfs_quota_us", "cpu.quota_us", "us"));
            files.keep_slow(files.level("cpu.cfs_period_us", "cpu.period_us", "us"));
        }
        CgroupVersion::V2 => {
            files.keep(files.lines("cpu.stat", cpu_all));
            let name = |name: &str| format!("{}.cpu.{name}", files.prefix);
            let columns = vec![
                Column::gauge(0, name("quota_us"), "us", 1),
                Column::gauge(1, name("period_us"), "us", 1),
            ];
            files.keep_slow(LineTable::open(files.root, files.path("cpu.max"), Single(columns)));
        }
    }
}

fn cpu_all(prefix: &str, key: &str) -> Vec<Column> {
    let mut columns = cpu_times(prefix, key);
    columns.extend(cpu_throttling(prefix, key));
    columns
}

fn cpu_times(prefix: &str, key: &str) -> Vec<Column> {
    let figure = match key {
        "usage_usec" => "usage_ns",
        "user_usec" => "user_ns",
        "system_usec" => "system_ns",
        _ => return Vec::new(),
    };
    let name = format!("{prefix}.cpu.{figure}");
    vec![Column::counter(0, name, "ns", NS_PER_US)]
}

fn cpu_throttling(prefix: &str, key: &str) -> Vec<Column> {
    let (name, unit, scale) = match key {
        "nr_periods" => ("periods", "count", 1),
        "nr_throttled" => ("throttled_periods", "count", 1),
        "throttled_usec" => ("throttled_ns", "ns", NS_PER_US),
        "throttled_time" => ("throttled_ns", "ns", 1),
        _ => return Vec::new(),
    };
    vec![Column::counter(0, format!("{prefix}.cpu.{name}"), unit, scale)]
}

fn cpu_accounting(files: &mut GroupFiles<'_>) {
    let names = [
        ("cpuacct.usage", "cpu.usage_ns"),
        ("cpuacct.usage_user", "cpu.user_ns"),
        ("cpuacct.usage_sys", "cpu.system_ns"),
    ];
    for (file, name) in names {
        files.keep(files.count(file, name, "ns"));
    }
}

fn pressures(files: &mut GroupFiles<'_>) {
    for resource in pressure::RESOURCES {
        let prefix = format!("{}.pressure.{resource}", files.prefix);
        let path = files.path(&format!("{resource}.pressure"));
        files.keep(pressure::file(files.root, path, prefix));
    }
}
