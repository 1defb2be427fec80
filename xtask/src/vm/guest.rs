//! One guest, from the start of QEMU to its end.
//!
//! QEMU connects to sockets of this process: one for each stream out of the guest, one for its
//! monitor, one for all disks. Threads serve them and send events to the one loop here.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use testkit::disk_model::DiskModel;

use super::disk::{self, DiskSpec};
use super::files::{self, WorkFolder};
use super::image::Image;
use super::monitor::Monitor;
use super::options::VmOptions;
use super::payload::{self, Copy};
use super::qemu::{self, Qemu};
use super::server::{self, Disk};
use super::streams::{self, Event, Streams};
use crate::error::Error;

/// A boot takes 4 s, or some times that on a busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// With hardware under it a boot takes 2 s; a guest that is not there then never comes.
const BOOT_LIMIT_KVM: Duration = Duration::from_secs(25);

/// The guest itself ends the command in time and hands out /out; this is for one that does not.
const GRACE: Duration = Duration::from_secs(60);

/// What is shown of the console to say why a guest died.
const TAIL_LINES: usize = 5;

/// The status of `timeout` in the guest when it ended the command.
const TIMED_OUT: &str = "124";

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The command ended with this status.
    Status(u8),
    /// The command cut the power.
    Cut,
    TimedOut,
    /// It died before the command started, and with what last words; may go better another time.
    NotBooted(String),
}

/// Boots a guest with these disks and runs `command` in it.
///
/// # Errors
/// What failed here, or in the guest after the command had started.
pub(super) fn run(
    options: &VmOptions,
    command: &[String],
    image: &Image,
    copies: &[Copy],
    disks: &[Arc<Disk>],
    with_kvm: bool,
) -> Result<End, Error> {
    let work = WorkFolder::new(&std::env::temp_dir())?;
    let mut disks = disks.to_vec();
    disks.push(scratch(options, command, copies, work.path())?);
    let (events, happened) = mpsc::channel();
    let streams = Streams::listen(work.path(), options.out.as_deref(), &events)?;
    server::listen(&work.path().join(qemu::DISKS), &disks, &events)?;
    let mut qemu = Qemu::start(options, image, work.path(), with_kvm)?;
    let console = streams::keep(qemu.console(), Some(events));
    let complaints = streams::keep(qemu.complaints(), None);
    let watch = Watch {
        happened,
        awaited: streams::COUNT + disks.len(),
        stage: Stage::Opening,
        work: Some(work),
        monitor: None,
        timeout: options.timeout,
        specs: &options.disks,
    };
    let ended = watch.until_end(if with_kvm { BOOT_LIMIT_KVM } else { BOOT_LIMIT });
    // Before the guest ends, so that it writes nothing after the power failed.
    let stored = leave(&disks, matches!(ended, Ok(Ended::Cut)).then_some(options.seed));
    drop(qemu);
    let console = console.join().unwrap_or_default();
    let complaints = complaints.join().unwrap_or_default();
    if let Some(path) = &options.console {
        files::write(path, &console)?;
    }
    if let Some(path) = &options.stats {
        write_stats(path, options, &disks)?;
    }
    if let Some(path) = &options.requests {
        let all: String = disks.iter().map(|disk| disk.requests()).collect();
        files::write(path, all.as_bytes())?;
    }
    let ended = ended?;
    stored?;
    match ended {
        Ended::Gone(when) => {
            let why = last_words(&complaints, &console);
            match when {
                Stage::Opening => Err(Error::Failed(format!("QEMU does not start: {why}"))),
                Stage::Booting => Ok(End::NotBooted(why)),
                Stage::Running => Err(Error::Failed(format!("the guest died: {why}"))),
            }
        }
        Ended::TimedOut => {
            // A guest that hangs leaves an archive that is cut short: what came, came.
            let _ = streams.end();
            Ok(End::TimedOut)
        }
        Ended::Status(status) => streams.end().map(|()| End::Status(status)),
        Ended::Cut => {
            // What it had put into /out is lost, as on any disk that was not flushed.
            let _ = streams.end();
            Ok(End::Cut)
        }
    }
}

/// Ends the use of all disks by this boot: by a power cut, if there is a seed.
fn leave(disks: &[Arc<Disk>], seed: Option<u64>) -> Result<(), Error> {
    for disk in disks {
        let failed = |error: io::Error| Error::Failed(format!("disk {}: {error}", disk.name));
        let Some(seed) = seed else {
            disk.end_boot().map_err(failed)?;
            continue;
        };
        if let Some(left) = disk.cut(seed).map_err(failed)? {
            let (name, kept, all) = (&disk.name, left.kept_sectors, left.sectors);
            eprintln!(
                "xtask: vm: power cut, seed {seed}: disk {name} keeps {kept} of {all} unflushed sectors"
            );
        }
    }
    Ok(())
}

/// The disks that were asked for; they outlast a boot.
///
/// # Errors
/// When a file cannot be opened or made.
pub(super) fn disks(options: &VmOptions) -> Result<Vec<Arc<Disk>>, Error> {
    let cache = files::cache()?;
    let mut disks = Vec::new();
    for spec in &options.disks {
        let path = spec.file.as_deref().unwrap_or(&cache);
        let file = match (&spec.file, spec.len_bytes) {
            (None, len_bytes) => files::nameless(&cache, len_bytes.unwrap_or(0))?,
            (Some(path), _) => File::options()
                .read(true)
                .write(true)
                .open(path)
                .map_err(Error::io("open", path))?,
        };
        let facts = file.metadata().map_err(Error::io("look at", path))?;
        let len_bytes = facts.len();
        let model = spec.timing.map(|timing| DiskModel::new(timing, len_bytes));
        let mut disk = Disk::new(&spec.name, file, len_bytes, model);
        if let Some(true_size) = spec.true_size {
            disk = disk.with_true_size(true_size);
        }
        if spec.has_write_cache {
            disk = disk.with_write_cache();
        }
        if options.requests.is_some() {
            disk = disk.with_request_log();
        }
        disks.push(Arc::new(disk));
    }
    Ok(disks)
}

/// The disk that is laid over the root image in one boot.
fn scratch(
    options: &VmOptions,
    command: &[String],
    copies: &[Copy],
    work: &Path,
) -> Result<Arc<Disk>, Error> {
    let file = payload::scratch(options, command, copies, &files::cache()?, work)?;
    Ok(Arc::new(Disk::new(qemu::SCRATCH, file, payload::SCRATCH_BYTES, None)))
}

/// What happens while QEMU runs.
struct Watch<'a> {
    happened: Receiver<Event>,
    /// Sockets that QEMU has yet to open.
    awaited: usize,
    stage: Stage,
    /// Dropped as soon as QEMU has opened everything in it.
    work: Option<WorkFolder>,
    monitor: Option<Monitor>,
    timeout: Duration,
    /// The disks that were asked for.
    specs: &'a [DiskSpec],
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Status(u8),
    Cut,
    TimedOut,
    Gone(Stage),
}

/// How far a guest has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// QEMU has not opened all sockets: its options or this machine are at fault.
    Opening,
    Booting,
    /// The command has started.
    Running,
}

impl Watch<'_> {
    fn until_end(mut self, boot_limit: Duration) -> Result<Ended, Error> {
        let mut deadline = Instant::now() + boot_limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.happened.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) if self.stage == Stage::Running => {
                    return Ok(Ended::TimedOut);
                }
                Err(_) | Ok(Event::Gone) => return Ok(Ended::Gone(self.stage)),
                Ok(Event::Connected) => self.connected(),
                Ok(Event::Monitor(stream)) => {
                    self.connected();
                    self.monitor = Some(Monitor::new(stream));
                }
                Ok(Event::Line(line)) => match line.split_once(' ').unwrap_or((&line, "")) {
                    ("READY", _) => {
                        self.stage = Stage::Running;
                        deadline = Instant::now() + self.timeout + GRACE;
                    }
                    ("EXIT", status) => return exit(status),
                    ("FAIL", what) => return Err(in_guest(what)),
                    ("CUT", _) => return Ok(Ended::Cut),
                    ("UNPLUG", name) => self.unplug(name),
                    ("PLUG", name) => self.plug(name),
                    _ => eprintln!("xtask: vm: the guest says {line:?}"),
                },
            }
        }
    }

    fn connected(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
        if self.awaited == 0 {
            self.work = None;
            self.stage = Stage::Booting;
        }
    }

    /// The guest sees for itself whether the disk goes; why not is said here.
    fn unplug(&mut self, name: &str) {
        let outcome = match &mut self.monitor {
            Some(monitor) => monitor.unplug(&disk::device_id(name)),
            None => Err("QEMU's monitor is not there".to_owned()),
        };
        if let Err(what) = outcome {
            eprintln!("xtask: vm: cannot unplug {name}: {what}");
        }
    }

    /// As above.
    fn plug(&mut self, name: &str) {
        let spec = self.specs.iter().find(|spec| spec.name == name);
        let outcome = match (&mut self.monitor, spec) {
            (Some(monitor), Some(spec)) => monitor.plug(&spec.device_arguments()),
            (None, _) => Err("QEMU's monitor is not there".to_owned()),
            (_, None) => Err("there is no such disk".to_owned()),
        };
        if let Err(what) = outcome {
            eprintln!("xtask: vm: cannot plug {name}: {what}");
        }
    }
}

fn exit(status: &str) -> Result<Ended, Error> {
    match status.parse() {
        Ok(_) if status == TIMED_OUT => Ok(Ended::TimedOut),
        Ok(status) => Ok(Ended::Status(status)),
        Err(_) => Err(in_guest(&format!("no exit status: {status:?}"))),
    }
}

fn in_guest(what: &str) -> Error {
    Error::Failed(format!("in the guest: {what}"))
}

/// What QEMU complained about, or else the end of the console, on one line.
fn last_words(complaints: &[u8], console: &[u8]) -> String {
    let spoken = [complaints, console].map(String::from_utf8_lossy);
    let lines: Vec<&str> = spoken
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if let Some(panic) = lines.iter().find(|line| line.contains("Kernel panic")) {
        return (*panic).to_owned();
    }
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if last.is_empty() { "it said nothing".to_owned() } else { last.join(" / ") }
}

fn write_stats(path: &Path, options: &VmOptions, disks: &[Arc<Disk>]) -> Result<(), Error> {
    let asked_for = disks.iter().take(options.disks.len());
    let counts: Map<String, Value> =
        asked_for.map(|disk| (disk.name.clone(), disk.counts())).collect();
    files::write(path, format!("{:#}\n", Value::Object(counts)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(events: Vec<Event>) -> Result<Ended, Error> {
        let (sender, happened) = mpsc::channel();
        for event in events {
            sender.send(event).unwrap();
        }
        let watch = Watch {
            happened,
            awaited: 1,
            stage: Stage::Opening,
            work: None,
            monitor: None,
            timeout: Duration::ZERO,
            specs: &[],
        };
        watch.until_end(Duration::from_secs(60))
    }

    fn line(text: &str) -> Event {
        Event::Line(text.to_owned())
    }

    #[test]
    fn the_command_ends_with_the_status_that_the_guest_tells() {
        let ended = watched(vec![Event::Connected, line("READY"), line("EXIT 7")]);
        assert_eq!(ended.unwrap(), Ended::Status(7));
        let ended = watched(vec![line("READY"), line("EXIT 124")]);
        assert_eq!(ended.unwrap(), Ended::TimedOut);
        assert!(watched(vec![line("READY"), line("EXIT x")]).is_err());
        assert_eq!(watched(vec![line("READY"), line("CUT"), Event::Gone]).unwrap(), Ended::Cut);
    }

    #[test]
    fn a_death_is_classified_by_when_it_came() {
        let stage = |events| match watched(events).unwrap() {
            Ended::Gone(stage) => stage,
            other => panic!("{other:?}"),
        };
        assert_eq!(stage(vec![Event::Gone]), Stage::Opening);
        assert_eq!(stage(vec![Event::Connected, Event::Gone]), Stage::Booting);
        let events = vec![Event::Connected, line("READY"), Event::Gone];
        assert_eq!(stage(events), Stage::Running);
    }

    #[test]
    fn what_the_guest_cannot_do_is_an_error() {
        let error = watched(vec![line("FAIL no module x in this kernel")]).unwrap_err();
        assert_eq!(error.to_string(), "in the guest: no module x in this kernel");
    }

    #[test]
    fn the_last_words_are_one_line() {
        let console = b"a\nb\nc\r\nd\ne\n\nf\n";
        assert_eq!(last_words(b"", console), "b / c / d / e / f");
        let console = b"a\nKernel panic: x\n1\n2\n3\n4\n5\n";
        assert_eq!(last_words(b"", console), "Kernel panic: x");
        assert_eq!(last_words(b"", b""), "it said nothing");
    }
}
