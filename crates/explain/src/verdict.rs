//! What a suspect is found to be: the one verdict of the rules of a survey, of a recording and of
//! a RAM disk, and the one place that sorts verdicts into lists.
//!
//! A rule returns its finding, or why it has none. Whether one of two results is better than the
//! other is another question: `comparison`.

use model::Evidence;

/// What a rule concludes: what it found, or why it found nothing.
pub type Verdict<F> = Result<F, NoFinding>;

/// Why a rule has no finding.
#[derive(Clone, Debug, PartialEq)]
pub enum NoFinding {
    /// It was checked and is not a cause, by this number.
    Cleared(Evidence),
    /// Nothing is odd, or it does not apply here: there is no swap, no group, no quota.
    Nothing,
    /// It could not be judged.
    Unseen {
        /// Why.
        why: String,
        /// What would make it visible.
        remedy: Option<String>,
    },
}

/// Cleared by this number; nothing is said without one.
pub(crate) fn clear<F>(evidence: Option<Evidence>) -> Verdict<F> {
    Err(evidence.map_or(NoFinding::Nothing, NoFinding::Cleared))
}

/// Cleared by a count of these: `refaults`.
pub(crate) fn clear_count<F>(evidence: Option<Evidence>, of: &str) -> Verdict<F> {
    clear(evidence.map(|evidence| evidence.counting(of)))
}

/// The reason why it could not be judged, without a remedy.
impl From<&str> for NoFinding {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

impl From<String> for NoFinding {
    fn from(why: String) -> Self {
        Self::Unseen { why, remedy: None }
    }
}

/// The verdicts on several suspects, in the order in which they were asked.
#[derive(Debug)]
pub(crate) struct Verdicts<S, F> {
    /// Found.
    pub found: Vec<(S, F)>,
    /// Checked and excluded, by a number.
    pub cleared: Vec<(S, Evidence)>,
    /// Nothing to say of.
    pub nothing: Vec<S>,
    /// Not judged: why, and what would make it visible.
    pub unseen: Vec<(S, String, Option<String>)>,
}

impl<S, F> FromIterator<(S, Verdict<F>)> for Verdicts<S, F> {
    fn from_iter<I: IntoIterator<Item = (S, Verdict<F>)>>(verdicts: I) -> Self {
        let mut sorted = Self {
            found: Vec::new(),
            cleared: Vec::new(),
            nothing: Vec::new(),
            unseen: Vec::new(),
        };
        for (suspect, verdict) in verdicts {
            match verdict {
                Ok(finding) => sorted.found.push((suspect, finding)),
                Err(NoFinding::Cleared(evidence)) => sorted.cleared.push((suspect, evidence)),
                Err(NoFinding::Nothing) => sorted.nothing.push(suspect),
                Err(NoFinding::Unseen { why, remedy }) => {
                    sorted.unseen.push((suspect, why, remedy))
                }
            }
        }
        sorted
    }
}
