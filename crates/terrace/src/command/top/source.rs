//! What is looked at: this machine, a recording that is being written, or one that is whole.
//! The picture does not know which, but for whether more will come.

use crate::args::recordings::TopArgs;
use crate::command::{must_exist, open_recording, record_options, recorder_ring};
use crate::error::Result;
use model::recording::Recording;
use record::capture::{Keep, Live};
use record::file::Follower;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is kept of what goes on: ten minutes, and no more than 32 MiB of values (64 with the room
/// that vectors take to grow). An hour of a busy machine has 25 MiB of them at 10 Hz.
const KEEP: Keep = Keep { time_ns: 600_000_000_000, bytes: 32 << 20 };

/// A file that nothing was added to for so long, and that has no end, was cut. The slowest
/// recorder writes every second while somebody looks.
const QUIET: Duration = Duration::from_secs(15);

/// Where the samples come from.
#[derive(Debug)]
pub enum TopSource {
    /// What runs here.
    Here(Live),
    /// A file, and when it was last seen to grow.
    File(Box<Follower>, Instant),
    /// A recording that is whole.
    Whole(Box<Recording>),
}

impl TopSource {
    /// Opens what the command line names.
    ///
    /// # Errors
    /// When it is not there, or is no recording.
    pub fn open(args: &TopArgs) -> Result<Self> {
        match &args.file {
            None if args.recorder => Self::file(&recorder_ring::find()?),
            None => {
                let target = record_options::target(&args.target);
                Ok(Self::Here(Live::start(&target, &record_options::of_top(args)?, KEEP)?))
            }
            Some(path) => Self::file(path),
        }
    }

    fn file(path: &Path) -> Result<Self> {
        must_exist(path)?;
        if path.is_dir() {
            return Ok(Self::Whole(Box::new(open_recording(path)?)));
        }
        let mut follower = Follower::open(path)?;
        follower.advance();
        Ok(Self::File(Box::new(follower), Instant::now()))
    }

    /// Reads what was added.
    pub fn advance(&mut self) {
        if let Self::File(follower, grown) = self
            && follower.advance()
        {
            *grown = Instant::now();
        }
    }

    /// Whether it is this machine, now.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// Whether more will come.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Here(live) => !live.has_ended(),
            Self::File(follower, grown) => !follower.is_over() && grown.elapsed() < QUIET,
            Self::Whole(_) => false,
        }
    }

    /// Shows what there is.
    pub fn look<T>(&self, look: impl FnOnce(&Recording) -> T) -> T {
        match self {
            Self::Here(live) => live.look(look),
            Self::File(follower, _) => look(follower.recording()),
            Self::Whole(recording) => look(recording),
        }
    }
}
