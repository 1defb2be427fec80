//! `terrace warm restore`: the request from what was typed, the rights that it takes, the plan,
//! the reads under an allowance, the receipt.

use super::super::deliver::{Activity, Delivery};
use super::super::must_exist;
use crate::args::When;
use crate::args::warm::{RestoreArgs, RestoreHowArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Report;
use crate::output::warm::RestoreReceipt;
use machine::Root;
use place::background::Limits;
use place::workingset::restore::{self, MemoryKind, RestoreMethod, RestoreRequest};
use place::workingset::snapshot;
use place::workingset::targets::Selection;
use sys::helper::HiddenCommand;
use sys::process::{Capability, has_capability};

/// Restores, or only plans to, and delivers the receipt.
///
/// # Errors
/// What makes no sense, what this user may not do, what is not there.
pub fn restore(args: &RestoreArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let request = request(args, &root)?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        activity.display("looking where everything lies");
        carry_out(args, &request, &root, activity)
    })
}

fn request(args: &RestoreArgs, root: &Root) -> Result<RestoreRequest> {
    let selection = super::selection(&args.whose);
    if selection.is_none() && args.file.is_none() && args.metadata.is_empty() {
        let text =
            "whose memory? --pid PID, --cgroup GROUP, --app NAME, --all, or a snapshot's FILE";
        return Err(Error::usage(text));
    }
    for path in args.metadata.iter().chain(&args.file) {
        must_exist(path)?;
    }
    let wanted = wanted(args, selection.is_some())?;
    let wants = |kind| wanted.contains(&kind);
    // A snapshot names its processes itself; without one, only metadata is wanted.
    let selection = selection.unwrap_or_else(|| match args.file {
        Some(_) => Selection::All,
        None => Selection::Processes(Vec::new()),
    });
    Ok(RestoreRequest {
        first: args.first.clone(),
        anonymous: wants(MemoryKind::Anonymous),
        shared: wants(MemoryKind::Shared),
        files: wants(MemoryKind::File),
        snapshot: args.file.as_deref().map(snapshot::read).transpose()?,
        metadata: args.metadata.clone(),
        estimate: args.dry_run,
        method: args.how.method,
        helper: Some(HiddenCommand::new([super::READER])),
        ..RestoreRequest::new(selection, limits(&args.how, root))
    })
}

/// What a restore may take.
pub(super) fn limits(how: &RestoreHowArgs, root: &Root) -> Limits {
    let default_limits = Limits::usual(root);
    Limits {
        floor: how.floor.unwrap_or(default_limits.floor),
        time: how.max_time,
        bytes: how.max_bytes,
        hurry: how.hurry,
        ..default_limits
    }
}

/// Which kinds of memory are to be restored.
fn wanted(args: &RestoreArgs, named: bool) -> Result<Vec<MemoryKind>> {
    let usual: &[MemoryKind] = match (&args.file, named) {
        // What is shared stands in no snapshot.
        (Some(_), _) => &[MemoryKind::Anonymous, MemoryKind::File],
        (None, true) => &[MemoryKind::Anonymous, MemoryKind::Shared, MemoryKind::File],
        (None, false) => &[],
    };
    let mut wanted = if args.only.is_empty() { usual } else { &args.only }.to_vec();
    let in_swap = |kind: &MemoryKind| *kind != MemoryKind::File;
    if args.dry_run || !wanted.iter().any(in_swap) || may_move(args.how.method) {
        return Ok(wanted);
    }
    if args.file.is_some() && args.only.is_empty() {
        // Files are read by any user who may open them.
        wanted.retain(|kind| !in_swap(kind));
        return Ok(wanted);
    }
    Err(rights_are_missing(RestoreReceipt::COMMAND))
}

/// The refusal of `command` for want of rights.
pub(super) fn rights_are_missing(command: &str) -> Error {
    let text = "needs CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_NICE and CAP_DAC_READ_SEARCH: without them the kernel does not show where memory of others is in swap";
    let hint = format!(
        "sudo terrace {command}, or the service in docs/warm.md; `terrace warm show` needs no rights; `terrace doctor` says what is missing"
    );
    Error::new(Exit::Impossible, text).hint(&hint)
}

/// Whether this process may see slots and reach into others. Only advice needs the third right,
/// and only processes of other users the fourth: without it they are left out, with a note.
pub(super) fn may_move(method: Option<RestoreMethod>) -> bool {
    let advises = method == Some(RestoreMethod::WillNeed);
    has_capability(Capability::SysAdmin)
        && has_capability(Capability::SysPtrace)
        && (!advises || has_capability(Capability::SysNice))
}

fn carry_out(
    args: &RestoreArgs,
    request: &RestoreRequest,
    root: &Root,
    activity: &Activity,
) -> Result<RestoreReceipt> {
    let plan = restore::plan(root, request)?;
    let mut receipt = RestoreReceipt {
        planned: plan.parts.clone(),
        speeds: plan.speeds.clone(),
        notes: plan.notes.clone(),
        done: None,
    };
    if args.dry_run {
        return Ok(receipt);
    }
    let mut display = activity.amounts();
    receipt.done = Some(restore::carry_out(root, request, plan, &mut display)?);
    Ok(receipt)
}
