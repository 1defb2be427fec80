//! Which reports of progress become spans `progress`: one a second, and the last one.
//!
//! A program reports as often as it likes. `compare --align progress` takes work to go on evenly
//! between two spans, so more of them would only make the file longer.

use model::duration::SECOND_NS;

/// What was reported, and when a span was made of it.
#[derive(Debug, Default)]
pub(super) struct ProgressNotes {
    /// When the last span was made.
    noted_ns: Option<u64>,
    /// The last report since then, and when it came.
    rest: Option<(String, u64)>,
}

impl ProgressNotes {
    /// The kind of these spans.
    pub const KIND: &str = "progress";

    /// Takes a report; gives it back if a span is due.
    pub fn take_due(&mut self, text: String, at_ns: u64) -> Option<String> {
        let is_due = self.noted_ns.is_none_or(|noted| at_ns.saturating_sub(noted) >= SECOND_NS);
        if is_due {
            (self.noted_ns, self.rest) = (Some(at_ns), None);
            return Some(text);
        }
        self.rest = Some((text, at_ns));
        None
    }

    /// The last report, if no span was made of it.
    pub fn take_rest(&mut self) -> Option<(String, u64)> {
        self.rest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_and_the_last_one() {
        let mut notes = ProgressNotes::default();
        let mut due = Vec::new();
        for tenth in 0..25u64 {
            due.extend(notes.take_due(format!("{tenth} items"), tenth * SECOND_NS / 10));
        }
        assert_eq!(due, ["0 items", "10 items", "20 items"]);
        assert_eq!(notes.take_rest(), Some(("24 items".to_owned(), 24 * SECOND_NS / 10)));
        assert_eq!(notes.take_rest(), None);
    }
}
