//! Several programs measured in turn, round after round, each round beginning with another one.
//!
//! Whatever drifts or comes in bursts (clocks, neighbours, temperature) then meets all of them
//! alike, and none is always the one that runs after the same predecessor.

use super::ratio::{self, Ratio};
use super::steps::Steps;
use crate::error::Error;

/// One program of a comparison: runs it once and gives the figures that it measured.
pub type Turn<'a> = Box<dyn FnMut() -> Result<Vec<f64>, Error> + 'a>;

/// What is taken of several turns: their median, or the best.
pub type Pick = fn(Ratio) -> f64;

/// Gives each of `programs` one turn per round; the figures, as `[program][figure][round]`.
///
/// `what` is shown with the round on standard error: a bench takes minutes.
///
/// # Errors
/// The first error of a turn ends it; [`Error::Malformed`] when a program gives another number of
/// figures than before.
pub fn rotate(
    what: &str,
    rounds: usize,
    programs: &mut [Turn<'_>],
) -> Result<Vec<Vec<Vec<f64>>>, Error> {
    let mut all: Vec<Vec<Vec<f64>>> = vec![Vec::new(); programs.len()];
    for round in 0..rounds {
        eprintln!("{what}: {} of {rounds}", round + 1);
        for (series, figures) in all.iter_mut().zip(one_round(round, programs)?) {
            series.resize(series.len().max(figures.len()), Vec::new());
            for (values, figure) in series.iter_mut().zip(figures) {
                values.push(figure);
            }
        }
    }
    let is_whole = |series: &Vec<Vec<f64>>| series.iter().all(|values| values.len() == rounds);
    if all.iter().all(is_whole) {
        return Ok(all);
    }
    Err(Error::Malformed {
        what: "a round of measurements",
        why: format!("{what}: a figure is missing in some rounds"),
    })
}

/// As [`rotate`], with as many figures of each program as `steps` has for all of them. Each round
/// is kept there: what was interrupted goes on with the next one.
///
/// # Errors
/// As [`rotate`], and those of [`Steps::get`].
pub(super) fn rotate_kept(
    what: &str,
    rounds: usize,
    programs: &mut [Turn<'_>],
    steps: &mut Steps,
) -> Result<Vec<Vec<Vec<f64>>>, Error> {
    let figures = steps.figures() / programs.len().max(1);
    let mut all = vec![vec![Vec::new(); figures]; programs.len()];
    for round in 0..rounds {
        eprintln!("{what}: {} of {rounds}", round + 1);
        let step = steps.get(round, || Ok((one_round(round, programs)?.concat(), Vec::new())))?;
        for (values, figure) in all.iter_mut().flatten().zip(&step.values) {
            values.push(*figure);
        }
    }
    Ok(all)
}

/// One turn of each program; the figures, as `[program][figure]`. Every second round is the one
/// before in reverse: what a program leaves (a disk's spent burst, a warm cache) is not always met
/// by the same next one.
fn one_round(round: usize, programs: &mut [Turn<'_>]) -> Result<Vec<Vec<f64>>, Error> {
    let count = programs.len();
    let mut all = vec![Vec::new(); count];
    for turn in 0..count {
        let place = if round.is_multiple_of(2) { turn } else { count - 1 - turn };
        let index = (place + round / 2) % count;
        all[index] = programs[index]()?;
    }
    Ok(all)
}

/// One figure for every `turns` values, where an alternation is several short turns of each
/// program.
pub fn grouped(values: &[f64], turns: usize, pick: Pick) -> Vec<f64> {
    let groups = values.chunks(turns.max(1));
    groups.filter_map(ratio::summary).map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn rounds_begin_with_each_program_and_every_second_one_goes_back() {
        let order = RefCell::new(String::new());
        let turn = |name: char| -> Turn<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                Ok(vec![order.borrow().len() as f64, 0.5])
            })
        };
        let mut programs = [turn('a'), turn('b'), turn('c')];
        let all = rotate("test", 3, &mut programs).unwrap();
        drop(programs);
        assert_eq!(order.into_inner(), "abccbabca");
        assert_eq!(all[0], [vec![1.0, 6.0, 9.0], vec![0.5; 3]]);
        assert_eq!(all[2][0], [3.0, 4.0, 8.0]);
    }

    #[test]
    fn an_interrupted_comparison_goes_on_with_the_next_round() {
        let directory = testkit::TempDir::new();
        let program = directory.join("program");
        std::fs::write(&program, "one").unwrap();
        let open = || Steps::open(directory.path(), "part", &program, "test", 4).unwrap();
        let count = std::cell::Cell::new(0.0);
        let turns_until = |last: f64| -> Vec<Turn<'_>> {
            let count = &count;
            let turn = |factor: f64| -> Turn<'_> {
                Box::new(move || {
                    count.set(count.get() + 1.0);
                    let is_past = count.get() > last;
                    let cut = || Err(Error::Failed("cut".to_owned()));
                    if is_past { cut() } else { Ok(vec![count.get(), factor * count.get()]) }
                })
            };
            vec![turn(10.0), turn(100.0)]
        };
        let cut = rotate_kept("test", 3, &mut turns_until(3.0), &mut open()).unwrap_err();
        assert_eq!(cut.to_string(), "cut");
        let mut steps = open();
        let all = rotate_kept("test", 3, &mut turns_until(9.0), &mut steps).unwrap();
        // The fourth turn ended the first try, amid its second round.
        assert_eq!(all[0], [vec![1.0, 6.0, 8.0], vec![10.0, 60.0, 80.0]]);
        assert_eq!(all[1], [vec![2.0, 5.0, 7.0], vec![200.0, 500.0, 700.0]]);
    }

    #[test]
    fn a_figure_that_comes_and_goes_is_an_error() {
        let mut count = 0;
        let turn: Turn<'_> = Box::new(move || {
            count += 1;
            Ok(vec![1.0; count])
        });
        let error = rotate("test", 2, &mut [turn]).unwrap_err();
        assert!(error.to_string().contains("missing in some rounds"), "{error}");
    }

    #[test]
    fn a_group_of_turns_is_one_figure() {
        let values = [3.0, 1.0, 2.0, 9.0, 7.0, 8.0];
        assert_eq!(grouped(&values, 3, |turns| turns.median), [2.0, 8.0]);
        assert_eq!(grouped(&values, 3, |turns| turns.min), [1.0, 7.0]);
    }

    #[test]
    fn an_error_ends_it() {
        let turn: Turn<'_> = Box::new(|| Err(Error::Failed("on purpose".to_owned())));
        assert_eq!(rotate("test", 2, &mut [turn]).unwrap_err().to_string(), "on purpose");
    }
}
