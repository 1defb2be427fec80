//! Several programs measured in turn, round after round, each round beginning with another one.
//!
//! Whatever drifts or comes in bursts (clocks, neighbours, temperature) then meets all of them
//! alike, and none is always the one that runs after the same predecessor.

use super::ratio::{self, Ratio};
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
        for place in 0..programs.len() {
            let index = (place + round) % programs.len();
            let figures = programs[index]()?;
            let series = &mut all[index];
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
    fn each_round_begins_with_another_program() {
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
        assert_eq!(order.into_inner(), "abcbcacab");
        assert_eq!(all[0], [vec![1.0, 6.0, 8.0], vec![0.5; 3]]);
        assert_eq!(all[2][0], [3.0, 5.0, 7.0]);
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
