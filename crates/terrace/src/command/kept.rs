//! Surveys that are kept, so that `compare` knows how much this machine varies by itself.
//!
//! They lie in the user's state directory (XDG Base Directory Specification), a folder for each
//! machine and state of it, the last 20. Of a survey only the figures and the machine are kept:
//! no host name, no findings. Nothing is kept in a place that belongs to another user, as a
//! home directory does under some kinds of `sudo`.

use crate::output::Target;
use crate::output::json;
use model::survey::Survey;
use std::fs::{self, DirBuilder};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many of one machine. Picked: 190 pairs, of which noise is learnt well.
const MOST: usize = 20;

/// No survey is longer.
const MOST_BYTES: u64 = 4 << 20;

/// Keeps the figures of a survey. What to tell the user; `None` where there is no place.
pub fn keep(survey: &Survey) -> Option<String> {
    let place = place(survey)?;
    Some(match put(survey, &place) {
        Ok(number) => format!(
            "kept its figures as {number} of at most {MOST} of this machine in {}, for `terrace compare` (--no-keep keeps none)",
            place.display()
        ),
        Err(why) => format!("its figures are not kept for `terrace compare`: {why}"),
    })
}

/// The kept surveys of the machine that `survey` is of; none where they cannot be read.
pub fn of_machine(survey: &Survey) -> Vec<Survey> {
    let Some(place) = place(survey) else {
        return Vec::new();
    };
    let newest = files(&place).into_iter().rev().take(MOST);
    newest.filter_map(|path| read(&path)).collect()
}

fn read(path: &Path) -> Option<Survey> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The directory of the machine's surveys; `None` where this user has no state directory.
fn place(survey: &Survey) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let existing = state.ancestors().find_map(|path| fs::metadata(path).ok())?;
    let is_ours = existing.uid() == sys::process::effective_uid();
    let place = state
        .join("terrace/surveys")
        .join(survey.machine.fingerprint());
    is_ours.then_some(place)
}

/// Puts it there, and removes the oldest beyond [`MOST`]; how many there are then.
fn put(survey: &Survey, place: &Path) -> crate::error::Result<usize> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(place);
    made.map_err(|error| sys::Error::new("make", error).at(place))?;
    let name = format!("{:012}-{}.json", survey.started_unix_s, std::process::id());
    Target::of(Some(&place.join(name)))?.write(&json::render(&figures(survey))?)?;
    let files = files(place);
    let beyond = files.len().saturating_sub(MOST);
    // One that cannot be removed is one too many, and no harm.
    files[..beyond]
        .iter()
        .for_each(|old| drop(fs::remove_file(old)));
    Ok(files.len() - beyond)
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

/// The kept files, oldest first.
fn files(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_kept = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_kept).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    fn recorded(started_unix_s: u64) -> Survey {
        let text = include_str!("../../tests/fixtures/survey.json");
        let mut survey: Survey = serde_json::from_str(text).unwrap();
        survey.started_unix_s = started_unix_s;
        survey.machine.host = Some("secret".to_owned());
        survey
    }

    #[test]
    fn the_last_twenty_are_kept_without_names() {
        let directory = TempDir::new();
        let place = directory.join("a/b");
        for number in 1..=23 {
            let kept = put(&recorded(number), &place).unwrap();
            assert_eq!(kept, usize::min(number as usize, MOST));
        }
        let all: Vec<Survey> = files(&place).iter().filter_map(|path| read(path)).collect();
        assert_eq!(all.len(), MOST);
        assert_eq!((all[0].started_unix_s, all[19].started_unix_s), (4, 23));
        assert_eq!(all[0].tiers, recorded(4).tiers);
        assert!(
            all.iter()
                .all(|survey| survey.machine.host.is_none() && survey.findings.is_empty())
        );
        let mode = fs::metadata(&place).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_is_no_survey_is_passed_over() {
        let directory = TempDir::new();
        put(&recorded(1), directory.path()).unwrap();
        fs::write(directory.join("2.json"), "{").unwrap();
        fs::write(directory.join("notes.txt"), "x").unwrap();
        let files = files(directory.path());
        assert_eq!(files.len(), 2);
        assert_eq!(files.iter().filter_map(|path| read(path)).count(), 1);
    }
}
