//! `terrace ramdisk keep`: the service that saves a RAM disk again and again, and when it ends.
//!
//! What fails is said once, in one line, and tried again: as long as a generation is there, a
//! service that goes on loses less than one that ends. It ends by itself only when the directory is
//! another one. A save that was due while the machine slept is not made up for.

use super::known::{self, Known};
use crate::args::ramdisk::KeepArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use crate::output::clean::escaped;
use crate::output::prose::{count, long_time};
use crate::service::Service;
use machine::Root;
use model::Bytes;
use model::progress::Control;
use place::ErrorKind;
use place::background::{Allowance, Limits};
use place::ramdisk::{Keeper, RamdiskRestore, SaveReport, SaveRequest};
use std::path::Path;
use std::time::{Duration, Instant};

const COMMAND: &str = "ramdisk keep";
/// How soon a signal is seen, and how often the status socket is looked at.
const TURN: Duration = Duration::from_millis(200);
/// How long the last save waits for a reader of the store.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The longest time between two saves: a week, which every clock can count to.
const LONGEST_INTERVAL: Duration = Duration::from_secs(7 * 86_400);

/// How long the first save gives way to others: its users wait for it. Picked: next to a boot that
/// keeps all processors busy for so long it is little, and longer it may not hold up the boot.
const FIRST_YIELDS: Duration = Duration::from_secs(10);

/// What became of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    /// All of it is safe.
    Whole,
    /// The store has less than the directory.
    InPart,
    /// It is another directory.
    Gone,
}

/// The service while it runs.
struct Keeping<'a> {
    root: &'a Root,
    source: &'a Path,
    freezes: bool,
    /// How long a save gives way to others, but the first and the last: until half of the time to
    /// the next one is over. What is not saved is lost by a crash.
    yields: Duration,
    keeper: Keeper,
    service: Service,
    /// What was last said of a save that failed; not said again.
    complaint: Option<String>,
}

/// Keeps a directory until a signal comes.
///
/// # Errors
/// What was refused before it was ready.
pub fn keep(args: &KeepArgs) -> Result<Exit> {
    let root = Root::system();
    let Known { point: source, persist, .. } =
        known::find(&root, &args.source, args.persist.as_deref(), &args.schedule)?;
    let request = SaveRequest {
        source: source.clone(),
        store: persist.store.clone(),
        keep: persist.keep.into(),
        force: false,
        freeze: args.freeze.commands(),
        wait: true,
    };
    let mut keeper = Keeper::start(&root, request)?;
    let (service, fault) = Service::start(COMMAND, words_of(&source));
    if let Some(error) = fault {
        output::announce(COMMAND, &format!("it has no status socket: {}", error.text));
    }
    if args.restore && keeper.is_to_be_restored(&root)? && !restore(&root, &source, &persist.store)?
    {
        return Err(Error::new(Exit::Partial, "interrupted: nothing was restored"));
    }
    keeper.look_again(&root)?;
    let every = Duration::from_secs(persist.every_seconds).min(LONGEST_INTERVAL);
    if let Err(error) = place::ramdisk::note_kept(&root, &source, persist) {
        output::announce(COMMAND, &format!("`ramdisk list` does not know it: {error}"));
    }
    let freezes = args.freeze.freeze_cmd.is_some();
    let (yields, complaint) = (every / 2, None);
    let mut keeping =
        Keeping { root: &root, source: &source, freezes, yields, keeper, service, complaint };
    let mut begun = Instant::now();
    let first = keeping.first_save()?;
    let text = format!("{first}; saves every {}", long_time(every.as_nanos() as u64));
    output::announce(COMMAND, &text);
    keeping.service.ready(&text);
    while keeping.wait(begun + every) {
        begun = Instant::now();
        if keeping.save(Some(keeping.yields)) == Saved::Gone {
            return Ok(Exit::Partial);
        }
    }
    keeping.service.stopping("saves for the last time");
    let saved = keeping.last_save();
    Ok(if saved == Saved::Whole { Exit::Done } else { Exit::Partial })
}

/// Restores the newest generation; whether that was not interrupted.
fn restore(root: &Root, source: &Path, store: &Path) -> Result<bool> {
    let request = RamdiskRestore {
        store: store.to_owned(),
        target: source.to_owned(),
        generation: None,
        below: None,
        is_attached: true,
    };
    let restored = place::ramdisk::restore(root, &request, &mut |_| {
        Control::stop_if(sys::interrupt::requested())
    })?;
    let (generation, entries) = (restored.generation, count(restored.entries));
    if restored.is_complete {
        let source = words_of(source);
        let text = format!("generation {generation} is restored to {source}: {entries} entries");
        output::announce(COMMAND, &text);
    }
    if let Some(failure) = restored.failures.first() {
        let (path, why) = (words_of(&failure.path), escaped(&failure.reason));
        let all = count(restored.failure_count);
        output::announce(COMMAND, &format!("{all} entries are not restored, as {path}: {why}"));
    }
    Ok(restored.is_complete)
}

impl Keeping<'_> {
    /// Saves before users are let in; what it is then, in words.
    fn first_save(&mut self) -> Result<String> {
        let source = words_of(self.source);
        match self.attempt(Some(FIRST_YIELDS)) {
            Ok(report) => {
                self.judge(&report);
                Ok(format!("{source} is safe as generation {}", report.generation))
            }
            // A store that is full now may have room later.
            Err(error) if error.kind == ErrorKind::Failed => {
                self.complain(&error.to_string());
                Ok(format!("{source} is not saved yet"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the time of the next save; false if a signal came before.
    fn wait(&mut self, until: Instant) -> bool {
        loop {
            if sys::interrupt::requested() {
                return false;
            }
            self.service.turn();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TURN));
        }
    }

    /// Saves at the end: waits for a short reader of the store, though a signal has come.
    fn last_save(&mut self) -> Saved {
        let until = Instant::now() + LONGEST_WAIT;
        while Instant::now() < until && self.keeper.is_same(self.root) && self.keeper.is_locked() {
            std::thread::sleep(TURN);
        }
        self.save(None)
    }

    fn save(&mut self, yields: Option<Duration>) -> Saved {
        match self.attempt(yields) {
            Ok(report) => self.judge(&report),
            Err(_) if !self.keeper.is_same(self.root) => {
                self.complain(&self.keeper.gone().to_string());
                Saved::Gone
            }
            Err(error) => {
                self.complain(&error.to_string());
                Saved::InPart
            }
        }
    }

    /// Saves, and gives way to other work for a time at most, unless users are frozen or the end
    /// has come. What is not saved is lost by a crash: short memory is no reason to stop, and a
    /// save takes next to none.
    fn attempt(&mut self, yields: Option<Duration>) -> place::Result<SaveReport> {
        let mut allowance = yields.filter(|_| !self.freezes).and_then(|time| {
            let limits = Limits { time: Some(time), ..Limits::usual(self.root) };
            Allowance::start(self.root, limits).ok()
        });
        self.keeper.save(self.root, &mut |_| {
            self.service.turn();
            let is_over = match &mut allowance {
                Some(_) if sys::interrupt::requested() => true,
                Some(allowance) => allowance.check(Bytes(0)).is_some(),
                None => false,
            };
            if is_over {
                allowance = None;
            }
            Control::Continue
        })
    }

    /// Says what of a save is not as it should be, and what is again.
    fn judge(&mut self, report: &SaveReport) -> Saved {
        let generation = report.generation;
        let complaint = match (&report.thaw_failure, report.failures.first()) {
            (Some(why), _) => Some(format!("its users may still be frozen: {why}")),
            (None, Some(failure)) => Some(format!(
                "{} entries are not saved as they are, as {}: {}",
                count(report.failure_count),
                words_of(&failure.path),
                escaped(&failure.reason)
            )),
            (None, None) => None,
        };
        if let Some(text) = complaint {
            self.complain(&text);
            return Saved::InPart;
        }
        let text = format!("saved as generation {generation}");
        if self.complaint.take().is_some() {
            output::announce(COMMAND, &format!("{text}, all of it again"));
        }
        self.service.status(&text);
        Saved::Whole
    }

    fn complain(&mut self, text: &str) {
        self.service.status(text);
        if self.complaint.as_deref() != Some(text) {
            output::announce(COMMAND, text);
            self.complaint = Some(text.to_owned());
        }
    }
}

fn words_of(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}
