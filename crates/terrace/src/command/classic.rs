//! `measure memcpy --classic`: the program of 2001, from its own arguments.
//!
//! The same seven methods over the same buffers, on pages of 4 KiB as in 2001, each pass
//! a trial. Memory is made resident before anything is timed, so what `-p` and `-w` did
//! holds for every run, and `-f` has nothing to measure here.

use crate::args::When;
use crate::args::classic::{self as typed, Classic, METHODS};
use crate::args::probe::ProbeArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::report::Report;
use crate::output::report::classic as table;
use crate::output::{Page, Target, Written, complain};
use machine::Root;
use measure::Budget;
use measure::memory::PageKind;
use measure::memory::copy::{self, CopyPlan};
use measure::trial::Schedule;
use std::time::Duration;

/// How long it runs unless told; the largest buffers of the article take seconds.
const BUDGET: Duration = Duration::from_secs(60);

/// Runs the old program's command line.
///
/// # Errors
/// One line for what the old program would not have taken, and for `-f`.
pub fn run(line: &str, args: &ProbeArgs, color: When, root: &Root) -> Result<Exit> {
    let classic = typed::parse(line).map_err(|why| Error::usage(format!("--classic: {why}")))?;
    if classic.allocate_each_pass {
        let text = "--classic: `-f` timed allocation with the copy, which this probe keeps apart";
        return Err(Error::new(Exit::Impossible, text)
            .hint("see `terrace measure faults` for what new memory costs"));
    }
    let target = Target::of(args.form.output.as_deref())?;
    let plan = plan(&classic, args);
    copy::check(&plan, root)?;
    let stop = Budget::of(plan.budget * 2);
    let report = copy::measure(&plan, root, &stop)?;
    let text = if classic.csv || args.csv {
        table::sheet(&classic, &report).render()
    } else {
        table::page(&classic, &report, Page::of(&target, color))
    };
    match (target.write(&text)?, report.shortfall()) {
        (Written::Whole, Some(missing)) => {
            let missing = Error::new(Exit::Partial, missing).during("measure memcpy");
            Ok(complain(&missing))
        }
        _ => Ok(Exit::Done),
    }
}

fn plan(classic: &Classic, args: &ProbeArgs) -> CopyPlan {
    CopyPlan {
        methods: classic
            .methods
            .iter()
            .map(|&number| METHODS[number].to_owned())
            .collect(),
        sizes: vec![classic.size.0],
        pages: PageKind::Base,
        schedule: Schedule {
            // One pass is one trial, however short it is.
            trial_ns: 1,
            rounds: u32::try_from(classic.passes).unwrap_or(u32::MAX),
        },
        budget: args.budget.unwrap_or(BUDGET),
        cpu: args.cpu,
        ..CopyPlan::default()
    }
}
