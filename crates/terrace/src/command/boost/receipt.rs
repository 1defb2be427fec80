//! `terrace boost receipt`: reads the counters of the caches that exist, and judges each by the
//! rule of `explain`.

use crate::args::When;
use crate::args::boost::ReceiptArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{OutputTarget, Page, json, receipt as shown};
use explain::receipt::judge;
use machine::{Root, caches};
use model::cache_receipt::{CacheReceipts, RECEIPT_SCHEMA};
use std::process::{Command, Stdio};

/// Reads, judges, and delivers.
///
/// # Errors
/// If it is not written.
pub fn receipt(args: &ReceiptArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let receipts = receipts(&Root::system());
    let text = if args.json { json::render(&receipts)? } else { shown::page(&receipts, page) };
    target.write(&text)?;
    Ok(Exit::Done)
}

fn receipts(root: &Root) -> CacheReceipts {
    let mut unseen = Vec::new();
    let mut counters = caches::bcache(root);
    // Without --noflush `status` makes a cache write its metadata.
    match (dmsetup(&["status", "--noflush"]), dmsetup(&["table"])) {
        (Ok(status), Ok(table)) => counters.extend(caches::dm_cache(root, &status, &table)),
        (Err(why), _) | (_, Err(why)) => unseen.push(format!("dm-cache: {why}")),
    }
    counters.extend(caches::l2arc(root));
    let caches = counters.into_iter().map(judge).collect();
    CacheReceipts { schema: RECEIPT_SCHEMA, caches, unseen }
}

/// The lines of `dmsetup` about caches, or why there are none.
fn dmsetup(words: &[&str]) -> std::result::Result<String, String> {
    if sys::process::effective_uid() != 0 {
        return Err("`dmsetup` answers only root".to_owned());
    }
    let mut command = Command::new("dmsetup");
    command.args(words).args(["--target", "cache"]).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("`dmsetup` cannot be run: {}", sys::plain_reason(&error)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let said =
            errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("without a reason");
        return Err(format!("`dmsetup {}` failed: {}", words.join(" "), said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
