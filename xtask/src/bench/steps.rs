//! What the steps of a part gave that takes long: kept after each, so that a part which was
//! interrupted goes on. A step counts only for the programs that gave it: `terrace` and this one,
//! which judges it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::record::Record;
use crate::error::Error;

/// What one step gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// Its number.
    number: usize,
    /// Its figures.
    pub(super) values: Vec<f64>,
    /// What is to be noted of it.
    notes: Vec<String>,
}

impl Step {
    /// Writes its notes to a record.
    pub(super) fn note_in(&self, record: &mut Record) {
        self.notes.iter().for_each(|note| record.note(note.clone()));
    }

    fn of(line: &Value) -> Option<Self> {
        let values = line["values"].as_array()?.iter().map(Value::as_f64);
        let notes = line["notes"].as_array()?.iter().map(|note| note.as_str().map(str::to_owned));
        Some(Self {
            number: line["number"].as_u64()?.try_into().ok()?,
            values: values.collect::<Option<_>>()?,
            notes: notes.collect::<Option<_>>()?,
        })
    }
}

/// The steps of a part.
#[derive(Debug)]
pub(super) struct Steps {
    path: PathBuf,
    key: String,
    done: Vec<Step>,
    /// How many figures a step has.
    figures: usize,
    /// Steps of earlier runs that were not done again.
    reused: usize,
}

impl Steps {
    /// Opens those of `name` below `target`, which `program` gives and this one judges, of so many
    /// `figures` each. `parameters` are whatever else makes a step another.
    ///
    /// # Errors
    /// When a program or the directory cannot be examined.
    pub(super) fn open(
        target: &Path,
        name: &str,
        program: &Path,
        parameters: &str,
        figures: usize,
    ) -> Result<Self, Error> {
        let judge = std::env::current_exe().map_err(Error::io("find", Path::new("xtask")))?;
        Self::open_judged(target, name, [program, &judge], parameters, figures)
    }

    fn open_judged(
        target: &Path,
        name: &str,
        programs: [&Path; 2],
        parameters: &str,
        figures: usize,
    ) -> Result<Self, Error> {
        let [program, judge] = programs;
        let key = format!("{}, judged by {}, {parameters}", build(program)?, build(judge)?);
        let directory = target.join("terrace-bench-steps");
        fs::create_dir_all(&directory).map_err(Error::io("make", &directory))?;
        let path = directory.join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that a kill cut short is not a step.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_key = lines.filter(|line| line["key"] == *key);
        let steps = of_key.filter_map(|line| Step::of(&line));
        let done = steps.filter(|step| step.values.len() == figures).collect();
        Ok(Self { path, key, done, figures, reused: 0 })
    }

    /// How many figures a step has.
    pub(super) const fn figures(&self) -> usize {
        self.figures
    }

    /// The step of this number: that of an earlier run, or what `run` gives, which is kept.
    ///
    /// # Errors
    /// As `run`, and for writing.
    pub(super) fn get(
        &mut self,
        number: usize,
        run: impl FnOnce() -> Result<(Vec<f64>, Vec<String>), Error>,
    ) -> Result<Step, Error> {
        if let Some(done) = self.done.iter().find(|step| step.number == number) {
            eprintln!("step {} was done by an earlier run", number + 1);
            self.reused += 1;
            return Ok(done.clone());
        }
        let (values, notes) = run()?;
        if values.len() != self.figures {
            let text = format!("a step gave {} figures, not {}", values.len(), self.figures);
            return Err(Error::Failed(text));
        }
        let step = Step { number, values, notes };
        let line = json!({
            "key": self.key,
            "number": number,
            "values": step.values,
            "notes": step.notes,
        });
        let opened = File::options().create(true).append(true).open(&self.path);
        // A first line end ends what a kill may have left.
        opened
            .and_then(|mut file| file.write_all(format!("\n{line}\n").as_bytes()))
            .map_err(Error::io("write", &self.path))?;
        self.done.push(step.clone());
        Ok(step)
    }

    /// Ends a part of so many steps, which are `what`: notes in `record` how many of them were not
    /// done again, and forgets all.
    pub(super) fn end(self, record: &mut Record, what: &str, all: usize) {
        if self.reused > 0 {
            record.note(format!("{} of {all} {what} were done by an earlier run", self.reused));
        }
        self.forget();
    }

    fn forget(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Which build of a program this is.
fn build(program: &Path) -> Result<String, Error> {
    let about = fs::metadata(program).map_err(Error::io("examine", program))?;
    let built = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let built_ns = built.map_or(0, |at| at.as_nanos());
    Ok(format!("{} bytes of {built_ns}", about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn a_step_that_was_done_is_not_done_again_unless_a_program_is_another() {
        let directory = TempDir::new();
        let [program, judge] = ["program", "judge"].map(|name| directory.join(name));
        fs::write(&program, "one").unwrap();
        fs::write(&judge, "one").unwrap();
        let programs = [program.as_path(), judge.as_path()];
        let open = || Steps::open_judged(directory.path(), "part", programs, "3 saves", 1).unwrap();
        let step = |values: f64| Ok((vec![values], vec!["note".to_owned()]));
        let mut steps = open();
        assert_eq!(steps.get(0, || step(1.0)).unwrap().values, [1.0]);
        // A kill cuts the next line.
        let mut file = File::options().append(true).open(&steps.path).unwrap();
        file.write_all(b"{\"key\":").unwrap();
        let mut again = open();
        assert_eq!(again.get(0, || panic!("it was done")).unwrap().notes, ["note"]);
        assert_eq!(again.get(1, || step(2.0)).unwrap().values, [2.0]);
        let mut again = open();
        assert_eq!(again.get(1, || panic!("it was done")).unwrap().values, [2.0]);
        assert_eq!(again.reused, 1);
        fs::write(&program, "other").unwrap();
        let mut other = open();
        assert_eq!((other.get(1, || step(3.0)).unwrap().values, other.reused), (vec![3.0], 0));
        fs::write(&judge, "other").unwrap();
        assert_eq!(open().get(1, || step(3.5)).unwrap().values, [3.5]);
        // Those of another form are none, and are not made.
        let two = || Steps::open_judged(directory.path(), "part", programs, "3 saves", 2).unwrap();
        assert_eq!(two().get(1, || Ok((vec![5.0, 6.0], vec![]))).unwrap().values, [5.0, 6.0]);
        assert!(two().get(2, || step(7.0)).is_err());
        again.forget();
        assert_eq!(open().get(0, || step(4.0)).unwrap().values, [4.0]);
    }
}
