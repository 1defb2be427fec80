//! Where the time of a recording went.
//!
//! Four steps, each its own module: [`view`] cuts the window out of the recording;
//! [`accounting`] makes the bars, their of-which parts and the repairs; [`rules`] asks
//! every suspect; the assembly here orders what they said. Pure: series in, findings out.

pub mod accounting;
pub mod rules;
pub mod view;

use model::explanation::{Explanation, SCHEMA};
use model::recording::Recording;
pub use view::{View, Window};

/// Explains the part of `recording` that lies in `window`.
#[must_use]
pub fn explain(recording: &Recording, window: Window) -> Explanation {
    let view = View::new(recording, window);
    let accounts = accounting::account(&view);
    let judged = rules::judge(&rules::Case {
        view: &view,
        accounts: &accounts,
    });
    Explanation {
        schema: SCHEMA.to_owned(),
        bars: accounts.bars,
        of_which: accounts.of_which,
        repairs: accounts.repairs,
        findings: judged.causes,
        cleared: judged.cleared,
        unseen: judged.unseen,
        ..Explanation::default()
    }
}
