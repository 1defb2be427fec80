//! Options of `terrace measure memcpy`. Names of methods stay text here: `memops` knows which
//! exist.

use super::choice;
use super::probe::ProbeArgs;
use super::value::{self, Offset};
use clap::Args;
use measure::memory::PageKind;
use memops::Operation;
use model::Bytes;

#[derive(Clone, Debug, Args)]
pub struct MemcpyArgs {
    /// Methods to run (default: all that this processor has; --list names them)
    #[arg(value_name = "METHOD", value_delimiter = ',')]
    pub named: Vec<String>,

    /// Methods to run, the same as METHOD
    #[arg(long = "method", value_name = "METHODS", value_delimiter = ',')]
    pub methods: Vec<String>,

    /// List all methods, and why some are absent here
    #[arg(long, conflicts_with_all = ["disassemble", "classic"])]
    pub list: bool,

    /// Sizes of the buffer (default: 16k,256k,4m,16m,256m)
    #[arg(long = "size", value_name = "SIZES", value_delimiter = ',', value_parser = value::size, allow_hyphen_values = true)]
    pub sizes: Vec<Bytes>,

    /// What to measure (default: copy)
    #[arg(
        long = "operation",
        value_name = "OPERATIONS",
        value_delimiter = ',',
        value_parser = choice::OPERATIONS
    )]
    pub operations: Vec<Operation>,

    /// Work through the buffer in blocks of this size (default: all at once)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub block: Option<Bytes>,

    /// Walk the columns of a matrix: every Nth element, for the element methods
    #[arg(long, value_name = "ELEMENTS", default_value = "0", value_parser = value::stride, allow_hyphen_values = true)]
    pub stride: usize,

    /// Bytes that the target (and the source) start behind a page boundary
    #[arg(long, value_name = "TARGET[,SOURCE]", default_value = "0", value_parser = value::offset, allow_hyphen_values = true)]
    pub offset: Offset,

    /// Threads, each with buffers of its own on a processor of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::threads, allow_hyphen_values = true)]
    pub threads: usize,

    /// Page size of the buffers; what the kernel granted is checked and shown
    #[arg(long, value_parser = choice::PAGES, value_name = "PAGES", default_value = "thp")]
    pub pages: PageKind,

    /// Print the loop of METHOD as it is in memory, and measure nothing
    #[arg(long, value_name = "METHOD", conflicts_with = "classic")]
    pub disassemble: Option<String>,

    /// Run as the program of 2001, from its own arguments: "[-f] [-w] [-s] [-p] [-csv] SIZE COUNT
    /// [METHOD...]"
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        conflicts_with_all = ["named", "methods", "sizes", "operations", "block", "stride", "offset", "threads", "pages"]
    )]
    pub classic: Option<String>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
