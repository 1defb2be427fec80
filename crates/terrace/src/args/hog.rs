//! Options of `terrace hog`: how much memory, how often, and when to stop. The probe checks that
//! the machine has it.

use super::choice;
use super::shared::FormArgs;
use super::value;
use clap::Args;
use measure::pressure::{HogTouch, PageContent};
use model::Bytes;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct HogArgs {
    /// Memory of each hog
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Hogs at the same time
    #[arg(long, value_name = "N", default_value = "2", value_parser = value::hogs, allow_hyphen_values = true)]
    pub count: u32,

    /// How often they are started
    #[arg(long, value_name = "N", default_value = "25", value_parser = value::repeats, allow_hyphen_values = true)]
    pub repeat: u32,

    /// How long each holds its memory
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = value::hold, allow_hyphen_values = true)]
    pub hold: Duration,

    /// What the memory is filled with
    #[arg(long, value_name = "WHAT", value_parser = choice::CONTENTS, default_value = "random")]
    pub content: PageContent,

    /// Touch the memory once, or in a loop while it is held
    #[arg(long, value_name = "HOW", value_parser = choice::TOUCHES, default_value = "once")]
    pub touch: HogTouch,

    /// Put the hogs into their own control group with this memory limit
    #[arg(long, value_name = "LIMIT", value_parser = value::size, allow_hyphen_values = true)]
    pub in_cgroup: Option<Bytes>,

    /// Stop growing once tasks wait for memory for this share of the time, in their group or on the
    /// machine
    #[arg(long, value_name = "PERCENT", value_parser = value::share, allow_hyphen_values = true)]
    pub until_psi: Option<u32>,

    /// Start them even if other processes may be killed for it
    #[arg(long)]
    pub force: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
