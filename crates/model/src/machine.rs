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

impl MachineFacts {
    /// A name for this machine in its present state: sixteen hexadecimal digits, the same for
    /// surveys that can be expected to agree. Of the facts that change what is measured; not
    /// of the host's name, nor of who asked.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = |fact: &Option<String>| fact.clone().unwrap_or_default();
        // The kernel keeps a little more or less for itself from one start to the next.
        let memory_gib = self.memory_bytes.map(|bytes| (bytes + (1 << 29)) >> 30);
        let facts = [
            text(&self.cpu),
            self.usable_cpus.to_string(),
            self.online_cpus.to_string(),
            memory_gib.map_or_else(String::new, |gib| gib.to_string()),
            text(&self.kernel),
            text(&self.virtualization),
            text(&self.libc),
            text(&self.thp),
        ];
        // FNV-1a, which is the same on every machine and in every version.
        let hash = facts.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_name_until_it_changes() {
        let facts = MachineFacts {
            cpu: Some("x".to_owned()),
            usable_cpus: 2,
            online_cpus: 2,
            memory_bytes: Some(24 << 30),
            kernel: Some("6.12".to_owned()),
            ..MachineFacts::default()
        };
        let same = MachineFacts {
            host: Some("db".to_owned()),
            root: true,
            memory_bytes: Some((24 << 30) - (300 << 20)),
            ..facts.clone()
        };
        let other = MachineFacts { kernel: Some("6.18".to_owned()), ..facts.clone() };
        assert_eq!(facts.fingerprint(), same.fingerprint());
        assert_ne!(facts.fingerprint(), other.fingerprint());
        assert_eq!(facts.fingerprint().len(), 16);
    }
}
