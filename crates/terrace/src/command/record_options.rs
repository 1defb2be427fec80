//! Recording options from the command line, shared by `run`, `record`, `top` and the probes that
//! record in the background.

use super::{kept, machine_facts};
use crate::args::choice::EventFamily;
use crate::args::recordings::TopArgs;
use crate::args::shared::TargetArgs;
use crate::args::shared::WatchArgs;
use crate::error::{Error, Result};
use machine::Root;
use model::copy_gauges::CopyGauges;
use model::{Bytes, GaugeSet};
use place::ramdisk::RamdiskGauges;
use record::capture::{BackgroundRecording, RecordOptions, Target};
use record::trace::Family;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::process::{Capability, has_capability};

/// The families that root follows by default: cheap, and together they name the cause of every
/// wait.
const USUAL_FAMILIES: [Family; 6] =
    [Family::Sched, Family::Block, Family::Vmscan, Family::Writeback, Family::Cpu, Family::Who];

/// Less room would hold some seconds.
const ACCESS_BYTES_MIN: u64 = 256 << 10;

/// Samples a second of a background recording, which must not disturb the probe.
const BESIDE_A_PROBE_HZ: u32 = 10;

/// The options of a command that records to `output`, or to memory.
///
/// # Errors
/// If `none` is combined with other events.
pub fn of_command(args: &WatchArgs, output: Option<PathBuf>) -> Result<RecordOptions> {
    let mut families = families(&args.trace)?;
    families.extend(args.hits.then_some(Family::Hits));
    Ok(RecordOptions {
        rate_hz: args.rate,
        burst: args.burst,
        families,
        apply: args.apply,
        work: args.work.clone(),
        force: args.force,
        gauges: ramdisk_gauges(),
        ..default_options(output)
    })
}

/// Adds single accesses, of at most `bytes` bytes.
///
/// # Errors
/// If that is too little.
pub fn keep_accesses(options: &mut RecordOptions, bytes: Bytes) -> Result<()> {
    if bytes.0 < ACCESS_BYTES_MIN {
        let least = ACCESS_BYTES_MIN >> 10;
        return Err(Error::usage(format!("--accesses needs room of at least {least} KiB")));
    }
    options.access_bytes = bytes.0;
    options.families.extend([Family::Accesses, Family::Block]);
    Ok(())
}

/// Starts to record to `file`, if given, while the probe `name` runs.
///
/// # Errors
/// If the file cannot be written.
pub fn start_background(name: &str, file: Option<&Path>) -> Result<Option<BackgroundRecording>> {
    let Some(file) = file else {
        return Ok(None);
    };
    let background = BackgroundRecording::start(name, &default_options(Some(file.to_owned())))?;
    Ok(Some(background))
}

/// Starts to record this machine and a copy to `file`, if given.
///
/// # Errors
/// If the file cannot be written.
pub fn start_copy_log(
    file: Option<&Path>,
    gauges: &Arc<CopyGauges>,
) -> Result<Option<BackgroundRecording>> {
    let Some(file) = file else {
        return Ok(None);
    };
    let gauges = Some(Arc::clone(gauges) as Arc<dyn GaugeSet>);
    let options = RecordOptions { gauges, ..default_options(Some(file.to_owned())) };
    Ok(Some(BackgroundRecording::start("copy", &options)?))
}

/// The options of `advise`: all that says who waited, and nothing is kept. What less memory costs
/// needs hits.
pub fn of_advise(is_less_asked: bool) -> RecordOptions {
    let mut families = families(&[]).unwrap_or_default();
    families.extend(is_less_asked.then_some(Family::Hits));
    RecordOptions { families, ..default_options(None) }
}

/// This machine as a target.
pub fn machine() -> Target {
    Target::Machine
}

/// The options of `top`.
///
/// # Errors
/// If `none` is combined with other events.
pub fn of_top(args: &TopArgs) -> Result<RecordOptions> {
    let families = families(&args.trace)?;
    let gauges = ramdisk_gauges();
    Ok(RecordOptions { rate_hz: args.rate, families, gauges, ..default_options(None) })
}

/// What is known of the RAM disks of this machine while it is recorded.
fn ramdisk_gauges() -> Option<Arc<dyn GaugeSet>> {
    RamdiskGauges::start(&Root::system()).map(|gauges| gauges as Arc<dyn GaugeSet>)
}

/// The selected target; the whole machine by default.
pub fn target(args: &TargetArgs) -> Target {
    if let Some(pid) = args.pid {
        Target::Process(pid)
    } else if let Some(unit) = &args.unit {
        Target::Unit(unit.clone())
    } else if let Some(group) = &args.cgroup {
        Target::Group(group.clone())
    } else {
        Target::Machine
    }
}

/// Options that change nothing and follow no events.
fn default_options(output: Option<PathBuf>) -> RecordOptions {
    let machine = machine_facts::read(&Root::system());
    RecordOptions {
        rate_hz: BESIDE_A_PROBE_HZ,
        output,
        keep_bytes: 0,
        new_memory: kept::new_memory_price(&machine),
        surveyed_devices: kept::devices(&machine),
        machine: Some(machine),
        ..RecordOptions::default()
    }
}

fn families(events: &[EventFamily]) -> Result<Vec<Family>> {
    if events.is_empty() {
        // Others may not follow any, and the verdict says so once.
        let may_follow = sys::process::effective_uid() == 0
            || [Capability::Bpf, Capability::Perfmon].into_iter().all(has_capability);
        return Ok(if may_follow { USUAL_FAMILIES.to_vec() } else { Vec::new() });
    }
    if events.contains(&None) && events.len() > 1 {
        return Err(Error::usage("--trace: `none` cannot be combined with others"));
    }
    let mut families: Vec<Family> = events.iter().copied().flatten().collect();
    families.sort_unstable();
    families.dedup();
    Ok(families)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_followed_once_each_and_none_stands_alone() {
        let typed = [Family::Faults, Family::Sched, Family::Faults].map(Some);
        assert_eq!(families(&typed).unwrap(), [Family::Sched, Family::Faults]);
        assert_eq!(families(&[None]).unwrap(), []);
        assert!(families(&[None, Some(Family::Sched)]).is_err());
    }
}
