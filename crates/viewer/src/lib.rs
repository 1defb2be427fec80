//! What a browser draws: a recording or a survey as JSON and packed columns, and the pages.
//!
//! [`view`] packs a recording with its explanation (`terrace.view/1`, docs/view.md); [`mod@page`]
//! puts data and the files of `web/` into one page that needs no network; [`mod@survey_page`] is
//! the page of a survey, [`recording`] that of recordings, [`overlay`] what it holds of each of
//! many; [`mod@questions`] says what is drawn together, for a browser and for a terminal, and
//! [`who`] packs what single processes used.
//! [`server`] gives a page to a browser on this machine, and [`live`] what was recorded since. A
//! page draws exactly the JSON that `--json` prints; nothing here judges or computes a figure.

pub mod advise_page;
pub mod assets;
pub mod live;
mod meanings;
pub mod overlay;
pub mod page;
pub mod questions;
pub mod recording;
pub mod server;
pub mod survey_page;
pub mod view;
pub mod who;

pub use advise_page::advise_page;
pub use meanings::Meanings;
pub use page::{PageData, page};
pub use server::{Server, Site};
pub use survey_page::{survey_page, surveys_page};
pub use view::View;
