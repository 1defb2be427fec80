//! Compares two series of measurements taken in turn, pair by pair.
//!
//! What disturbs a machine for seconds disturbs both halves of a pair, so the ratio of a pair is
//! steadier than either figure. The median of the ratios is the result; the extremes say how steady
//! it was.

use std::fmt;

use crate::error::Error;

/// How one series compares with another: ours divided by theirs, per pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The median of the pairs; of an even number of pairs, the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many pairs there were.
    pub pairs: usize,
}

/// Why two series cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RatioError {
    /// There is no pair.
    Empty,
    /// One series is longer: some pair lacks a half.
    Unpaired {
        /// Values of ours.
        ours: usize,
        /// Values of theirs.
        theirs: usize,
    },
    /// A value is not a positive, finite number, so nothing was measured.
    NotMeasured(f64),
}

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("nothing to compare"),
            Self::Unpaired { ours, theirs } => write!(f, "{ours} values against {theirs}"),
            Self::NotMeasured(value) => write!(f, "{value} is not a measurement"),
        }
    }
}

impl std::error::Error for RatioError {}

impl RatioError {
    /// The same as an error of this crate: a program measured nothing that can be compared.
    pub fn malformed(self) -> Error {
        Error::Malformed { what: "the values to compare", why: self.to_string() }
    }
}

/// The ratios `ours[i] / theirs[i]`, summed up.
///
/// # Errors
/// When there is no pair, a pair lacks a half, or a value is not above zero and finite.
pub fn pairwise(ours: &[f64], theirs: &[f64]) -> Result<Ratio, RatioError> {
    if ours.len() != theirs.len() {
        return Err(RatioError::Unpaired { ours: ours.len(), theirs: theirs.len() });
    }
    let wrong = ours.iter().chain(theirs).find(|value| !(value.is_finite() && **value > 0.0));
    if let Some(value) = wrong {
        return Err(RatioError::NotMeasured(*value));
    }
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    summary(&ratios).ok_or(RatioError::Empty)
}

/// Median, smallest and largest of `values`; `None` if it is empty.
pub fn summary(values: &[f64]) -> Option<Ratio> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    };
    Some(Ratio { median, min, max, pairs: sorted.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared_before_they_are_summed_up() {
        // The second pair ran on a machine half as fast: its ratio is what the others' is.
        let ratio = pairwise(&[30.0, 15.0, 33.0], &[20.0, 10.0, 20.0]).unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max, ratio.pairs), (1.5, 1.5, 1.65, 3));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(summary(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn what_is_no_pair_of_measurements_is_an_error() {
        assert_eq!(pairwise(&[], &[]), Err(RatioError::Empty));
        let unpaired = RatioError::Unpaired { ours: 1, theirs: 2 };
        assert_eq!(pairwise(&[1.0], &[1.0, 2.0]), Err(unpaired));
        assert_eq!(pairwise(&[1.0], &[0.0]), Err(RatioError::NotMeasured(0.0)));
        assert!(matches!(pairwise(&[f64::NAN], &[1.0]), Err(RatioError::NotMeasured(_))));
    }
}
