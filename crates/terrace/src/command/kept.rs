//! Surveys that are kept, so that `compare` knows how much this machine varies by itself, and a
//! recording what new memory costs here.
//!
//! They lie in the user's state directory (XDG Base Directory Specification), a folder for each
//! machine and state of it, the last 20. Of a survey only the figures and the machine are kept:
//! no host name, no findings. Nothing is kept in a place that belongs to another user, as a
//! home directory does under some kinds of `sudo`.

use crate::output::OutputTarget;
use crate::output::json;
use model::machine::MachineFacts;
use model::recording::{NewMemoryPrice, SurveyedDevice};
use model::survey::Survey;
use model::{Tier, TierKind};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use sys::directory::Directory;

/// How many of one machine. Picked: 190 pairs, of which noise is learnt well.
const MOST: usize = 20;

/// No survey is longer.
const MOST_BYTES: u64 = 4 << 20;

/// Digits of the time in the name of a kept survey.
const TIME_DIGITS: usize = 12;

/// Keeps the figures of a survey. What to tell the user; `None` where there is no place.
pub fn keep(survey: &Survey) -> Option<String> {
    Some(keep_in(&state()?, survey))
}

fn keep_in(state: &Path, survey: &Survey) -> String {
    let path = path(state, &survey.machine);
    let kept = Directory::create_private(&path).map_err(Into::into);
    match kept.and_then(|place| put(survey, place)) {
        Ok(number) => format!(
            "kept its figures as {number} of at most {MOST} of this machine in {}, for `terrace compare` (--no-keep keeps none)",
            path.display()
        ),
        Err(why) => format!("its figures are not kept for `terrace compare`: {why}"),
    }
}

/// The kept surveys of the machine that `survey` is of; none where they cannot be read.
pub fn of_machine(survey: &Survey) -> Vec<Survey> {
    let path = state().map(|state| path(&state, &survey.machine));
    let place = path.and_then(|path| Directory::open_private(&path).ok());
    place.map(|place| newest(&place)).unwrap_or_default()
}

/// What new memory costs by the newest survey of `machine` that is kept and measured it.
pub fn new_memory_price(machine: &MachineFacts) -> Option<NewMemoryPrice> {
    price_in(&state()?, machine)
}

fn price_in(state: &Path, machine: &MachineFacts) -> Option<NewMemoryPrice> {
    let place = Directory::open_private(&path(state, machine)).ok()?;
    let names = names(&place).into_iter().rev();
    names.filter_map(|name| price(&read(&place, &name)?)).next()
}

/// What a survey has of it; a file that another program wrote may have any number.
fn price(survey: &Survey) -> Option<NewMemoryPrice> {
    let tier = survey.tiers.iter().find(|tier| tier.kind == TierKind::NewMemory)?;
    let latency = tier.latency_ns.as_ref()?;
    let page_ns = latency.median;
    let is_sound = page_ns.is_finite() && page_ns > 0.0;
    let (pages, surveyed_unix_s) = (latency.trials, survey.started_unix_s);
    is_sound.then_some(NewMemoryPrice { page_ns, pages, surveyed_unix_s })
}

/// How fast the devices of `machine` answer, each by the newest kept survey that measured it.
pub fn devices(machine: &MachineFacts) -> Vec<SurveyedDevice> {
    state().map(|state| devices_in(&state, machine)).unwrap_or_default()
}

fn devices_in(state: &Path, machine: &MachineFacts) -> Vec<SurveyedDevice> {
    let Ok(place) = Directory::open_private(&path(state, machine)) else {
        return Vec::new();
    };
    let mut known: Vec<SurveyedDevice> = Vec::new();
    for survey in newest(&place) {
        for device in survey.tiers.iter().filter_map(|tier| device(tier, &survey)) {
            if known.iter().all(|other| other.name != device.name) {
                known.push(device);
            }
        }
    }
    known
}

/// The tier of a device is called by its mount and its name: `/data vdb`.
fn device(tier: &Tier, survey: &Survey) -> Option<SurveyedDevice> {
    let latency = tier.latency_ns.as_ref().filter(|_| tier.kind == TierKind::Device)?;
    let p50_ns = latency.p50.unwrap_or(latency.median);
    let is_sound = p50_ns.is_finite() && p50_ns > 0.0;
    is_sound.then_some(SurveyedDevice {
        name: tier.name.split_whitespace().next_back()?.to_owned(),
        p50_ns,
        p99_ns: latency.p99.filter(|ns| ns.is_finite()),
        surveyed_unix_s: survey.started_unix_s,
    })
}

/// The newest [`MOST`] surveys in `place`.
fn newest(place: &Directory) -> Vec<Survey> {
    let names = names(place).into_iter().rev().take(MOST);
    names.filter_map(|name| read(place, &name)).collect()
}

fn read(place: &Directory, name: &OsString) -> Option<Survey> {
    let mut text = String::new();
    let file = place.open_regular(name).ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The directory of this user's state; `None` for a user without one.
pub(super) fn state() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// The directory of the surveys of one machine.
fn path(state: &Path, machine: &MachineFacts) -> PathBuf {
    let surveys = state.join("terrace/surveys");
    surveys.join(machine.fingerprint())
}

/// Puts it there, and removes the oldest beyond [`MOST`]; how many there are then.
fn put(survey: &Survey, place: Directory) -> crate::error::Result<usize> {
    let path = place.path().to_owned();
    let time = survey.started_unix_s;
    let name = format!("{time:0TIME_DIGITS$}-{}.json", std::process::id());
    OutputTarget::in_directory(place, &name).write(&json::render(&figures(survey))?)?;
    let place = Directory::open_private(&path)?;
    let names = names(&place);
    let beyond = names.len().saturating_sub(MOST);
    // One that cannot be removed is one too many, and no harm.
    names[..beyond].iter().for_each(|old| drop(place.remove(old)));
    Ok(names.len() - beyond)
}

/// What is kept of a survey: nothing that names a host, a file or a finding.
fn figures(survey: &Survey) -> Survey {
    let mut survey = survey.clone();
    survey.machine.host = None;
    survey.findings.clear();
    survey.curves = model::curves::Curves::default();
    survey.fine.clear();
    survey.unchecked.clear();
    survey.skipped.clear();
    survey
}

/// The names of the kept surveys, oldest first: only those that [`put`] gives.
fn names(place: &Directory) -> Vec<OsString> {
    let names = place.names().unwrap_or_default();
    let is_kept = |name: &OsString| name.to_str().is_some_and(is_kept);
    names.into_iter().filter(is_kept).collect()
}

/// Whether `name` is the time and the process of a survey, as in `000000000123-4567.json`.
fn is_kept(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = name.strip_suffix(".json");
    stem.and_then(|stem| stem.split_once('-'))
        .is_some_and(|(time, pid)| time.len() == TIME_DIGITS && is_number(time) && is_number(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Covers, Latency};
    use std::os::unix::fs::MetadataExt;
    use testkit::TempDir;

    fn recorded(started_unix_s: u64) -> Survey {
        let text = include_str!("../../tests/fixtures/survey.json");
        let mut survey: Survey = serde_json::from_str(text).unwrap();
        survey.started_unix_s = started_unix_s;
        survey.machine.host = Some("secret".to_owned());
        survey
    }

    #[test]
    fn the_price_of_new_memory_is_that_of_the_newest_survey_of_this_machine() {
        let parent = TempDir::new();
        let state = parent.join("state");
        let mut survey = recorded(100);
        assert_eq!(price_in(&state, &survey.machine), None);
        let tier = survey.tiers.iter_mut().find(|tier| tier.kind == TierKind::NewMemory);
        let latency = Latency { median: 9_500.0, trials: 131_072, ..latency() };
        tier.unwrap().latency_ns = Some(latency.clone());
        keep_in(&state, &survey);
        let price = NewMemoryPrice { page_ns: 9_500.0, pages: 131_072, surveyed_unix_s: 100 };
        assert_eq!(price_in(&state, &survey.machine), Some(price.clone()));
        // A newer one that did not measure it does not hide it; of another machine there is none.
        let mut newer = recorded(200);
        newer.tiers.retain(|tier| tier.kind != TierKind::NewMemory);
        keep_in(&state, &newer);
        assert_eq!(price_in(&state, &survey.machine), Some(price));
        let other = MachineFacts { online_cpus: 99, ..survey.machine.clone() };
        assert_eq!(price_in(&state, &other), None);
        // What was not measured is no price.
        survey.started_unix_s = 300;
        for tier in &mut survey.tiers {
            tier.latency_ns = Some(Latency { median: 0.0, ..latency.clone() });
        }
        keep_in(&state, &survey);
        assert_eq!(price_in(&state, &survey.machine).unwrap().surveyed_unix_s, 100);
    }

    #[test]
    fn devices_are_as_fast_as_the_newest_survey_of_each_measured() {
        let parent = TempDir::new();
        let state = parent.join("state");
        let survey = |started: u64, p50: f64, name: &str| {
            let mut survey = recorded(started);
            survey.tiers.retain(|tier| tier.kind == TierKind::Device);
            survey.tiers.truncate(1);
            survey.tiers[0].name = name.to_owned();
            let (p50, p99) = (Some(p50), Some(9.0 * p50));
            survey.tiers[0].latency_ns = Some(Latency { p50, p99, ..latency() });
            survey
        };
        let machine = recorded(0).machine;
        assert_eq!(devices_in(&state, &machine), []);
        for kept in [
            survey(100, 50_000.0, "/data  vdb"),
            survey(200, 60_000.0, "/  vda"),
            survey(300, 70_000.0, "/  vda"),
        ] {
            keep_in(&state, &kept);
        }
        let known = devices_in(&state, &machine);
        let shown: Vec<_> = known.iter().map(|one| (one.name.as_str(), one.p50_ns)).collect();
        assert_eq!(shown, [("vda", 70_000.0), ("vdb", 50_000.0)]);
        assert_eq!(known[0].p99_ns, Some(630_000.0));
    }

    fn latency() -> Latency {
        Latency {
            median: 0.0,
            p50: None,
            p99: None,
            low: None,
            high: None,
            trials: 0,
            discarded: 0,
            covers: Covers::WithinRun,
        }
    }

    #[test]
    fn the_last_twenty_are_kept_without_names() {
        let directory = TempDir::new();
        let place = || Directory::create_private(&directory.join("a/b")).unwrap();
        for number in 1..=23 {
            let kept = put(&recorded(number), place()).unwrap();
            assert_eq!(kept, usize::min(number as usize, MOST));
        }
        let mut all = newest(&place());
        all.reverse();
        assert_eq!(all.len(), MOST);
        assert_eq!((all[0].started_unix_s, all[19].started_unix_s), (4, 23));
        assert_eq!(all[0].tiers, recorded(4).tiers);
        assert!(
            all.iter().all(|survey| survey.machine.host.is_none() && survey.findings.is_empty())
        );
        let mode = std::fs::metadata(directory.join("a/b")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn only_names_that_it_gives_are_read_and_removed() {
        let directory = TempDir::new();
        let place = || Directory::create_private(directory.path()).unwrap();
        for number in 0..25 {
            std::fs::write(directory.join(format!("conf{number:02}.json")), "{}").unwrap();
        }
        std::fs::write(directory.join("000000000000-1.json"), "{").unwrap();
        for number in 1..=21 {
            put(&recorded(number), place()).unwrap();
        }
        assert_eq!(newest(&place()).len(), MOST);
        let names = directory.names();
        let foreign = names.iter().filter(|name| name.starts_with("conf"));
        assert_eq!(foreign.count(), 25);
        assert_eq!(names.len(), 25 + MOST);
    }

    #[test]
    fn a_name_has_a_time_and_a_process() {
        assert!(is_kept("000000000123-4567.json"));
        for other in ["conf.json", "123-4.json", "000000000123-.json", "x", "000000000123-1.txt"] {
            assert!(!is_kept(other), "{other}");
        }
    }

    #[test]
    fn as_root_no_link_of_another_user_leads_to_where_surveys_are_removed() {
        use std::os::unix::fs::{lchown, symlink};
        const OTHER: u32 = 65534;
        let parent = TempDir::new();
        let survey = recorded(1);
        let fingerprint = format!("terrace/surveys/{}", survey.machine.fingerprint());
        let victim = parent.join("victim");
        std::fs::create_dir(&victim).unwrap();
        for number in 0..25 {
            std::fs::write(victim.join(format!("{number:012}-1.json")), "{}").unwrap();
        }
        for (number, link) in ["", "terrace", "terrace/surveys", &fingerprint].iter().enumerate() {
            let state = parent.join(format!("state{number}"));
            let link = state.join(link);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            // `join("")` ends in a slash, which would name what the link leads to.
            let link: PathBuf = link.components().collect();
            symlink(&victim, &link).unwrap();
            let given = lchown(&link, Some(OTHER), Some(OTHER));
            if given.is_err() {
                return testkit::skip("root");
            }
            let said = keep_in(&state, &survey);
            assert!(said.contains("are not kept"), "{said}");
        }
        let left = std::fs::read_dir(&victim).unwrap().count();
        assert_eq!(left, 25);
        // Directories of another user are refused as well, where nothing is a link.
        let theirs = parent.join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(OTHER), None).unwrap();
        assert!(keep_in(&theirs, &survey).contains("belongs to another user"));
        assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
    }
}
