//! One trial: the usual speed, the hogs, the way, the clock, the check of everything. The recording
//! runs from the end of the hogs until the application is as fast as before.

use super::application::{ApplicationHome, Running};
use super::described::Application;
use super::disk_watch::DiskWatch;
use super::plan::{HOGS, RecoveryPlan};
use super::volume::{CacheCounts, Volume};
use super::workplace::Workplace;
use crate::{Error, Host, Result};
use explain::recording::{Window, explain};
use machine::{Root, diskstats, mounts};
use measure::pressure::{self, HogGroup};
use model::explanation::Explanation;
use place::background::Limits;
use place::workingset::restore::{self, RestoreRequest};
use place::workingset::targets::Selection;
use record::capture::BackgroundRecording;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::helper::HiddenCommand;

/// Requests in a row whose 99th percentile is taken; two may be slow.
const WINDOW: u32 = 200;
/// The usual 99th percentile is that of so many windows together.
const USUAL_WINDOWS: u32 = 10;
/// Back to normal is at most this many times the usual one.
const NORMAL_TIMES: f64 = 1.2;
/// The disk needs a whole second to be seen quiet; so long is waited for that at the end.
const QUIET_PATIENCE: Duration = Duration::from_secs(3);
/// What can be done after the hogs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryMethod {
    Nothing,
    Swapoff,
    Restore,
    FlashNew,
    FlashFilled,
}

impl RecoveryMethod {
    /// The way that a description calls so.
    pub fn named(id: &str) -> Option<Self> {
        let all = [Self::Nothing, Self::Swapoff, Self::Restore, Self::FlashNew, Self::FlashFilled];
        all.into_iter().find(|way| way.id() == id)
    }

    /// Its name.
    pub fn id(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Swapoff => "swapoff",
            Self::Restore => "restore",
            Self::FlashNew => "flash-new",
            Self::FlashFilled => "flash-filled",
        }
    }

    /// Whether files are read through a flash cache.
    pub fn needs_flash(self) -> bool {
        matches!(self, Self::FlashNew | Self::FlashFilled)
    }
}

/// Which trial it is.
#[derive(Clone, Copy, Debug)]
pub struct Named<'n> {
    pub application: &'n str,
    pub way: RecoveryMethod,
    /// From 0.
    pub run: u32,
}

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}, {}, run {}", self.application, self.way.id(), self.run + 1)
    }
}

/// What one trial showed.
#[derive(Debug, Serialize)]
pub struct Trial {
    /// Which application.
    pub application: String,
    /// Which way.
    pub way: String,
    /// From 1.
    pub run: u32,
    /// The application's 99th percentile before, ns.
    pub usual_p99_ns: u64,
    /// What it had lost when the hogs were closed, at most after any of them.
    pub pushed_out_bytes: u64,
    /// How long the way itself took, ns.
    pub way_ns: u64,
    /// What a restore read; `None` for the other ways.
    pub restored_bytes: Option<u64>,
    /// Why it ended: a word of `terrace warm restore`.
    pub restore_stop: Option<place::background::StopReason>,
    /// What the flash cache gave from the end of the hogs on; `None` for the ways without one.
    pub flash: Option<CacheCounts>,
    /// From the end of the hogs until the application was as fast as before; `None` if not
    /// before the limit.
    pub recovered_ns: Option<u64>,
    /// Until the disk was busy at most 30 % of a second; `None` if it was not seen.
    pub quiet_ns: Option<u64>,
    /// Until 300 MB were cached, on a whole machine.
    pub cached_ns: Option<u64>,
    /// Requests until then.
    pub requests: u64,
    /// Answers and pages or rows that were not what was written; 0.
    pub wrong: u64,
    /// The recording's file in the directory of the results.
    pub recording: String,
    /// Where the time went from the end of the hogs to the recovery of the application.
    pub explanation: Explanation,
    /// What could not be done or seen.
    pub notes: Vec<String>,
}

impl Trial {
    /// Until the disk was back to normal as the original demanded: the earlier of two.
    pub fn normal_disk_ns(&self) -> Option<u64> {
        self.quiet_ns.into_iter().chain(self.cached_ns).min()
    }
}

/// What all trials share.
#[derive(Debug)]
pub struct Bench<'a> {
    pub(super) host: &'a Host,
    pub(super) root: &'a Root,
    pub(super) plan: &'a RecoveryPlan,
    workplace: &'a Workplace,
    group: Option<&'a HogGroup>,
    device: Option<(u32, u32)>,
}

/// What a way did.
#[derive(Debug, Default)]
struct Done {
    restored: Option<restore::RestoreReport>,
    notes: Vec<String>,
}

impl<'a> Bench<'a> {
    /// A bench; finds the disk of the workplace.
    pub fn new(
        host: &'a Host,
        root: &'a Root,
        plan: &'a RecoveryPlan,
        workplace: &'a Workplace,
        group: Option<&'a HogGroup>,
    ) -> Self {
        let device = device_below(root, workplace.directory());
        Self { host, root, plan, workplace, group, device }
    }

    /// The name of the disk, or its number.
    pub fn disk(&self) -> Option<String> {
        self.device.map(|device| name_of(self.root, device))
    }

    pub fn group(&self) -> Option<&Path> {
        self.group.map(HogGroup::directory)
    }

    /// A directory for the files of this application, which it may come to own.
    pub fn directory(&self, application: &Application) -> Result<Directory> {
        let workplace = Directory::open(self.workplace.directory())?;
        Ok(workplace.create_subdirectory(&OsString::from(&application.id), 0o700)?)
    }

    /// The standard error of this application, outside of its directory: root never opens a file in
    /// a directory that another user can change.
    pub fn log(&self, application: &Application) -> Result<File> {
        let workplace = Directory::open(self.workplace.directory())?;
        Ok(workplace.create_new(&OsString::from(format!("{}.log", application.id)), 0o600)?)
    }

    /// Starts an application with its working set in memory.
    pub fn start<'d>(
        &self,
        described: &'d Application,
        directory: &Directory,
        log: &File,
        has_files: bool,
    ) -> Result<Running<'d>> {
        let home = ApplicationHome { group: self.group(), directory, log, has_files };
        Running::start(self.host, self.root, described, home, self.plan.working_set.0)
    }

    /// One trial; `cache` is what the application's files are read through.
    ///
    /// # Errors
    /// Where the application, the hogs or the recording fail, and on Ctrl-C.
    pub fn trial(
        &self,
        running: &mut Running,
        named: &Named,
        cache: Option<&Volume>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Trial> {
        let mut step = |what: &str| progress(&format!("{named}: {what}"));
        step("its usual speed");
        let mut wrong = running.wrong()?;
        let mut usual = Vec::new();
        for _ in 0..USUAL_WINDOWS {
            let answers = running.ask(WINDOW)?;
            wrong += answers.wrong;
            usual.extend(answers.latencies_ns);
        }
        let usual_p99_ns = p99(&mut usual);
        if let Some(cache) = cache.filter(|_| named.way == RecoveryMethod::FlashFilled) {
            step("filling the cache");
            cache.fill()?;
        }
        let hogs =
            pressure::hog(self.root, &self.hogs(), &mut |what| step(&format!("hogs, {what}")))?;
        uninterrupted()?;
        step("the clock runs");
        let file = format!("{}-{}-{}.trec", named.application, named.way.id(), named.run + 1);
        let file_path = self.plan.out.join(&file);
        let before = cache.map(Volume::counts).transpose()?;
        let background = self.host.record(Some(&file_path))?;
        let watch =
            self.device.map(|device| DiskWatch::start(device, self.plan.options.whole_machine));
        let start = Instant::now();
        let done = self.act(named.way)?;
        let way_ns = start.elapsed().as_nanos() as u64;
        let course = self.until_normal(running, usual_p99_ns, start)?;
        let after = cache.map(Volume::counts).transpose()?;
        background.map_or(Ok(()), BackgroundRecording::finish)?;
        let (quiet_ns, cached_ns) = watch.as_ref().map_or((None, None), wait_for_quiet);
        drop(watch);
        step("comparing all content");
        wrong += course.wrong + running.wrong()?;
        let explanation = explain(&record::file::open(&file_path)?, Window::default());
        Ok(Trial {
            application: named.application.to_owned(),
            way: named.way.id().to_owned(),
            run: named.run + 1,
            usual_p99_ns,
            pushed_out_bytes: self.lost(running.pid(), &hogs),
            way_ns,
            restored_bytes: done.restored.as_ref().map(present_bytes),
            restore_stop: done.restored.as_ref().map(|report| report.stop),
            flash: before.zip(after).map(|(before, after)| after.since(&before)),
            recovered_ns: course.recovered_ns,
            quiet_ns,
            cached_ns,
            requests: course.requests,
            wrong,
            recording: file,
            explanation,
            notes: done.notes,
        })
    }

    /// The hogs, in the group of the application.
    fn hogs(&self) -> pressure::HogPlan {
        let mut words = self.host.programs.lab.words().to_vec();
        words.push("member".into());
        if let Some(group) = self.group() {
            words.extend(["--group".into(), group.into()]);
        }
        words.push("--".into());
        words.extend(self.host.programs.hog.command_line());
        let helper = HiddenCommand::new(words);
        pressure::HogPlan {
            count: HOGS,
            repeat: self.plan.options.rounds,
            ..pressure::HogPlan::new(self.plan.hog(), helper)
        }
    }

    /// What the hogs took from the application: its process's memory and its files' pages.
    fn lost(&self, pid: u32, hogs: &pressure::HogReport) -> u64 {
        let directory = self.workplace.directory();
        let theirs = hogs.pushed_out.iter().filter(|who| {
            who.pid == Some(pid)
                || (who.pid.is_none() && Path::new(&who.whose).starts_with(directory))
        });
        theirs.map(|who| who.to_swap_bytes + who.from_cache_bytes).sum()
    }

    fn act(&self, way: RecoveryMethod) -> Result<Done> {
        match way {
            RecoveryMethod::Nothing | RecoveryMethod::FlashNew | RecoveryMethod::FlashFilled => {
                Ok(Done::default())
            }
            // The lab's own area, and never another.
            RecoveryMethod::Swapoff => {
                let swap = self.workplace.swap();
                sys::swap_area::off(&swap)?;
                sys::swap_area::on(&swap, sys::swap_area::FIRST)?;
                Ok(Done::default())
            }
            RecoveryMethod::Restore => self.restore(),
        }
    }

    fn restore(&self) -> Result<Done> {
        let limits =
            Limits { time: Some(self.plan.options.limit), ..self.host.restore.limits.clone() };
        let selection = self.group().map(|group| Selection::Group(group.to_owned()));
        let request = RestoreRequest {
            selection: selection.unwrap_or(Selection::All),
            limits,
            ..self.host.restore.clone()
        };
        let mut plan = restore::plan(self.root, &request)?;
        let mut notes = std::mem::take(&mut plan.notes);
        let report = restore::carry_out(self.root, &request, plan, &mut model::progress::ignore)?;
        notes.extend(report.notes.iter().cloned());
        Ok(Done { restored: Some(report), notes })
    }

    /// Asks without a pause until the application is as fast as usual, or the limit comes.
    fn until_normal(&self, running: &mut Running, usual_ns: u64, start: Instant) -> Result<Course> {
        let mut course = Course::default();
        while start.elapsed() < self.plan.options.limit {
            uninterrupted()?;
            let mut answers = running.ask(WINDOW)?;
            course.requests += u64::from(WINDOW);
            course.wrong += answers.wrong;
            if p99(&mut answers.latencies_ns) as f64 <= usual_ns as f64 * NORMAL_TIMES {
                course.recovered_ns = Some(start.elapsed().as_nanos() as u64);
                break;
            }
        }
        Ok(course)
    }
}

/// The number of the disk below this directory, if the kernel counts its requests.
fn device_below(root: &Root, directory: &Path) -> Option<(u32, u32)> {
    let directory = directory.canonicalize().ok()?;
    let mounts = mounts::read(root);
    let mount = mounts::behind(&mounts, &directory)?;
    let device = (mount.major, mount.minor);
    diskstats::of(root, device.0, device.1).map(|_| device)
}

fn name_of(root: &Root, (major, minor): (u32, u32)) -> String {
    let name = machine::block::name_of_device(root, major, minor);
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

/// The name of the disk below this directory, or its number.
pub(super) fn disk_of(root: &Root, directory: &Path) -> Option<String> {
    device_below(root, directory).map(|device| name_of(root, device))
}

/// What came of asking until all was as usual.
#[derive(Debug, Default)]
struct Course {
    recovered_ns: Option<u64>,
    requests: u64,
    wrong: u64,
}

fn uninterrupted() -> Result<()> {
    if sys::interrupt::requested() { Err(Error::failed("interrupted")) } else { Ok(()) }
}

fn wait_for_quiet(watch: &DiskWatch) -> (Option<u64>, Option<u64>) {
    let start = Instant::now();
    while watch.back_to_normal().0.is_none() && start.elapsed() < QUIET_PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    watch.back_to_normal()
}

fn present_bytes(report: &restore::RestoreReport) -> u64 {
    let page_bytes = sys::process::page_bytes() as u64;
    report.parts.iter().map(|part| part.present_pages * page_bytes).sum()
}

/// The 99th percentile: at most 1 % took longer.
fn p99(latencies_ns: &mut [u64]) -> u64 {
    latencies_ns.sort_unstable();
    let index = (latencies_ns.len() * 99).div_ceil(100).saturating_sub(1);
    latencies_ns.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_slower() {
        assert_eq!(p99(&mut (1..=200).rev().collect::<Vec<_>>()), 198);
        assert_eq!(p99(&mut [7]), 7);
    }

    #[test]
    fn ways_have_names() {
        assert_eq!(RecoveryMethod::named("restore"), Some(RecoveryMethod::Restore));
        assert_eq!(RecoveryMethod::named("prayer"), None);
    }
}
