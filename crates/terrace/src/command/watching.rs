//! From what was typed to how something is watched; shared by `run`, `record`, `top` and the
//! probes that record meanwhile.

use super::machine_facts;
use crate::args::target::TargetArgs;
use crate::args::top::TopArgs;
use crate::args::watch::{Events, WatchArgs};
use crate::error::{Error, Result};
use machine::Root;
use record::capture::{BackgroundRecording, RecordOptions, Target};
use record::trace::Family;
use std::path::{Path, PathBuf};

/// What root follows unless told: cheap, and together they name the cause of every wait.
const USUAL_FAMILIES: [Family; 4] = [
    Family::Sched,
    Family::Block,
    Family::Vmscan,
    Family::Writeback,
];

/// Samples a second of a recording beside a probe, which must not be disturbed.
const BESIDE_A_PROBE_HZ: u32 = 10;

/// The watch of a command line that records to `output`, or to memory.
///
/// # Errors
/// When `none` stands beside other events.
pub fn watch(args: &WatchArgs, output: Option<PathBuf>) -> Result<RecordOptions> {
    Ok(RecordOptions {
        rate_hz: args.rate,
        burst: args.burst,
        families: families(&args.trace)?,
        apply: args.apply,
        force: args.force,
        ..plain(output)
    })
}

/// Records to `file`, where there is one, while the probe `name` runs.
///
/// # Errors
/// When the file cannot be written.
pub fn beside(name: &str, file: Option<&Path>) -> Result<Option<BackgroundRecording>> {
    let Some(file) = file else {
        return Ok(None);
    };
    let background = BackgroundRecording::start(name, &plain(Some(file.to_owned())))?;
    Ok(Some(background))
}

/// The watch of somebody who looks meanwhile: events only where they are asked for.
///
/// # Errors
/// When `none` stands beside other events.
pub fn look(args: &TopArgs) -> Result<RecordOptions> {
    let families = match args.trace.is_empty() {
        true => Vec::new(),
        false => families(&args.trace)?,
    };
    Ok(RecordOptions {
        rate_hz: args.rate,
        families,
        ..plain(None)
    })
}

/// Whom a command line names; without a name the whole machine.
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

/// A watch that changes nothing and follows no events.
fn plain(output: Option<PathBuf>) -> RecordOptions {
    RecordOptions {
        rate_hz: BESIDE_A_PROBE_HZ,
        output,
        keep_bytes: 0,
        machine: Some(machine_facts::read(&Root::system())),
        ..RecordOptions::default()
    }
}

fn families(events: &[Events]) -> Result<Vec<Family>> {
    if events.is_empty() {
        // An ordinary user may not, and the verdict says so once.
        let root = sys::process::effective_uid() == 0;
        return Ok(if root {
            USUAL_FAMILIES.to_vec()
        } else {
            Vec::new()
        });
    }
    if events.contains(&Events::None) && events.len() > 1 {
        return Err(Error::usage("--trace: `none` stands alone"));
    }
    let mut families: Vec<Family> = events.iter().filter_map(|events| family(*events)).collect();
    families.sort_unstable();
    families.dedup();
    Ok(families)
}

fn family(events: Events) -> Option<Family> {
    match events {
        Events::Sched => Some(Family::Sched),
        Events::Block => Some(Family::Block),
        Events::Vmscan => Some(Family::Vmscan),
        Events::Writeback => Some(Family::Writeback),
        Events::Faults => Some(Family::Faults),
        Events::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_followed_once_each_and_none_stands_alone() {
        let typed = [Events::Faults, Events::Sched, Events::Faults];
        assert_eq!(families(&typed).unwrap(), [Family::Sched, Family::Faults]);
        assert_eq!(families(&[Events::None]).unwrap(), []);
        assert!(families(&[Events::None, Events::Sched]).is_err());
    }
}
