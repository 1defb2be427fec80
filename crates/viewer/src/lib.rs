//! What a browser draws: a recording or a survey as JSON and packed columns, and the pages.
//!
//! [`view`] packs a recording with its explanation (`terrace.view/1`, docs/view.md); [`mod@page`]
//! puts data and the files of `web/` into one page that needs no network; [`server`] gives the
//! page to a browser on this machine, and [`live`] what was recorded since. The page draws
//! exactly the JSON that `--json` prints; nothing here judges or computes a figure.

pub mod assets;
pub mod live;
mod meanings;
pub mod page;
pub mod recording;
pub mod server;
pub mod view;

pub use meanings::Meanings;
pub use page::{Data, page};
pub use server::{Server, Site};
pub use view::View;
