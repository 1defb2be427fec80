//! The suite `memory`: copies and load latency against peer programs.
//!
//! `copy` and `latency` measure and compare; `mbw`, `stream`, `tinymembench` and `multichase` run
//! one peer each and read what it prints. Every rate counts a copied byte once, in GB/s of 10^9
//! bytes, whatever the peer's own habit is.

use super::peer::Peer;
use super::record::Record;
use super::{Request, record};
use crate::error::Error;
use crate::workspace;

pub mod copy;
pub mod latency;
mod mbw;
mod multichase;
mod stream;
mod tinymembench;

/// Runs the parts that `request` asks for.
///
/// # Errors
/// When a program is missing, fails, or prints what cannot be read.
pub fn run(request: &Request) -> Result<Record, Error> {
    let root = workspace::current_root()?;
    let terrace = Peer::terrace(&root)?;
    let mut record = record::Record::start(&name(request));
    record.programs.push(terrace.clone());
    if request.includes("copy") {
        copy::measure(request, &terrace, &mut record)?;
    }
    if request.includes("latency") {
        latency::measure(request, &terrace, &mut record)?;
    }
    record.finish();
    Ok(record)
}

/// The record's suite: a part that ran alone is named, so that its file does not pass for the
/// whole.
fn name(request: &Request) -> String {
    match &request.part {
        Some(part) => format!("{} {part}", request.suite.name),
        None => request.suite.name.to_owned(),
    }
}
