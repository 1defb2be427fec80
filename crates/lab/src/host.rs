//! What an experiment takes from the program that runs it: how its helper processes are started,
//! the facts of the machine, and the limits of a restore.

use crate::error::Result;
use model::GaugeSet;
use model::copy_gauges::CopyGauges;
use model::machine::MachineFacts;
use place::workingset::restore::RestoreRequest;
use record::capture::{BackgroundRecording, RecordOptions};
use std::path::Path;
use std::sync::Arc;
use sys::helper::HiddenCommand;

/// Samples a second of a recording of an experiment, which must not be disturbed.
const RECORDING_HZ: u32 = 10;

/// The program that runs an experiment.
#[derive(Clone, Debug)]
pub struct Host {
    /// How it starts its helper processes.
    pub programs: Programs,
    /// The facts of the machine, stored in each recording.
    pub machine: MachineFacts,
    /// A restore of all kinds of memory with the limits of `warm restore`.
    pub restore: RestoreRequest,
}

/// The hidden command of each helper process.
#[derive(Clone, Debug)]
pub struct Programs {
    /// A hog of [`measure::pressure`].
    pub hog: HiddenCommand,
    /// The process of [`measure::ramdisk`] that writes.
    pub page_writer: HiddenCommand,
    /// One of [`crate::process`]: its name and its arguments follow.
    pub lab: HiddenCommand,
    /// `terrace boost`, as its users have it: its action and its arguments follow.
    pub boost: HiddenCommand,
}

impl Host {
    /// Records the machine to `file`, if one is given, until the recording is finished.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record(&self, file: Option<&Path>) -> Result<Option<BackgroundRecording>> {
        let Some(file) = file else {
            return Ok(None);
        };
        Ok(Some(BackgroundRecording::start("lab", &self.options(file))?))
    }

    /// Records the machine and a copy to `file`, until the recording is finished.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record_copy(
        &self,
        file: &Path,
        gauges: &Arc<CopyGauges>,
    ) -> Result<BackgroundRecording> {
        let gauges = Some(Arc::clone(gauges) as Arc<dyn GaugeSet>);
        let options = RecordOptions { gauges, ..self.options(file) };
        Ok(BackgroundRecording::start("lab", &options)?)
    }

    fn options(&self, file: &Path) -> RecordOptions {
        RecordOptions {
            rate_hz: RECORDING_HZ,
            output: Some(file.to_owned()),
            keep_bytes: 0,
            machine: Some(self.machine.clone()),
            ..RecordOptions::default()
        }
    }
}
