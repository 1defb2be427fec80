//! The lines that would allow a source, each with its risk, for the place where this runs.
//!
//! A line of a container holds all that is lacking, as one option alone would not be enough.

use super::diagnosis::{Diagnosis, Lacks};
use super::needs::{CAPABILITIES, SourceNeeds};
use model::doctor::{Obstacle, PermitLine, RunPlace, SourceId, Surroundings};

const ROOT_RISK: &str = "Terrace then runs as root and may read everything on this machine.";
const PROCESSES_RISK: &str = "The container sees every process of the machine.";
const USERS_RISK: &str =
    "Root of the container is then root of the machine, as far as it gets out.";
const FILTER_RISK: &str = "Every system call is then open, also those with many past flaws.";
const DEVICE_RISK: &str = "What is done to that device is done to the machine.";

/// What would allow it; empty if nothing does but another kernel.
pub(super) fn of(
    needs: &SourceNeeds,
    diagnosis: &Diagnosis,
    here: &Surroundings,
) -> Vec<PermitLine> {
    match diagnosis.obstacle {
        Obstacle::Setting => needs.open_setting.iter().map(|text| text.line()).collect(),
        Obstacle::Module => needs.module.iter().map(|text| text.line()).collect(),
        Obstacle::Mount => mount(needs, here),
        Obstacle::Permission | Obstacle::Container | Obstacle::Filter => {
            rights(needs, &diagnosis.lacks, here)
        }
        Obstacle::Kernel | Obstacle::Lockdown | Obstacle::Unknown => Vec::new(),
    }
}

fn permit(line: impl Into<String>, risk: impl Into<String>) -> PermitLine {
    PermitLine { line: line.into(), risk: risk.into() }
}

fn mount(needs: &SourceNeeds, here: &Surroundings) -> Vec<PermitLine> {
    let Some((on_host, option)) = needs.mount else { return Vec::new() };
    match container_tool(here.place) {
        Some(tool) => vec![permit(format!("{tool} {option} ..."), on_host.risk)],
        None => vec![on_host.line()],
    }
}

/// The command of the tool that starts containers here.
fn container_tool(place: RunPlace) -> Option<&'static str> {
    match place {
        RunPlace::Docker => Some("docker run"),
        RunPlace::Podman => Some("sudo podman run"),
        RunPlace::Host | RunPlace::Kubernetes | RunPlace::Namespace => None,
    }
}

fn rights(needs: &SourceNeeds, lacks: &Lacks, here: &Surroundings) -> Vec<PermitLine> {
    match here.place {
        RunPlace::Host => on_host(needs, lacks, here),
        RunPlace::Docker => vec![in_container("docker run", needs, lacks, here)],
        RunPlace::Podman => vec![in_container("sudo podman run", needs, lacks, here)],
        RunPlace::Kubernetes => vec![in_pod(lacks, here)],
        RunPlace::Namespace => {
            let line = format!("sudo {} (outside of these namespaces)", needs.example());
            vec![permit(line, ROOT_RISK)]
        }
    }
}

fn on_host(needs: &SourceNeeds, lacks: &Lacks, here: &Surroundings) -> Vec<PermitLine> {
    if lacks.filter {
        let line = format!("SystemCallFilter={} (in the unit of the service)", needs.calls);
        return vec![permit(line, FILTER_RISK)];
    }
    if let Some(device) = &lacks.device {
        let line =
            format!("DeviceAllow={device} {} (in the unit of the service)", rights_on(needs));
        return vec![permit(line, DEVICE_RISK)];
    }
    if here.uid == 0 {
        let all: Vec<String> =
            lacks.capabilities.iter().map(|name| format!("CAP_{name}")).collect();
        let line = format!("CapabilityBoundingSet={} (in the unit of the service)", all.join(" "));
        return vec![permit(line, capability_risk(lacks))];
    }
    let mut lines = vec![permit(format!("sudo {}", needs.example()), ROOT_RISK)];
    if !lacks.root && !lacks.user_namespace && !lacks.capabilities.is_empty() {
        let names: Vec<String> = lacks
            .capabilities
            .iter()
            .map(|name| format!("cap_{}", name.to_ascii_lowercase()))
            .collect();
        let line = format!("sudo setcap {}+ep $(command -v terrace)", names.join(","));
        let risk = format!("For every user who may run that file: {}", capability_risk(lacks));
        lines.push(permit(line, risk));
    }
    lines
}

/// What a device is used for: disks are only read.
fn rights_on(needs: &SourceNeeds) -> &'static str {
    if needs.source == SourceId::BlockDevices { "r" } else { "rw" }
}

/// The risk of the most dangerous of the capabilities.
fn capability_risk(lacks: &Lacks) -> &'static str {
    let lacking = CAPABILITIES.iter().find(|(name, _)| lacks.capabilities.contains(name));
    lacking.map_or(ROOT_RISK, |(_, risk)| risk)
}

/// The greatest risk of what is lacking.
fn risk(lacks: &Lacks) -> &'static str {
    if !lacks.capabilities.is_empty() {
        capability_risk(lacks)
    } else if lacks.user_namespace {
        USERS_RISK
    } else if lacks.device.is_some() {
        DEVICE_RISK
    } else if lacks.filter {
        FILTER_RISK
    } else if lacks.process_namespace {
        PROCESSES_RISK
    } else {
        ROOT_RISK
    }
}

fn in_container(tool: &str, needs: &SourceNeeds, lacks: &Lacks, here: &Surroundings) -> PermitLine {
    let mut options: Vec<String> =
        lacks.capabilities.iter().map(|name| format!("--cap-add={name}")).collect();
    if lacks.process_namespace {
        options.push("--pid=host".to_owned());
    }
    if lacks.user_namespace && tool.starts_with("docker") {
        options.push("--userns=host".to_owned());
    }
    // Capabilities of a container are those of its root alone.
    if here.uid != 0 {
        options.push("--user=0".to_owned());
    }
    options.extend(lacks.device.iter().map(|device| match rights_on(needs) {
        "r" => format!("--device={device}:{device}:r"),
        _ => format!("--device={device}"),
    }));
    if lacks.filter {
        options.push("--security-opt=seccomp=unconfined".to_owned());
    }
    if lacks.mount {
        options.extend(needs.mount.map(|(_, option)| option.to_owned()));
    }
    permit(format!("{tool} {} ...", options.join(" ")), risk(lacks))
}

/// Fields of a pod, in the short form of YAML.
fn in_pod(lacks: &Lacks, here: &Surroundings) -> PermitLine {
    let mut security = Vec::new();
    if !lacks.capabilities.is_empty() {
        security.push(format!("capabilities: {{add: [{}]}}", lacks.capabilities.join(", ")));
    }
    if here.uid != 0 {
        security.push("runAsUser: 0".to_owned());
    }
    if lacks.device.is_some() {
        security.push("privileged: true".to_owned());
    }
    if lacks.filter {
        security.push("seccompProfile: {type: Unconfined}".to_owned());
    }
    let mut fields = Vec::new();
    if !security.is_empty() {
        fields.push(format!("securityContext: {{{}}}", security.join(", ")));
    }
    if lacks.process_namespace {
        fields.push("hostPID: true".to_owned());
    }
    if lacks.user_namespace {
        fields.push("hostUsers: true".to_owned());
    }
    permit(fields.join("; "), risk(lacks))
}
