//! `terrace copy`: the plan from what was typed, the copy with its progress and its recording, the
//! receipt.

use super::deliver::{Activity, Delivery};
use super::record_options;
use crate::args::When;
use crate::args::copy::CopyArgs;
use crate::args::shared::FormArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::clean::printable;
use crate::output::copy::panel::{CopyPanel, painted};
use crate::output::copy::{CopyPage, turn_text};
use crate::output::top::Glyphs;
use crate::output::{self, Page, progress::Progress};
use explain::transfer::{TransferMeter, TransferVerdict};
use machine::Root;
use model::Bytes;
use model::copy_gauges::CopyGauges;
use model::progress::Control;
use place::copy::{self, CopyEnd, CopyPlan, CopyRequest, DiskTurn, Existing, TurnHolder};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the log gets the progress: it has a sample as often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Copies, or only says what would be copied, and delivers the receipt.
///
/// # Errors
/// What makes no sense, or cannot be done here.
pub fn copy(args: &CopyArgs, color: When) -> Result<Exit> {
    let request = request(args);
    let plan = copy::plan(&request)?;
    let root = Root::system();
    let eject = if args.eject {
        Some(copy::plan_eject(&root, &plan, &kept(args), args.verify)?)
    } else {
        None
    };
    // The recording of a copy has what the copy counts of itself.
    let log = args.log.as_deref().or(args.form.record.as_deref());
    let form = FormArgs { record: None, ..args.form.clone() };
    Delivery::of(&form, color)?.carry_out(&root, |activity| {
        if args.dry_run {
            let counted = copy::count(&request, &plan, &mut stop_if_interrupted)?;
            let unfit = copy::unfit(&request, &plan, &mut stop_if_interrupted)?;
            return Ok::<_, Error>(CopyPage::planned(&plan, counted, unfit));
        }
        let Some(turn) = take_turn(&root, &request, &plan, activity)? else {
            return Ok(CopyPage::never_begun(&plan));
        };
        let gauges = Arc::default();
        let recording = record_options::start_copy_log(log, &gauges)?;
        let targets = plan.target_paths();
        let started = Instant::now();
        let mut panel = Panel::new(&targets, color);
        // Whether source and target are one device is not known of what is below the sources.
        let mut meter = TransferMeter::new(0, false);
        let mut verdict = None;
        let mut recorded_at = Duration::ZERO;
        let copied = copy::carry_out(&request, plan, &gauges, &mut || {
            let elapsed = started.elapsed();
            if let Some(recording) = &recording
                && elapsed.saturating_sub(recorded_at) >= PROGRESS_EVERY
            {
                recorded_at = elapsed;
                recording.progress(gauges.durable_bytes.get().unwrap_or(0), "bytes");
            }
            meter.take(elapsed.as_nanos() as u64, &gauges);
            let now = meter.verdict();
            panel.draw(activity, elapsed, &gauges, &now);
            verdict = Some(now);
            stop_if_interrupted()
        });
        if let Some(recording) = &recording {
            recording.progress(gauges.durable_bytes.get().unwrap_or(0), "bytes");
            recording.mark("done");
        }
        let recorded = recording.map_or(Ok(()), |recording| recording.finish());
        let copied = copied.map_err(|error| with_what_is_safe(error, &gauges))?;
        recorded?;
        let CopyEnd { report, unverified } = copied;
        let mut page = CopyPage::done(report, targets, verdict).after(&turn);
        if let Some(plan) = eject.filter(|_| page.is_complete()) {
            let step =
                if unverified.is_some() { "unmounting and reading back" } else { "unmounting" };
            activity.display(step);
            let ejected = copy::eject(&root, &plan, unverified.as_ref(), &mut stop_if_interrupted);
            page.eject = Some(ejected);
        }
        Ok(page)
    })
}

/// A target that failed as a whole, midway: how much of the copy is safe there, and how to go on.
fn with_what_is_safe(error: place::Error, gauges: &CopyGauges) -> Error {
    let is_damaging = error.kind == place::ErrorKind::Damaging;
    let error = Error::from(error);
    if is_damaging {
        return error.hint(
            "the file system of the target may be damaged: unmount and check it (fsck), then copy \
             again, which begins anew",
        );
    }
    if !matches!(error.exit, Exit::Partial) {
        return error;
    }
    let safe = gauges.durable_bytes.get().unwrap_or(0);
    let percent_safe = gauges.bytes_total.get().filter(|total| *total > 0).map(|total| {
        let percent = (100.0 * safe as f64 / total as f64).min(100.0).floor();
        format!("{percent} %, ")
    });
    let share = percent_safe.unwrap_or_default();
    error.hint(format!(
        "{share}{} are safe on the target; run the same command again, it keeps what is complete",
        Bytes(safe)
    ))
}

/// What is displayed while the copy works, if anything is.
struct Panel {
    panel: CopyPanel,
    color: When,
    is_shown: bool,
}

impl Panel {
    fn new(targets: &[PathBuf], color: When) -> Self {
        let target = match targets {
            [only] => only.display().to_string(),
            several => format!("{} names", several.len()),
        };
        let glyphs = Glyphs::of_locale(|name| std::env::var(name).ok());
        Self { panel: CopyPanel::new(&target, glyphs), color, is_shown: Progress::is_shown() }
    }

    fn draw(
        &mut self,
        activity: &Activity,
        elapsed: Duration,
        gauges: &CopyGauges,
        verdict: &TransferVerdict,
    ) {
        if !self.is_shown || !self.panel.take(elapsed, gauges) {
            return;
        }
        // As wide as the terminal is now, less the column in which some turn the line.
        let page = Page::on_standard_error(self.color);
        let lines = self.panel.lines(gauges, verdict, page.width.saturating_sub(1));
        let painted = lines.iter().map(|line| printable(&painted(line, page.style)).into_owned());
        activity.display_panel(&painted.collect::<Vec<_>>());
    }
}

/// What stays open while the copy works.
fn kept(args: &CopyArgs) -> Vec<PathBuf> {
    let files = [&args.log, &args.form.record, &args.form.output];
    files.into_iter().flatten().cloned().collect()
}

/// Waits for other copies on the same disks, and says for whom; `None` after Ctrl-C.
fn take_turn(
    root: &Root,
    request: &CopyRequest,
    plan: &CopyPlan,
    activity: &Activity,
) -> Result<Option<DiskTurn>> {
    let mut said: Option<TurnHolder> = None;
    let turn = copy::take_turn(root, request, plan, &mut |holder| {
        if let Some(holder) = holder {
            let text = turn_text(holder);
            // A line for each of them where there is no line of progress.
            let is_other = said.as_ref().is_none_or(|said| said.pid != holder.pid);
            if !Progress::is_shown() && is_other {
                output::announce("copy", &text);
            }
            activity.display(&text);
            said = Some(holder.clone());
        }
        stop_if_interrupted()
    })?;
    Ok(turn)
}

fn stop_if_interrupted() -> Control {
    Control::stop_if(sys::interrupt::requested())
}

fn request(args: &CopyArgs) -> CopyRequest {
    let existing = match (args.update, args.no_clobber) {
        (true, _) => Existing::ReplaceOlder,
        (_, true) => Existing::Keep,
        _ => Existing::Replace,
    };
    CopyRequest {
        sources: args.sources.clone(),
        target: args.target.clone(),
        engine: args.engine,
        existing,
        one_file_system: args.one_file_system,
        verify: args.verify,
        verify_after_mount: args.eject,
        keep_cached: args.keep_cached,
        limit_rate: args.limit_rate.map(|rate| rate.0),
        now: args.now,
        background: args.background,
        restart: args.restart,
        skip_unfit: args.skip_unfit,
        // For the line of progress and the recording.
        wants_totals: args.log.is_some() || Progress::is_shown(),
        shows_durable: Progress::is_shown(),
    }
}
