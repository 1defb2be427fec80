//! Options of `terrace survey`. None is needed: without any, it measures every level
//! and prints one page.

use super::shared::FormArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct SurveyArgs {
    /// Take at most 15 seconds instead of 60; the error bars are wider
    #[arg(long)]
    pub quick: bool,

    /// Also measure the device behind this directory (repeatable)
    #[arg(long = "path", value_name = "DIR")]
    pub paths: Vec<PathBuf>,

    /// Do not keep the figures of this survey for `compare`
    #[arg(long)]
    pub no_keep: bool,

    /// Show for each finding also the evidence, the risk and how to confirm it, and which checks
    /// could not be made
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub details: bool,

    /// Write the survey also to FILE as one page for a browser, with pictures; it needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Leave host name, user names, mount points and paths in the page, which otherwise has
    /// stand-ins for them
    #[arg(long, requires = "html", help_heading = "Output")]
    pub no_redact: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
