//! Options of `terrace measure memlat`: sizes, pages, orders.
//! The probe has the default sizes.

use super::choice;
use super::probe::ProbeArgs;
use super::value;
use clap::Args;
use measure::memory::PageKind;
use model::{Bytes, ChaseOrder};

#[derive(Clone, Debug, Args)]
pub struct MemlatArgs {
    /// Sizes of the buffer (default: steps from 4 KiB to 1 GiB)
    #[arg(long = "size", value_name = "SIZES", value_delimiter = ',', value_parser = value::size, allow_hyphen_values = true)]
    pub sizes: Vec<Bytes>,

    /// Page sizes of the buffer
    #[arg(
        long,
        value_name = "PAGES",
        value_delimiter = ',',
        value_parser = choice::PAGES,
        default_value = "4k,thp"
    )]
    pub pages: Vec<PageKind>,

    /// Order of the loads
    #[arg(
        long = "pattern",
        value_name = "PATTERNS",
        value_delimiter = ',',
        value_parser = choice::ORDERS,
        default_value = "random,in-page"
    )]
    pub patterns: Vec<ChaseOrder>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
