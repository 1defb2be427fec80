//! The options of `terrace undo`.
//! It needs none: a journal says what to put back.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// Only list what would be put back
    #[arg(long)]
    pub list: bool,
}
