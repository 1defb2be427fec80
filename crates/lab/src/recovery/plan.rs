//! What will be done, checked before anything is touched: sizes, applications, directories. What
//! makes no sense is refused before what this user or machine cannot do.

use super::RecoveryOutcome;
use super::described::{self, Application};
use crate::description::Experiment;
use crate::output_directory;
use crate::{Error, Result};
use machine::{Root, memory};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// The hogs of 2012: two, each of a third of the memory.
pub const HOGS: u32 = 2;
const HOG_SHARE: u64 = 3;
/// A process and its program must fit as well.
const LEAST_MEMORY: Bytes = Bytes(16 << 20);
const LEAST_WORKING_SET: Bytes = Bytes(1 << 20);
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
    /// The applications that are tried.
    pub(crate) applications: Vec<Application>,
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
        Ok(Self { options, memory, working_set, out, disk, applications })
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
        format!("{group} and a swap file of {swap} in {disk}; what it makes goes at its end")
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
