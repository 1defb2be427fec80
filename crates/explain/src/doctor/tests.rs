//! Each obstacle fires on a refusal that has it, and not on its near miss; the lines hold all that
//! is lacking where the program runs.

use super::needs::{BPF, NET_ADMIN, PERFMON, SYS_ADMIN};
use super::*;
use model::doctor::{KnownObstacle, RunPlace, SourceRefusal};
use std::collections::BTreeSet;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;

/// Root of the machine, with all that any source needs.
fn root() -> Surroundings {
    Surroundings {
        capabilities: CAPABILITIES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        first_user_namespace: true,
        first_process_namespace: true,
        ..Surroundings::default()
    }
}

/// An ordinary user of the machine.
fn user() -> Surroundings {
    Surroundings { uid: 1000, capabilities: BTreeSet::new(), ..root() }
}

/// Root of a container of Docker without options: few capabilities, own process numbers, a filter.
fn docker() -> Surroundings {
    Surroundings {
        place: RunPlace::Docker,
        capabilities: BTreeSet::new(),
        first_process_namespace: false,
        filtered: true,
        ..root()
    }
}

fn judged(source: SourceId, attempt: SourceAttempt, here: &Surroundings) -> SourceReport {
    judge(&BTreeMap::from([(source, attempt)]), here).pop().unwrap()
}

fn refused(source: SourceId, errno: impl Into<Option<i32>>, here: &Surroundings) -> SourceReport {
    let refusal =
        SourceRefusal { why: "no".to_owned(), errno: errno.into(), ..SourceRefusal::default() };
    judged(source, SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() }, here)
}

fn known(source: SourceId, known: KnownObstacle, here: &Surroundings) -> SourceReport {
    let refusal =
        SourceRefusal { why: "no".to_owned(), known: Some(known), ..SourceRefusal::default() };
    judged(source, SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() }, here)
}

fn obstacle(report: &SourceReport) -> Obstacle {
    report.obstacle.unwrap()
}

fn lines(report: &SourceReport) -> Vec<&str> {
    report.lines.iter().map(|permit| permit.line.as_str()).collect()
}

#[test]
fn every_source_has_one_row_that_costs_something() {
    let rows: Vec<_> = table().collect();
    let sources: BTreeSet<SourceId> = rows.iter().map(|row| row.source).collect();
    assert_eq!(sources.len(), rows.len(), "no source has two rows");
    for row in rows {
        assert!(!row.title.is_empty() && !row.commands.is_empty() && !row.then.is_empty());
        for name in row.capabilities {
            assert!(CAPABILITIES.iter().any(|(known, _)| known == name), "{name}");
        }
        // What only a setting, a module or a mount opens has the line for it.
        assert_eq!(row.setting.is_some(), row.open_setting.is_some(), "{}", row.title);
    }
}

#[test]
fn the_first_sentence_counts_every_source_once() {
    let works = SourceAttempt { seen: "x".to_owned(), ..SourceAttempt::default() };
    let idle = SourceAttempt { is_idle: true, ..works.clone() };
    let report = |source, attempt: &SourceAttempt| judged(source, attempt.clone(), &root());
    let mut all = vec![report(SourceId::Ebpf, &works), report(SourceId::Pressure, &works)];
    assert_eq!(summary(&all), "All 2 sources work here.");
    all.push(refused(SourceId::Tracepoints, EACCES, &user()));
    all.push(refused(SourceId::PageFaults, EACCES, &user()));
    all.push(refused(SourceId::Cachestat, ENOSYS, &root()));
    assert_eq!(
        summary(&all),
        "2 of 5 sources work here; 2 need a permission and 1 needs another kernel."
    );
    all.truncate(1);
    all.push(report(SourceId::Swap, &idle));
    assert_eq!(summary(&all), "1 of 2 sources works here; 1 is allowed and not set up.");
}

#[test]
fn health_follows_what_was_seen_and_refused() {
    let seen = SourceAttempt { seen: "one".to_owned(), ..SourceAttempt::default() };
    assert_eq!(judged(SourceId::Swap, seen.clone(), &root()).health, SourceHealth::Works);
    let idle = SourceAttempt { is_idle: true, ..seen.clone() };
    assert_eq!(judged(SourceId::Swap, idle.clone(), &root()).health, SourceHealth::Idle);
    let refusal = SourceRefusal { errno: Some(EPERM), ..SourceRefusal::default() };
    let partly = SourceAttempt { refusals: vec![refusal.clone()], ..seen };
    assert_eq!(judged(SourceId::Swap, partly, &user()).health, SourceHealth::Partly);
    let missing = SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() };
    assert_eq!(judged(SourceId::Swap, missing, &user()).health, SourceHealth::Missing);
    // An idle source may name what would set it up, and needs no permission for it.
    let pool = judged(SourceId::HugePages, idle, &root());
    assert_eq!(lines(&pool), ["sudo sysctl vm.nr_hugepages=64"]);
    assert!(!pool.can_be_allowed());
}

#[test]
fn a_user_lacks_capabilities_or_root() {
    let ebpf = refused(SourceId::Ebpf, EPERM, &user());
    assert_eq!(obstacle(&ebpf), Obstacle::Permission);
    assert_eq!(
        lines(&ebpf),
        [
            "sudo terrace record -o FILE.trec",
            "sudo setcap cap_bpf,cap_perfmon+ep $(command -v terrace)"
        ]
    );
    assert!(ebpf.lines.iter().all(|permit| !permit.risk.is_empty()));
    assert_eq!(ebpf.errno.as_deref(), Some("EPERM"));
    assert!(ebpf.why.unwrap().contains("CAP_BPF and CAP_PERFMON"));
    // A capability of the file is not enough where the program asks for root.
    let rings = refused(SourceId::Tracepoints, EACCES, &user());
    assert_eq!(lines(&rings), ["sudo terrace record -o FILE.trec"]);
    // The recorder refused before the kernel was asked.
    let silent = refused(SourceId::Ebpf, None, &user());
    assert_eq!(obstacle(&silent), Obstacle::Permission);
}

#[test]
fn root_without_a_capability_is_named_it() {
    let mut here = root();
    here.capabilities.remove(BPF);
    let ebpf = refused(SourceId::Ebpf, EPERM, &here);
    assert_eq!(obstacle(&ebpf), Obstacle::Permission);
    assert_eq!(lines(&ebpf), ["CapabilityBoundingSet=CAP_BPF (in the unit of the service)"]);
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let mut here = root();
    here.first_user_namespace = false;
    here.place = RunPlace::Namespace;
    let ebpf = refused(SourceId::Ebpf, EPERM, &here);
    assert_eq!(obstacle(&ebpf), Obstacle::Container);
    assert!(ebpf.why.as_deref().unwrap().contains("user namespace"));
    assert!(lines(&ebpf)[0].contains("outside of these namespaces"));
    // The kernel answers a question of such a namespace in another way.
    assert_eq!(obstacle(&refused(SourceId::Taskstats, EINVAL, &here)), Obstacle::Container);
    assert_eq!(obstacle(&refused(SourceId::Taskstats, EINVAL, &root())), Obstacle::Kernel);
}

#[test]
fn a_container_is_named_all_that_is_lacking_in_one_line() {
    let ebpf = refused(SourceId::Ebpf, EPERM, &docker());
    assert_eq!(lines(&ebpf), ["docker run --cap-add=BPF --cap-add=PERFMON --pid=host ..."]);
    let mut other = docker();
    other.uid = 1000;
    let exits = refused(SourceId::Taskstats, EPERM, &other);
    assert_eq!(lines(&exits), ["docker run --cap-add=NET_ADMIN --pid=host --user=0 ..."]);
    other.place = RunPlace::Kubernetes;
    let exits = refused(SourceId::Taskstats, EPERM, &other);
    assert_eq!(
        lines(&exits),
        ["securityContext: {capabilities: {add: [NET_ADMIN]}, runAsUser: 0}; hostPID: true"]
    );
    // All capabilities, and the numbers of processes are still those of the container.
    let mut numbers = docker();
    numbers.capabilities.extend([BPF, PERFMON, NET_ADMIN].map(str::to_owned));
    let ebpf = refused(SourceId::Ebpf, None, &numbers);
    assert_eq!(obstacle(&ebpf), Obstacle::Container);
    assert_eq!(lines(&ebpf), ["docker run --pid=host ..."]);
    let mut rootless = docker();
    rootless.place = RunPlace::Podman;
    rootless.first_user_namespace = false;
    let ebpf = refused(SourceId::Ebpf, EPERM, &rootless);
    assert_eq!(obstacle(&ebpf), Obstacle::Container);
    assert!(lines(&ebpf)[0].starts_with("sudo podman run --cap-add=BPF"));
}

#[test]
fn a_filter_is_suspected_where_no_right_is_lacking() {
    let queue = refused(SourceId::IoUring, EPERM, &docker());
    assert_eq!(obstacle(&queue), Obstacle::Filter);
    assert!(queue.why.as_deref().unwrap().contains("io_uring_setup"));
    assert_eq!(lines(&queue), ["docker run --security-opt=seccomp=unconfined ..."]);
    let absent = refused(SourceId::Cachestat, ENOSYS, &docker());
    assert_eq!(obstacle(&absent), Obstacle::Filter);
    assert_eq!(lines(&absent), ["docker run --security-opt=seccomp=unconfined ..."]);
    assert_eq!(obstacle(&refused(SourceId::Cachestat, ENOSYS, &root())), Obstacle::Kernel);
    let mut service = root();
    service.filtered = true;
    let queue = refused(SourceId::IoUring, EPERM, &service);
    assert!(lines(&queue)[0].starts_with("SystemCallFilter=io_uring_setup"));
    // A security module that is only there is not suspected: no denial was seen.
    let mut labelled = root();
    labelled.security_modules = vec!["selinux".to_owned()];
    let queue = refused(SourceId::IoUring, EPERM, &labelled);
    assert_eq!(obstacle(&queue), Obstacle::Unknown);
    assert!(queue.why.as_deref().unwrap().ends_with("every known right is there"));
    assert!(lines(&queue).is_empty());
}

#[test]
fn a_setting_comes_before_a_right_unless_it_is_open() {
    let mut here = user();
    here.settings.insert("kernel.io_uring_disabled".to_owned(), "2".to_owned());
    let queue = refused(SourceId::IoUring, EPERM, &here);
    assert_eq!(obstacle(&queue), Obstacle::Setting);
    assert_eq!(lines(&queue), ["sudo sysctl kernel.io_uring_disabled=0"]);
    assert!(queue.why.as_deref().unwrap().contains("kernel.io_uring_disabled is 2"));
    here.settings.insert("kernel.io_uring_disabled".to_owned(), "0".to_owned());
    assert_ne!(obstacle(&refused(SourceId::IoUring, EPERM, &here)), Obstacle::Setting);
    let off = known(SourceId::DelayAccounting, KnownObstacle::SettingOff, &root());
    assert_eq!(lines(&off), ["sudo sysctl kernel.task_delayacct=1"]);
    let none = known(SourceId::DelayAccounting, KnownObstacle::NotInKernel, &root());
    assert_eq!((obstacle(&none), lines(&none).len()), (Obstacle::Kernel, 0));
}

#[test]
fn what_is_not_there_is_a_module_a_device_or_a_mount() {
    assert_eq!(lines(&refused(SourceId::Nbd, ENOENT, &root())), ["sudo modprobe nbd"]);
    let fuse = refused(SourceId::Fuse, ENOENT, &docker());
    assert_eq!(obstacle(&fuse), Obstacle::Container);
    assert_eq!(lines(&fuse), ["docker run --cap-add=SYS_ADMIN --device=/dev/fuse ..."]);
    assert_eq!(obstacle(&refused(SourceId::Fuse, ENOENT, &root())), Obstacle::Module);
    let nbd = known(SourceId::Nbd, KnownObstacle::NotLoaded, &user());
    assert_eq!(lines(&nbd), ["sudo modprobe nbd"]);
    let mut here = root();
    here.capabilities.remove(SYS_ADMIN);
    let points = known(SourceId::Tracepoints, KnownObstacle::NotMounted, &here);
    assert_eq!(obstacle(&points), Obstacle::Mount);
    assert!(lines(&points)[0].starts_with("mount -t tracefs "));
    let in_docker = known(SourceId::Tracepoints, KnownObstacle::NotMounted, &docker());
    assert!(lines(&in_docker)[0].contains("--volume=/sys/kernel/tracing"), "{in_docker:?}");
}

#[test]
fn a_device_that_all_rights_do_not_open_is_one_of_the_control_group() {
    let refusal = SourceRefusal {
        why: "no".to_owned(),
        errno: Some(EPERM),
        path: Some("/dev/vda".to_owned()),
        known: None,
    };
    let attempt = SourceAttempt { refusals: vec![refusal], ..SourceAttempt::default() };
    let disks = judged(SourceId::BlockDevices, attempt.clone(), &root());
    assert_eq!(obstacle(&disks), Obstacle::Container);
    assert_eq!(lines(&disks), ["DeviceAllow=/dev/vda r (in the unit of the service)"]);
    let mut here = docker();
    here.capabilities = root().capabilities;
    let disks = judged(SourceId::BlockDevices, attempt.clone(), &here);
    assert_eq!(lines(&disks), ["docker run --device=/dev/vda:/dev/vda:r ..."]);
    // A user lacks the right first.
    let disks = judged(SourceId::BlockDevices, attempt, &user());
    assert_eq!(obstacle(&disks), Obstacle::Permission);
}

#[test]
fn lockdown_hides_memory_of_the_kernel_alone() {
    let mut here = root();
    here.lockdown = Some("confidentiality".to_owned());
    assert_eq!(obstacle(&refused(SourceId::Ebpf, EPERM, &here)), Obstacle::Lockdown);
    assert_eq!(obstacle(&refused(SourceId::IoUring, EPERM, &here)), Obstacle::Unknown);
    here.lockdown = Some("integrity".to_owned());
    assert_eq!(obstacle(&refused(SourceId::Ebpf, EPERM, &here)), Obstacle::Unknown);
}
