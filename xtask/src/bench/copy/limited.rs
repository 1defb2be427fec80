//! 24 files of 50 MB to a disk that takes 100 MiB/s: whether a copy is at that rate from its first
//! second, and whether what it shows is what is on the disk.
//!
//! The kernel lets the bytes of a tenth of a second through at once, and a sync after them waits
//! for the next ones. Of 600 MB that alone are 1.7 points, so the copy is twice as long.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::disk::{DiskSample, DiskWatch, written_by};
use super::image::MountedImage;
use super::{Copier, copiers, run, shell, take_turns};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

const FILES: u64 = 24;
const FILE_BYTES: u64 = 50_000_000;
const ALL_BYTES: u64 = FILES * FILE_BYTES;
pub(super) const BYTES_PER_S: u64 = 100 << 20;
pub(super) const IMAGE_BYTES: u64 = 3 << 29;
/// Finer than what a person sees.
const WINDOW: Duration = Duration::from_millis(20);
pub(super) const INODES: u64 = 4096;
/// What one turn gives.
const FIGURES: [&str; 3] =
    ["first second, of the limit", "all seconds, of the limit", "shown, off by"];

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails, or the disk cannot be limited.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let mut copiers = copiers(session)?;
    // Those that show a percentage, and cp, which is what they are compared with.
    copiers.retain(|copier| ["terrace", "cp", "rsync"].contains(&copier.name.as_str()));
    for copier in copiers.iter_mut().filter(|copier| copier.name == "rsync") {
        copier.words.push("--info=progress2".to_owned());
    }
    let directory = session.directory.name().to_owned();
    let source = session.directory.file("limited-source");
    make_source(&source)?;
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for copier in &copiers {
        copier.note(session);
        let (directory, source, terrace) = (&directory, &source, session.terrace.clone());
        programs.push(Box::new(move || {
            terrace.run(&["warm", "evict", source], super::LIMIT)?;
            turn(copier, source, directory)
        }));
    }
    let what = "1.2 GB to a disk of 100 MiB/s";
    let all = take_turns(session, "limited", (what, FIGURES.len()), programs)?;
    for (copier, figures) in copiers.iter().zip(&all) {
        let (name, is_ours) = (copier.name.as_str(), copier.name == "terrace");
        let targets =
            [Some(Target::AtLeast(0.97)), Some(Target::AtLeast(0.97)), Some(Target::AtMost(2.0))];
        for (at, values) in figures.iter().enumerate() {
            // cp shows nothing.
            if name == "cp" && at == 2 {
                continue;
            }
            let unit = if at == 2 { "points" } else { "x" };
            let row = format!("{what}: {}, {name}", FIGURES[at]);
            let target = targets[at].filter(|_| is_ours);
            session.record.add_alone(&row, unit, Series::new(name, values), target)?;
        }
    }
    Ok(())
}

/// Makes the files, unless they are there.
pub(super) fn make_source(source: &str) -> Result<(), Error> {
    if Path::new(source).exists() {
        return Ok(());
    }
    shell(&format!(
        "mkdir '{source}'; for file in $(seq {FILES}); do \
         head -c {FILE_BYTES} /dev/urandom > '{source}/file'$file; done; sync"
    ))
}

/// One copy on a terminal, to a new file system.
fn turn(copier: &Copier, source: &str, directory: &str) -> Result<Vec<f64>, Error> {
    let mut image = MountedImage::new(directory, "limited-disk", IMAGE_BYTES, INODES)?;
    image.limit_writes(BYTES_PER_S)?;
    let words = copier.arguments(source, &format!("{}/copy", image.point));
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("'{}' {}", copier.peer.program.display(), quoted.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let watch = DiskWatch::start(&image.point, WINDOW)?;
    let started = Instant::now();
    let failed = |error| Error::Failed(format!("script: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let is_ours = copier.name == "terrace";
    let output = child.stdout.take();
    let shown = output.map_or_else(Vec::new, |output| percents(output, started, is_ours));
    if !child.wait().map_err(failed)?.success() {
        return Err(Error::Failed(format!("{line}: failed")));
    }
    let mut sync = Command::new("sync");
    sync.args(["-f", &image.point]);
    run(sync)?;
    let seconds = started.elapsed().as_secs_f64();
    let samples = watch.end();
    let limit = BYTES_PER_S as f64;
    let first = written_by(&samples, 1.0) / limit;
    let all = ALL_BYTES as f64 / seconds / limit;
    Ok(vec![first.max(1e-6), all, off_by(&samples, &shown).max(1e-6)])
}

/// The percentages that a program shows, each with its second.
fn percents(mut output: impl Read, started: Instant, is_ours: bool) -> Vec<(f64, f64)> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(bytes) = output.read(&mut buffer) {
        if bytes == 0 {
            break;
        }
        let at_s = started.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&buffer[..bytes]);
        let shown = if is_ours { percent_on_device(&text) } else { last_percent(&text) };
        all.extend(shown.map(|percent| (at_s, percent)));
    }
    all
}

/// The last percentage of a text: `12%`.
fn last_percent(text: &str) -> Option<f64> {
    percent_before(&text[..text.rfind('%')?])
}

/// That of `12.3 % of 600 MB on the device`: Terrace shows others, of the cause.
fn percent_on_device(text: &str) -> Option<f64> {
    let parts = text.match_indices(" % of ").filter(|(at, sign)| {
        let mut words = text[at + sign.len()..].splitn(3, ' ');
        words.nth(2).is_some_and(|rest| rest.starts_with("on the device"))
    });
    percent_before(&text[..parts.last()?.0])
}

fn percent_before(text: &str) -> Option<f64> {
    let is_of_number = |character: char| character.is_ascii_digit() || character == '.';
    let number = text.trim_end();
    let start = number.rfind(|character: char| !is_of_number(character)).map_or(0, |at| at + 1);
    number.get(start..)?.parse().ok()
}

/// The largest difference between what was shown last and what was on the disk, in points of a
/// hundred, over all windows.
fn off_by(samples: &[DiskSample], shown: &[(f64, f64)]) -> f64 {
    let difference = |sample: &DiskSample| {
        let last = shown.iter().take_while(|(at_s, _)| *at_s <= sample.at_s).last();
        let percent = last.map_or(0.0, |(_, percent)| *percent);
        // The file system's own writes are more than the files.
        let held = (100.0 * sample.written_bytes as f64 / ALL_BYTES as f64).min(100.0);
        (percent - held).abs()
    };
    samples.iter().map(difference).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_percentage_is_found_in_either_form() {
        assert_eq!(percent_on_device("\r12.5 % of 600 MB on the device, 1 B"), Some(12.5));
        let panel = "all of it is on the device\r\n81 % of 600 MB on the device, 90 % of its best";
        assert_eq!(percent_on_device(panel), Some(81.0));
        assert_eq!(percent_on_device("90 % of its best seconds\rit is on the device"), None);
        assert_eq!(last_percent("  32,768   0%  1.0kB/s\r  600,000 100%  9"), Some(100.0));
        assert_eq!(last_percent("nothing"), None);
    }

    #[test]
    fn what_is_shown_is_compared_at_every_moment() {
        let at = |at_s, written_bytes| DiskSample { at_s, written_bytes };
        let samples = [at(0.0, 0), at(1.0, ALL_BYTES / 2), at(2.0, ALL_BYTES)];
        assert_eq!(off_by(&samples, &[(0.5, 40.0), (1.5, 100.0)]), 10.0);
        assert_eq!(off_by(&samples, &[]), 100.0);
    }
}
