//! Options of `terrace undo`.
//! The journal says what to restore.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// Only list what would be put back
    #[arg(long)]
    pub list: bool,
}
