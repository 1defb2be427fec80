//! Options of `terrace import`: the output of another tool, and what it does not say itself. The
//! tool is recognised by the first lines, as a rule.

use super::{choice, value};
use clap::Args;
use record::import::Form;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The output of the tool: `sadf -j`, the JSON of fio, a log of fio, `vmstat N` or `iostat N`;
    /// `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The tool that wrote it, if its first lines do not show that
    #[arg(long, value_parser = choice::TOOLS, value_name = "TOOL")]
    pub from: Option<Form>,

    /// The time between two reports of vmstat or iostat without time stamps (-t); 1s if it is not
    /// given
    #[arg(long, value_name = "TIME", value_parser = value::budget)]
    pub interval: Option<Duration>,

    /// Where to
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}
