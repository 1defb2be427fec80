//! The suspects: one file per rule, each either blames, clears, or says what it lacks.

use super::View;
use super::accounting::Accounts;
use model::Evidence;
use model::explanation::{Cause, Cleared, Unseen};

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The recording.
    pub view: &'a View<'a>,
    /// Its time.
    pub accounts: &'a Accounts,
}

/// What a rule says.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It hurt; one cause for each device, group or the like.
    Blame(Vec<Cause>),
    /// It was checked and is not to blame; the number that clears it.
    Clear(Evidence),
    /// It does not apply here: there is no swap, no group, no quota.
    Silent,
    /// It could not be judged.
    Unseen {
        /// Why.
        why: String,
        /// What would make it visible.
        remedy: Option<String>,
    },
}

/// One suspect.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A stable name for scripts: `cache_too_small`.
    pub id: &'static str,
    /// Its name under "not to blame": `page cache size`.
    pub suspect: &'static str,
    /// Judges.
    pub check: fn(&Case) -> Verdict,
}

/// Every suspect, in the order in which cleared ones are listed.
pub const RULES: &[Rule] = &[];

/// What all rules together say.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// What hurt, worst first.
    pub causes: Vec<Cause>,
    /// Who is not to blame.
    pub cleared: Vec<Cleared>,
    /// Who could not be judged.
    pub unseen: Vec<Unseen>,
}

/// Asks every rule.
#[must_use]
pub fn judge(case: &Case) -> Judged {
    let _ = case;
    Judged::default()
}
