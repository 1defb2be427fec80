//! The kernel and what it runs on: release, host name, load, virtual machine, container.
//! A container is recognised by traces that it need not leave: absent means unknown.

use crate::cpu;
use crate::root::Root;

/// The kernel's release, as `6.12.0-amd64`.
#[must_use]
pub fn release(root: &Root) -> Option<String> {
    root.word("/proc/sys/kernel/osrelease")
}

/// The host's name.
#[must_use]
pub fn host_name(root: &Root) -> Option<String> {
    root.word("/proc/sys/kernel/hostname")
}

/// Tasks running, ready or in uninterruptible sleep, averaged over the last minute.
#[must_use]
pub fn load_average(root: &Root) -> Option<f64> {
    let text = root.word("/proc/loadavg")?;
    text.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// What is between this process and the hardware, as "KVM guest", "docker container" or
/// "KVM guest, docker container"; `None` if nothing can be seen.
#[must_use]
pub fn virtualization(root: &Root) -> Option<String> {
    let windows = release(root).is_some_and(|text| text.to_lowercase().contains("microsoft"));
    let guest = if windows {
        Some("WSL guest".to_owned())
    } else {
        cpu::hypervisor(root).map(|name| match name.as_str() {
            "unnamed" => "guest of an unnamed hypervisor".to_owned(),
            _ => format!("{name} guest"),
        })
    };
    let layers: Vec<String> = guest.into_iter().chain(container(root)).collect();
    Some(layers.join(", ")).filter(|text| !text.is_empty())
}

/// Hints that container engines leave; without one a container looks like a host.
fn container(root: &Root) -> Option<String> {
    if let Some(name) = root.word("/run/systemd/container") {
        return Some(format!("{name} container"));
    }
    if root.has("/run/.containerenv") {
        return Some("podman container".to_owned());
    }
    if root.has("/.dockerenv") {
        return Some("docker container".to_owned());
    }
    const BY_GROUP: [(&str, &str); 5] = [
        ("kubepods", "kubernetes container"),
        ("/docker", "docker container"),
        ("/libpod", "podman container"),
        ("/lxc", "lxc container"),
        ("/containerd", "containerd container"),
    ];
    let groups = root.read("/proc/self/cgroup").ok()?;
    BY_GROUP.iter().find(|(mark, _)| groups.contains(mark)).map(|(_, name)| (*name).to_owned())
}
