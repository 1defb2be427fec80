//! What `terrace undo` can be told.
//! It needs nothing: a journal says what to put back.

use clap::Args;

/// Put back settings that --apply changed and a crash left so
///
/// A run puts back by itself what it changed. What is left after a crash stands in a journal, and this puts it back, unless
/// a run still needs it or somebody else has changed it since.
#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// Only list what would be put back
    #[arg(long)]
    pub list: bool,
}
