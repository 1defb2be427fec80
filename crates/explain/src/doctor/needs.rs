//! The form of a row: what a source takes, and what it costs if it is missing. The rows are in one
//! file a family.

use model::doctor::{PermitLine, SourceCost, SourceId};

/// The capabilities that any source needs, the most dangerous first, and what a holder can do.
pub const CAPABILITIES: [(&str, &str); 10] = [
    (SYS_ADMIN, "A holder can mount, change settings and leave most containers: nearly root."),
    (SYS_PTRACE, "A holder can read and change the memory of every process that it sees."),
    (BPF, "A holder can load programs that read all memory of the kernel."),
    (PERFMON, "A holder can watch every process, and read memory of the kernel with BPF."),
    (NET_ADMIN, "A holder can change the addresses, routes and firewall of its network."),
    (FOWNER, "A holder can change the rights of files of all users."),
    (DAC_READ_SEARCH, "A holder can read every file."),
    (SYSLOG, "A holder sees addresses of the kernel, which help attacks on it."),
    (SYS_NICE, "A holder can take the processors from all other processes."),
    (IPC_LOCK, "A holder can take memory that the kernel cannot evict."),
];

pub(super) const SYS_ADMIN: &str = "SYS_ADMIN";
pub(super) const SYS_PTRACE: &str = "SYS_PTRACE";
pub(super) const BPF: &str = "BPF";
pub(super) const PERFMON: &str = "PERFMON";
pub(super) const NET_ADMIN: &str = "NET_ADMIN";
pub(super) const FOWNER: &str = "FOWNER";
pub(super) const DAC_READ_SEARCH: &str = "DAC_READ_SEARCH";
pub(super) const SYSLOG: &str = "SYSLOG";
pub(super) const SYS_NICE: &str = "SYS_NICE";
pub(super) const IPC_LOCK: &str = "IPC_LOCK";

/// A line and its risk, as a row holds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PermitText {
    pub line: &'static str,
    pub risk: &'static str,
}

impl PermitText {
    pub fn line(&self) -> PermitLine {
        PermitLine { line: self.line.to_owned(), risk: self.risk.to_owned() }
    }
}

/// A setting that can close a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosingSetting {
    /// Its name: `kernel.io_uring_disabled`.
    pub name: &'static str,
    /// The values that close it to all but holders of `except`.
    pub closed: &'static [&'static str],
    /// The capability that it does not bind.
    pub except: Option<&'static str>,
}

/// A source: what it takes, and what it costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceNeeds {
    pub source: SourceId,
    pub title: &'static str,
    /// All of these, where the kernel asks.
    pub capabilities: &'static [&'static str],
    /// Whether it takes user 0: the kernel's files belong to it, or Terrace asks no other user's.
    pub root: bool,
    /// Whether capabilities of a user namespace do not count.
    pub first_user_namespace: bool,
    /// Whether it takes the process numbers of the machine.
    pub first_process_namespace: bool,
    pub setting: Option<ClosingSetting>,
    /// What opens the setting.
    pub open_setting: Option<PermitText>,
    /// The file that has to be in a container.
    pub device: Option<&'static str>,
    pub module: Option<PermitText>,
    /// What mounts it on the machine, and the option that shows a container that mount.
    pub mount: Option<(PermitText, &'static str)>,
    /// The system calls that a filter has to let through.
    pub calls: &'static str,
    /// Which kernel has it, as a clause.
    pub kernel: &'static str,
    /// What would set it up where it is permitted and idle.
    pub set_up: Option<PermitText>,
    /// The commands that it costs, the first one as an example for lines.
    pub commands: &'static [&'static str],
    /// What they do or say without it.
    pub then: &'static str,
}

impl SourceNeeds {
    /// A row without special needs.
    pub const fn plain(source: SourceId, title: &'static str) -> Self {
        Self {
            source,
            title,
            capabilities: &[],
            root: false,
            first_user_namespace: false,
            first_process_namespace: false,
            setting: None,
            open_setting: None,
            device: None,
            module: None,
            mount: None,
            calls: "",
            kernel: "another kernel",
            set_up: None,
            commands: &[],
            then: "",
        }
    }

    pub fn cost(&self) -> SourceCost {
        SourceCost {
            commands: self.commands.iter().map(|name| (*name).to_owned()).collect(),
            then: self.then.to_owned(),
        }
    }

    /// A command for lines: `record`, with what follows it.
    pub fn example(&self) -> String {
        let first = self.commands.first().copied().unwrap_or("survey");
        match first {
            "run" => "terrace run -- CMD".to_owned(),
            "record" => "terrace record -o FILE.trec".to_owned(),
            "lab run" => "terrace lab run recovery-2012".to_owned(),
            "copy" => "terrace copy SOURCE TARGET".to_owned(),
            name => format!("terrace {name}"),
        }
    }
}
