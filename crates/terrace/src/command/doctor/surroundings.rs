//! What this process is and may do: user, capabilities, namespaces, filters, and the settings that
//! close sources.
//!
//! A container leaves its mark in files and in the environment, but so does the image of a machine
//! that was made from one. So the mark counts only where something is taken from this process.

use machine::Root;
use model::doctor::{RunPlace, Surroundings};
use std::collections::{BTreeMap, BTreeSet};
use sys::process::{Capability, has_capability};

const CAPABILITIES: [(&str, Capability); 10] = [
    ("SYS_ADMIN", Capability::SysAdmin),
    ("SYS_PTRACE", Capability::SysPtrace),
    ("BPF", Capability::Bpf),
    ("PERFMON", Capability::Perfmon),
    ("NET_ADMIN", Capability::NetAdmin),
    ("FOWNER", Capability::Fowner),
    ("DAC_READ_SEARCH", Capability::DacReadSearch),
    ("SYSLOG", Capability::Syslog),
    ("SYS_NICE", Capability::SysNice),
    ("IPC_LOCK", Capability::IpcLock),
];

/// Settings that close a source, and the file of each.
const SETTINGS: [(&str, &str); 6] = [
    ("kernel.task_delayacct", "/proc/sys/kernel/task_delayacct"),
    ("kernel.io_uring_disabled", "/proc/sys/kernel/io_uring_disabled"),
    ("kernel.kptr_restrict", "/proc/sys/kernel/kptr_restrict"),
    ("kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
    ("kernel.unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"),
    ("vm.nr_hugepages", "/proc/sys/vm/nr_hugepages"),
];
const THP_SETTING: &str = "thp.enabled";

/// The names of the first namespaces: their inodes are fixed (linux/proc_ns.h).
const FIRST_PROCESSES: &str = "pid:[4026531836]";
const FIRST_USERS: &str = "user:[4026531837]";
const FIRST_GROUPS: &str = "cgroup:[4026531835]";

pub(super) fn read(root: &Root) -> Surroundings {
    let held = CAPABILITIES.iter().filter(|(_, capability)| has_capability(*capability));
    let capabilities: BTreeSet<String> = held.map(|(name, _)| (*name).to_owned()).collect();
    let first_user_namespace = is_namespace(root, "user", FIRST_USERS);
    let first_process_namespace = is_namespace(root, "pid", FIRST_PROCESSES);
    let is_on_machine = first_user_namespace
        && first_process_namespace
        && is_namespace(root, "cgroup", FIRST_GROUPS);
    let is_free = is_on_machine && capabilities.len() == CAPABILITIES.len();
    let status = root.read("/proc/self/status").unwrap_or_default();
    let modules = root.read("/sys/kernel/security/lsm").unwrap_or_default();
    let place = if is_free { RunPlace::Host } else { marked(root, is_on_machine) };
    Surroundings {
        place,
        uid: sys::process::effective_uid(),
        capabilities,
        first_user_namespace,
        first_process_namespace,
        filtered: is_filtered(&status),
        security_modules: access_modules(&modules),
        lockdown: root.read("/sys/kernel/security/lockdown").ok().and_then(|text| selected(&text)),
        settings: settings(root),
        kernel: machine::kernel::release(root),
    }
}

fn is_namespace(root: &Root, kind: &str, first: &str) -> bool {
    let own = std::fs::read_link(root.path(format!("/proc/self/ns/{kind}")));
    own.is_ok_and(|own| own.as_os_str() == first)
}

/// By the marks that tools leave; `Namespace` for namespaces without any.
fn marked(root: &Root, is_on_machine: bool) -> RunPlace {
    let has_file = |path: &str| root.path(path).exists();
    let tool = std::env::var("container").unwrap_or_default();
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        RunPlace::Kubernetes
    } else if has_file("/run/.containerenv") || tool == "podman" {
        RunPlace::Podman
    // An ordinary user of the machine lacks capabilities too.
    } else if has_file("/.dockerenv") && !is_on_machine {
        RunPlace::Docker
    } else if is_on_machine {
        RunPlace::Host
    } else {
        RunPlace::Namespace
    }
}

/// `Seccomp` of /proc/self/status: 2 is a filter.
fn is_filtered(status: &str) -> bool {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

/// Those of the modules that refuse what capabilities permit.
fn access_modules(text: &str) -> Vec<String> {
    const REFUSING: [&str; 6] = ["apparmor", "selinux", "smack", "tomoyo", "landlock", "bpf"];
    let names = text.trim().split(',').filter(|name| REFUSING.contains(name));
    names.map(str::to_owned).collect()
}

/// The selected word: `none [integrity] confidentiality`.
fn selected(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn settings(root: &Root) -> BTreeMap<String, String> {
    let read = |(name, path): (&str, &str)| {
        Some((name.to_owned(), root.read(path).ok()?.trim().to_owned()))
    };
    let mut all: BTreeMap<String, String> = SETTINGS.into_iter().filter_map(read).collect();
    all.extend(machine::memory::read(root).thp.enabled.map(|word| (THP_SETTING.to_owned(), word)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn every_capability_of_the_table_is_looked_at() {
        let own: BTreeSet<&str> = CAPABILITIES.iter().map(|(name, _)| *name).collect();
        let needed: BTreeSet<&str> =
            explain::doctor::CAPABILITIES.iter().map(|(name, _)| *name).collect();
        assert_eq!(own, needed);
    }

    #[test]
    fn a_mark_counts_only_in_namespaces_but_that_of_podman() {
        let at = |fake: &FakeRoot| Root::at(fake.path());
        let docker = FakeRoot::new().file("/.dockerenv", "");
        assert_eq!(marked(&at(&docker), true), RunPlace::Host);
        assert_eq!(marked(&at(&docker), false), RunPlace::Docker);
        let podman = FakeRoot::new().file("/run/.containerenv", "");
        assert_eq!(marked(&at(&podman), true), RunPlace::Podman);
        let none = FakeRoot::new();
        assert_eq!(marked(&at(&none), false), RunPlace::Namespace);
        assert_eq!(marked(&at(&none), true), RunPlace::Host);
    }

    #[test]
    fn filters_modules_and_lockdown_are_read() {
        assert!(is_filtered("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"));
        assert!(!is_filtered("Seccomp:\t0\n") && !is_filtered(""));
        assert_eq!(access_modules("lockdown,capability,apparmor,bpf\n"), ["apparmor", "bpf"]);
        assert_eq!(selected("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(selected(""), None);
    }
}
