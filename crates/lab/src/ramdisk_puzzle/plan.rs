//! What will be written where, checked before anything is touched. A size that this machine does
//! not bear is left out, and that is said.

use crate::description::Experiment;
use crate::output_directory;
use crate::{Error, Host, Result};
use machine::Root;
use measure::ErrorKind;
use measure::ramdisk;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// Of these units each place is written and read back.
const REPEATED_UNITS: u64 = 2;

/// One of the original's sizes.
#[derive(Clone, Debug)]
pub struct Size {
    /// As the original calls it: 4 for 4 GB.
    pub units: u64,
    /// How it is written.
    pub plan: ramdisk::RamDiskPlan,
}

/// Where requests are timed.
#[derive(Clone, Debug)]
pub struct TimedPlace {
    /// `RAM disk` or `disk`.
    pub name: &'static str,
    /// The directory for the file.
    pub directory: PathBuf,
}

/// What the user chose.
#[derive(Clone, Debug)]
pub struct RamDiskPuzzleOptions {
    /// Where the result is kept; not kept if absent.
    pub out: Option<PathBuf>,
    /// A directory on the disk to compare with.
    pub disk: Option<PathBuf>,
    /// A directory on the RAM disk whose requests are timed.
    pub ramdisk: PathBuf,
    /// What stands for the original's 1 GB.
    pub unit: Bytes,
    /// The most time for each size.
    pub limit: Duration,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct RamDiskPuzzlePlan {
    /// What the user chose.
    pub options: RamDiskPuzzleOptions,
    /// Where requests are timed.
    pub places: Vec<TimedPlace>,
    /// The sizes that this machine bears.
    pub sizes: Vec<Size>,
    /// What is left out, with the reason.
    pub notes: Vec<String>,
}

impl RamDiskPuzzlePlan {
    /// Checks the options and makes the plan.
    ///
    /// # Errors
    /// `Usage` for what makes no sense, `Impossible` where not even the smallest size can be had.
    pub fn of(
        options: RamDiskPuzzleOptions,
        experiment: &Experiment,
        host: &Host,
        root: &Root,
    ) -> Result<Self> {
        output_directory::check_options(options.out.as_deref(), options.disk.as_deref())?;
        let mut plan = Self { options, places: Vec::new(), sizes: Vec::new(), notes: Vec::new() };
        plan.take_sizes(experiment, host, root)?;
        plan.take_places(host, root)?;
        Ok(plan)
    }

    fn take_sizes(&mut self, experiment: &Experiment, host: &Host, root: &Root) -> Result<()> {
        for item in experiment.items("sizes") {
            let units = item.own.as_u64().unwrap_or(1);
            let bytes = Bytes(self.options.unit.0.saturating_mul(units));
            let helper = host.programs.page_writer.clone();
            match ramdisk::RamDiskPlan::new(root, None, Some(bytes), self.options.limit, helper) {
                Ok(plan) => match &plan.beyond {
                    None => self.sizes.push(Size { units, plan }),
                    Some((group, left)) => self.notes.push(format!(
                        "{bytes} were left out: the group {group} has {left} left; terrace ramdisk why --size {bytes} goes beyond"
                    )),
                },
                Err(error) if error.kind == ErrorKind::Usage => return Err(error.into()),
                Err(error) => self.notes.push(format!("{bytes} were left out: {error}")),
            }
        }
        if self.sizes.is_empty() {
            Err(Error::impossible(self.notes.join("; ")).hint("a smaller --unit"))
        } else {
            Ok(())
        }
    }

    /// The RAM disk takes memory as well: as much must be bearable as is written there.
    fn take_places(&mut self, host: &Host, root: &Root) -> Result<()> {
        let (directory, size) = (self.options.ramdisk.clone(), Some(self.repeated()));
        let helper = host.programs.page_writer.clone();
        match ramdisk::RamDiskPlan::new(root, Some(&directory), size, self.options.limit, helper) {
            Ok(plan) if plan.beyond.is_none() => {
                self.places.push(TimedPlace { name: "RAM disk", directory })
            }
            Ok(_) => self
                .notes
                .push("the RAM disk was left out: its group has too little left".to_owned()),
            Err(error) => self.notes.push(format!("the RAM disk was left out: {error}")),
        }
        match &self.options.disk {
            Some(directory) => {
                self.places.push(TimedPlace { name: "disk", directory: directory.clone() })
            }
            None => self.notes.push("no disk was compared: --disk DIR names one".to_owned()),
        }
        Ok(())
    }

    /// What is written and read back at each place, each time.
    pub fn repeated(&self) -> Bytes {
        Bytes(self.options.unit.0.saturating_mul(REPEATED_UNITS))
    }

    /// What is said before anything is done.
    pub fn announcement(&self) -> String {
        let most = self.sizes.iter().map(|size| size.plan.bytes).max();
        let mut text = format!(
            "takes up to {} of memory at a time and gives it back",
            Bytes(most.unwrap_or(0))
        );
        if let Some(disk) = self.places.iter().find(|place| place.name == "disk") {
            let written = Bytes(3 * self.repeated().0);
            let directory = disk.directory.display();
            text.push_str(&format!("; writes {written} to {directory} and removes it"));
        }
        text
    }
}
