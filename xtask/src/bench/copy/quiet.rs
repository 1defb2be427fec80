//! 1.2 GB to a disk of 100 MiB/s: how long the disk goes on writing after a program has said that
//! it is done, and after Ctrl-C in the middle. A sync of the file system follows the program at
//! once: a person who wants to unplug the disk waits for that, and with it a cache that would be
//! written half a minute later is not taken for a quiet disk.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::disk::{DiskSample, DiskWatch, quiet_at};
use super::image::MountedImage;
use super::limited::{BYTES_PER_S, IMAGE_BYTES, INODES, make_source};
use super::{Copier, copiers, run, shell, take_turns};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

/// So long a copy runs before Ctrl-C: a sixth of it is done.
const INTERRUPTED_AFTER: Duration = Duration::from_secs(2);
/// The disk is watched for so much longer.
const WATCHED: Duration = Duration::from_millis(500);
/// Fine enough for a fifth of a second.
const WINDOW: Duration = Duration::from_millis(10);
/// What one turn gives.
const FIGURES: [&str; 2] = ["from done to a quiet disk", "from Ctrl-C to a quiet disk"];

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails, or the disk cannot be limited.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let mut copiers = copiers(session)?;
    copiers.retain(|copier| ["terrace", "cp", "rsync"].contains(&copier.name.as_str()));
    let directory = session.directory.name().to_owned();
    let source = session.directory.file("limited-source");
    make_source(&source)?;
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for copier in &copiers {
        copier.note(session);
        let (directory, source) = (&directory, &source);
        programs.push(Box::new(move || {
            let done = seconds_to_quiet(copier, source, directory, None)?;
            let stopped = seconds_to_quiet(copier, source, directory, Some(INTERRUPTED_AFTER))?;
            // A value of 0 has no ratio.
            Ok([done, stopped].map(|value| value.max(1e-6)).to_vec())
        }));
    }
    let what = "1.2 GB to a disk of 100 MiB/s";
    let all = take_turns(session, "quiet", (what, FIGURES.len()), programs)?;
    for (copier, figures) in copiers.iter().zip(&all) {
        let is_ours = copier.name == "terrace";
        let targets = [0.2, 1.0].map(|most| is_ours.then_some(Target::AtMost(most)));
        for ((figure, values), target) in FIGURES.iter().zip(figures).zip(targets) {
            let row = format!("{what}: {figure}, {}", copier.name);
            session.record.add_alone(&row, "s", Series::new(&copier.name, values), target)?;
        }
    }
    Ok(())
}

/// Seconds from the end of a copy, or from Ctrl-C after so long, to the last write.
fn seconds_to_quiet(
    copier: &Copier,
    source: &str,
    directory: &str,
    interrupted_after: Option<Duration>,
) -> Result<f64, Error> {
    let mut image = MountedImage::new(directory, "limited-disk", IMAGE_BYTES, INODES)?;
    image.limit_writes(BYTES_PER_S)?;
    // A bench that runs in the background ignores SIGINT, and its programs would too.
    let mut command = testkit::with_default_signals(&copier.peer.program);
    command.args(copier.arguments(source, &format!("{}/copy", image.point)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let failed = |error| Error::Failed(format!("{}: {error}", copier.name));
    let watch = DiskWatch::start(&image.point, WINDOW)?;
    let started = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let mut asked_s = None;
    if let Some(after) = interrupted_after {
        std::thread::sleep(after);
        interrupt(&child)?;
        asked_s = Some(started.elapsed().as_secs_f64());
    }
    let status = child.wait().map_err(failed)?;
    if asked_s.is_none() && !status.success() {
        return Err(Error::Failed(format!("{}: {status}", copier.name)));
    }
    let since_s = asked_s.unwrap_or(started.elapsed().as_secs_f64());
    let mut sync = Command::new("sync");
    sync.args(["-f", &image.point]);
    run(sync)?;
    std::thread::sleep(WATCHED);
    let samples: Vec<DiskSample> = watch.end();
    Ok((quiet_at(&samples) - since_s).max(0.0))
}

fn interrupt(child: &Child) -> Result<(), Error> {
    shell(&format!("kill -INT {}", child.id()))
}
