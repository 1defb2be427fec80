//! The machine that a result comes from, as far as a reader needs it to judge
//! the numbers. Names of hosts and users are left out unless asked for.

use serde::{Deserialize, Serialize};

/// The facts printed above every result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The host's name; `None` where results are meant to be shared.
    pub host: Option<String>,
    /// The processor's model name.
    pub cpu: Option<String>,
    /// Processors this process may run on.
    pub usable_cpus: u32,
    /// Processors online.
    pub online_cpus: u32,
    /// Main memory.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// `KVM guest`, `container`, ... ; `None` on bare metal as far as can be seen.
    pub virtualization: Option<String>,
    /// The C library with its version.
    pub libc: Option<String>,
    /// The selected word of `transparent_hugepage/enabled`.
    pub thp: Option<String>,
    /// Processor features that the loops can use.
    pub features: Vec<String>,
    /// Whether it ran as root.
    pub root: bool,
}
