//! `terrace boost`: makes the plan, measures, and judges by the rules of `explain`.
//!
//! It attaches nothing and changes nothing.

mod receipt;

use super::deliver::Delivery;
use crate::args::When;
use crate::args::boost::{Boost, QualifyArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::qualify::QualifyResult;
use machine::Root;
use measure::storage::qualify::{QualifyPlan, qualify};

/// Does what was asked.
///
/// # Errors
/// If the target is refused, or nothing was measured.
pub fn boost(action: &Boost, color: When) -> Result<Exit> {
    match action {
        Boost::Qualify(args) => measure_candidate(args, color),
        Boost::Receipt(args) => receipt::receipt(args, color),
    }
}

fn measure_candidate(args: &QualifyArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let plan = QualifyPlan {
        size: args.size,
        budget: args.budget,
        full: args.full,
        compare_with: args.compare_with.clone(),
    };
    plan.check()?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let mut result = qualify(&args.path, &plan, &root, &mut |step| {
            activity.begin(&format!("{step}, Ctrl-C stops"))
        })?;
        result.verdict = explain::qualification::judge(&result);
        Ok::<_, measure::Error>(QualifyResult(result))
    })
}
