//! What will be done, checked before anything is touched: sizes, applications, directories. What
//! makes no sense is refused before what this user or machine cannot do.

use super::RecoveryOutcome;
use super::described::{self, Application};
use super::trial::RecoveryMethod;
use crate::description::Experiment;
use crate::output_directory;
use crate::{Error, Result};
use machine::{Root, memory};
use model::Bytes;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The hogs of 2012: two, each of a third of the memory.
pub const HOGS: u32 = 2;
const HOG_SHARE: u64 = 3;
/// A process and its program must fit as well.
const LEAST_MEMORY: Bytes = Bytes(16 << 20);
const LEAST_WORKING_SET: Bytes = Bytes(1 << 20);
/// A smaller cache has room for little but the segment that it writes.
const LEAST_CACHE_BYTES: u64 = 64 << 20;
/// The working set may have this much of the memory, in percent; else it never was in memory.
const MOST_PERCENT: u64 = 90;
const USUAL_PERCENT: u64 = 75;

/// What the user chose.
#[derive(Clone, Debug)]
pub struct RecoveryOptions {
    /// Where the results are kept; a directory of this experiment's name if absent.
    pub out: Option<PathBuf>,
    /// The directory on the disk that is tried; that of the results if absent.
    pub disk: Option<PathBuf>,
    /// The applications by name; all that are installed if empty.
    pub applications: Vec<String>,
    /// Memory of the group.
    pub memory: Bytes,
    /// What the application has in use; a share of the memory if absent.
    pub working_set: Option<Bytes>,
    /// How often the hogs are launched.
    pub rounds: u32,
    /// How often each way is tried.
    pub runs: u32,
    /// A way is given up after this time.
    pub limit: Duration,
    /// Whether memory becomes short on the whole machine, and not in a group.
    pub whole_machine: bool,
    /// The directory on the flash that a cache is tried on.
    pub flash: Option<PathBuf>,
    /// The ways by name; all if empty.
    pub ways: Vec<String>,
}

/// A flash cache that is tried.
#[derive(Clone, Debug)]
pub struct FlashPlan {
    /// The directory on the flash, from the root.
    pub directory: PathBuf,
    /// Of the cache: all that the databases use has room twice.
    pub cache_bytes: Bytes,
    /// Of the file system that the databases use.
    pub volume_bytes: Bytes,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct RecoveryPlan {
    /// What the user chose.
    pub options: RecoveryOptions,
    /// What the application and the hogs have together.
    pub memory: Bytes,
    /// What the application has in use.
    pub working_set: Bytes,
    /// Where the results go.
    pub out: PathBuf,
    /// Where the swap file and the databases go.
    pub disk: PathBuf,
    /// The flash, where a cache is tried.
    pub flash: Option<FlashPlan>,
    /// The applications that are tried.
    pub(crate) applications: Vec<Application>,
    /// The ways that are tried; those with a flash cache only with applications that have files.
    pub(crate) ways: Vec<RecoveryMethod>,
}

impl RecoveryPlan {
    /// Checks the options and makes the plan.
    ///
    /// # Errors
    /// `Usage` for what makes no sense, `Impossible` for what this user or machine cannot do.
    pub fn of(options: RecoveryOptions, experiment: &Experiment, root: &Root) -> Result<Self> {
        let free = memory::obtainable(root).ok_or_else(|| {
            Error::impossible("the kernel does not say how much memory is available")
        })?;
        let memory = if options.whole_machine { free.bytes } else { options.memory };
        let percent = |share: u64| Bytes(memory.0 / 100 * share);
        let working_set = options.working_set.unwrap_or(percent(USUAL_PERCENT));
        if memory < LEAST_MEMORY || working_set < LEAST_WORKING_SET {
            return Err(Error::usage(format!(
                "--memory is at least {LEAST_MEMORY}, --working-set at least {LEAST_WORKING_SET}"
            )));
        }
        if working_set > percent(MOST_PERCENT) {
            return Err(Error::usage(format!(
                "--working-set {working_set} is more than {MOST_PERCENT} % of {memory}: it would \
                 never be in memory as a whole"
            )));
        }
        let out = options
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("lab-{}", experiment.name)));
        output_directory::check_options(Some(&out), options.disk.as_deref())?;
        let applications = applications(&options.applications, experiment)?;
        let ways = ways(&options, experiment)?;
        check_flash(&options, &ways)?;
        check_files(&applications, &ways)?;
        if sys::process::effective_uid() != 0 {
            return Err(Error::impossible(
                "needs root, for a swap file and to see where pages lie",
            ));
        }
        if memory > free.bytes {
            let text = format!("{memory} are more than can be had ({})", free.bytes);
            return Err(Error::impossible(&text).hint("a smaller --memory"));
        }
        let disk = options.disk.clone().unwrap_or_else(|| out.clone());
        let mut plan =
            Self { options, memory, working_set, out, disk, flash: None, applications, ways };
        plan.flash = plan.flash_plan()?;
        Ok(plan)
    }

    /// The flash, if a way needs it and an application can use it.
    fn flash_plan(&self) -> Result<Option<FlashPlan>> {
        let is_tried = self.ways.iter().any(|way| way.needs_flash());
        let Some(directory) = self.options.flash.as_ref().filter(|_| is_tried) else {
            return Ok(None);
        };
        if self.applications.iter().all(|one| one.sql.is_none()) {
            return Ok(None);
        }
        let whole_mib = |bytes: u64| Bytes(bytes.next_multiple_of(1 << 20));
        let cache_bytes = whole_mib((2 * self.working_set.0).max(LEAST_CACHE_BYTES));
        // What a file system has of its own, with room to spare.
        let volume_bytes = whole_mib(self.database_bytes().0 / 10 * 11 + (64 << 20));
        let directory = whole(directory)?;
        Ok(Some(FlashPlan { directory, cache_bytes, volume_bytes }))
    }

    /// The ways that are tried with this application.
    pub(super) fn ways_of(&self, application: &Application) -> Vec<RecoveryMethod> {
        let can = |way: &&RecoveryMethod| !way.needs_flash() || application.sql.is_some();
        self.ways.iter().filter(can).copied().collect()
    }

    /// The size of each hog.
    pub fn hog(&self) -> Bytes {
        Bytes(self.memory.0 / HOG_SHARE)
    }

    /// All that the hogs and the application could have in swap at once.
    pub fn swap_bytes(&self) -> Bytes {
        let bytes = self.working_set.0 + u64::from(HOGS) * self.hog().0;
        Bytes(bytes.next_multiple_of(sys::process::page_bytes() as u64))
    }

    /// What the lab's files take on the disk, but for the swap file.
    pub fn file_bytes(&self) -> Bytes {
        self.flash.as_ref().map_or_else(|| self.database_bytes(), |flash| flash.volume_bytes)
    }

    /// What the databases take on the disk: the table, its log and a server's own files.
    pub fn database_bytes(&self) -> Bytes {
        let databases = self.applications.iter().filter(|one| one.sql.is_some()).count();
        Bytes(databases as u64 * (3 * self.working_set.0 + (128 << 20)))
    }

    /// What is said before anything is done.
    pub fn announcement(&self) -> String {
        let (swap, disk) = (self.swap_bytes(), self.disk.display());
        let group = if self.options.whole_machine {
            "makes memory short on the whole machine".to_owned()
        } else {
            format!("makes a memory group of {}", self.memory)
        };
        let flash = self.flash.as_ref().map_or_else(String::new, |flash| {
            let (volume, cache) = (flash.volume_bytes, flash.cache_bytes);
            format!(
                ", a file system of {volume} in a file there, and a flash cache of {cache} in {}",
                flash.directory.display()
            )
        });
        format!("{group} and a swap file of {swap} in {disk}{flash}; what it makes goes at its end")
    }

    /// The outcome before anything was done.
    pub(super) fn outcome(&self, experiment: &Experiment, disk: Option<String>) -> RecoveryOutcome {
        RecoveryOutcome {
            experiment: experiment.name.clone(),
            memory_bytes: self.memory.0,
            whole_machine: self.options.whole_machine,
            working_set_bytes: self.working_set.0,
            hog_bytes: self.hog().0,
            rounds: self.options.rounds,
            disk,
            ..RecoveryOutcome::default()
        }
    }
}

/// A path from the root, as long as the file is there.
pub(super) fn whole(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| {
        Error::impossible(format!("{}: {}", path.display(), sys::plain_reason(&error)))
    })
}

/// The ways of the description that are tried; those that need flash only where it is given.
fn ways(options: &RecoveryOptions, experiment: &Experiment) -> Result<Vec<RecoveryMethod>> {
    let items = experiment.items("ways");
    let known = |name: &String| items.iter().any(|way| way.id == *name);
    if let Some(name) = options.ways.iter().find(|name| !known(name)) {
        let ids: Vec<&str> = items.iter().map(|way| way.id.as_str()).collect();
        let error = Error::usage(format!("--way: there is no way {name}"));
        return Err(error.hint(format!("there are: {}", ids.join(", "))));
    }
    let named: Option<Vec<RecoveryMethod>> =
        items.iter().map(|way| RecoveryMethod::named(&way.id)).collect();
    let mut ways =
        named.ok_or_else(|| Error::usage("the experiment names a way that nothing does"))?;
    ways.retain(|way| {
        let is_asked = options.ways.iter().any(|name| name == way.id());
        is_asked || options.ways.is_empty() && (options.flash.is_some() || !way.needs_flash())
    });
    Ok(ways)
}

/// Whether the flash and the ways fit each other.
fn check_flash(options: &RecoveryOptions, ways: &[RecoveryMethod]) -> Result<()> {
    let needing = ways.iter().find(|way| way.needs_flash());
    match (&options.flash, needing) {
        (None, Some(way)) => {
            let text = format!("--way {} needs --flash, a directory on the flash", way.id());
            Err(Error::usage(text))
        }
        (Some(flash), _) if !flash.is_dir() => {
            Err(Error::usage(format!("--flash: {} is no directory", flash.display())))
        }
        _ => Ok(()),
    }
}

/// Whether there is anything to try.
fn check_files(applications: &[Application], ways: &[RecoveryMethod]) -> Result<()> {
    let need_files = ways.iter().all(|way| way.needs_flash());
    match applications.first().filter(|_| need_files) {
        Some(first) if applications.iter().all(|one| one.sql.is_none()) => {
            let text = format!("--way: {} has no files that a flash cache could hold", first.id);
            Err(Error::usage(text))
        }
        _ => Ok(()),
    }
}

fn applications(names: &[String], experiment: &Experiment) -> Result<Vec<Application>> {
    let all = described::applications(experiment)?;
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| all.iter().find(|one| one.id == *name).cloned();
    names
        .iter()
        .map(|name| {
            find(name).ok_or_else(|| {
                let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
                Error::usage(format!("--app: there is no application {name}"))
                    .hint(format!("there are: {}", ids.join(", ")))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description;
    use std::time::Duration;

    fn options(flash: Option<&str>, names: &[&str]) -> RecoveryOptions {
        RecoveryOptions {
            out: None,
            disk: None,
            applications: Vec::new(),
            memory: Bytes(64 << 20),
            working_set: None,
            rounds: 1,
            runs: 1,
            limit: Duration::from_secs(1),
            whole_machine: false,
            flash: flash.map(PathBuf::from),
            ways: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn chosen(flash: Option<&str>, names: &[&str]) -> Result<Vec<&'static str>> {
        let options = options(flash, names);
        let ways = ways(&options, &description::named("recovery-2012")?)?;
        check_flash(&options, &ways)?;
        Ok(ways.iter().map(|way| way.id()).collect())
    }

    #[test]
    fn ways_with_a_flash_cache_are_tried_where_there_is_flash() {
        let without = ["nothing", "swapoff", "restore"];
        let with = ["nothing", "swapoff", "restore", "flash-new", "flash-filled"];
        assert_eq!(chosen(None, &[]).unwrap(), without);
        assert_eq!(chosen(Some("/"), &[]).unwrap(), with);
        assert_eq!(chosen(Some("/"), &["restore", "nothing"]).unwrap(), ["nothing", "restore"]);
        assert_eq!(chosen(Some("/"), &["flash-new"]).unwrap(), ["flash-new"]);
    }

    #[test]
    fn ways_and_flash_that_do_not_fit_are_refused() {
        for (flash, names, words) in [
            (None, &["flash-filled"], "needs --flash"),
            (Some("/no/such/place"), &["nothing"], "is no directory"),
            (None, &["prayer"], "no way prayer"),
        ] {
            let error = chosen(flash, names).unwrap_err();
            assert!(error.text.contains(words), "{}", error.text);
        }
    }
}
