//! How a rule says that something hurt: the parts of a cause, with defaults.
//!
//! It only puts words and numbers together; whether to blame is each rule's own affair.

use super::Verdict;
use model::explanation::Cause;
use model::{Evidence, Finding, Grade};

/// A cause in the making.
#[derive(Clone, Debug)]
pub(super) struct CauseBuilder {
    cause: Cause,
}

impl CauseBuilder {
    /// A claim of one line, the thread time that it accounts for, and how it is known.
    pub(super) fn new(
        id: &str,
        ns: Option<u64>,
        grade: Grade,
        claim: impl Into<String>,
        evidence: Vec<Evidence>,
    ) -> Self {
        let finding = Finding {
            id: id.to_owned(),
            claim: claim.into(),
            tier: None,
            evidence,
            grade,
            remedy: None,
            confirm: None,
        };
        Self { cause: Cause { finding, ns, within_previous: false, span: None } }
    }

    /// What to do, with its risk.
    pub(super) fn remedy(mut self, text: impl Into<String>) -> Self {
        self.cause.finding.remedy = Some(text.into());
        self
    }

    /// The command that would confirm it.
    pub(super) fn confirm(mut self, command: impl Into<String>) -> Self {
        self.cause.finding.confirm = Some(command.into());
        self
    }

    /// The verdict.
    pub(super) fn found(self) -> Verdict {
        Verdict::Found(vec![self.cause])
    }
}
