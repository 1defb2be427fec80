//! The facts about this machine that stand above every result: what a reader needs to
//! judge the figures, read anew for each result.

use machine::Root;
use machine::cpu::Cpu;
use machine::memory::Memory;
use model::machine::MachineFacts;

/// Reads the facts; what cannot be read is absent.
///
/// The host's name is among them: who delivers a result takes it out again where the
/// result is made to be passed on.
pub fn read(root: &Root) -> MachineFacts {
    with(root, machine::cpu::read(root), &machine::memory::read(root))
}

/// The facts, where processors and memory were read already.
pub fn with(root: &Root, cpu: Cpu, memory: &Memory) -> MachineFacts {
    let usable_cpus = sys::affinity::allowed().map_or(0, |cpus| cpus.len() as u32);
    MachineFacts {
        host: machine::kernel::host_name(root),
        cpu: cpu.model,
        usable_cpus,
        online_cpus: (cpu.online.len() as u32).max(usable_cpus),
        memory_bytes: memory.total.map(|total| total.0),
        kernel: machine::kernel::release(root),
        virtualization: machine::kernel::virtualization(root),
        libc: sys::libc_facts::version(),
        thp: memory.thp.enabled.clone(),
        features: features(),
        root: sys::process::effective_uid() == 0,
    }
}

/// Processor features that decide which loops run.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    use std::arch::is_x86_feature_detected;
    let clzero = memops::find("clzero").is_some_and(|method| method.absent().is_none());
    [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("erms", is_x86_feature_detected!("ermsb")),
        ("clzero", clzero),
    ]
    .into_iter()
    .filter(|(_, present)| *present)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// Processor features that decide which loops run.
#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<String> {
    let neon = memops::find("neon").is_some_and(|method| method.absent().is_none());
    neon.then(|| "neon".to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_a_kernel_and_memory() {
        let facts = read(&Root::system());
        assert!(facts.host.is_some() && facts.kernel.is_some());
        assert!(facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn a_machine_that_shows_nothing_has_facts_all_the_same() {
        let facts = read(&Root::at("/nonexistent"));
        assert_eq!((facts.host, facts.memory_bytes, facts.kernel), (None, None, None));
        assert!(facts.usable_cpus >= 1 && facts.online_cpus >= facts.usable_cpus);
    }
}
