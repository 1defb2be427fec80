//! What `terrace measure memlat` can be told: sizes, pages, orders. The usual ladder of
//! sizes is the probe's.

use super::memcpy::Pages;
use super::probe::ProbeArgs;
use super::value;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
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
        value_enum,
        default_value = "4k,thp"
    )]
    pub pages: Vec<Pages>,

    /// Order of the loads
    #[arg(
        long = "pattern",
        value_name = "PATTERNS",
        value_delimiter = ',',
        value_parser = chase_order(),
        default_value = "random,in-page"
    )]
    pub patterns: Vec<ChaseOrder>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}

/// Reads the name of an order; the help lists them with their meaning.
fn chase_order() -> impl TypedValueParser<Value = ChaseOrder> {
    let value = |order: ChaseOrder, help: &'static str| PossibleValue::new(order.name()).help(help);
    PossibleValuesParser::new([
        value(
            ChaseOrder::Random,
            "At random over the whole buffer: each load may walk the page table",
        ),
        value(
            ChaseOrder::InPage,
            "At random within a page, page after page: the page walk is shared by all lines of the page",
        ),
    ])
    .map(|name| {
        if name == ChaseOrder::InPage.name() {
            ChaseOrder::InPage
        } else {
            ChaseOrder::Random
        }
    })
}
