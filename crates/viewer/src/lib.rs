//! What a browser draws: a recording or a survey as JSON and packed columns, and the pages.
//!
//! [`view`] packs a recording with its explanation (`terrace.view/1`, docs/view.md); [`page`]
//! puts data and the files of `web/` into one page that needs no network; [`survey_page`] is
//! the page of a survey. A page draws
//! exactly the JSON that `--json` prints; nothing here judges or computes a figure.

pub mod page;
pub mod survey_page;
pub mod view;

pub use page::{Data, page};
pub use survey_page::survey_page;
pub use view::View;
