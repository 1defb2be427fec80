//! `terrace boost`: would a cache on flash help (`qualify`, `receipt`, which change nothing), and
//! the cache itself.
//!
//! - [`parts`] joins what `place` found and claimed with what `cache` is attached with.
//! - [`serve`] keeps a process that serves ([`serving`]), with an [`engine`] and a [`medium`] that
//!   is looked for while it is gone; where such processes fail again and again, one that serves
//!   without the cache ([`plain`]). All have their [`protection`].
//! - [`export`] gives the volume to the kernel, by FUSE or NBD; [`ending`] is how it is taken back.
//! - [`attach`] starts the service and asks it, by the socket of [`control`].
//! - [`fill`] has it read ahead ([`filling`]); [`report`] says what that brought ([`history`]).
//! - [`coverage`] says which device has what of a file ([`volume_files`]).
//! - [`install`] has systemd start the service, by [`units`].

mod attach;
mod control;
mod coverage;
mod ending;
mod engine;
mod export;
mod fill;
mod fill_list;
mod fill_order;
mod filling;
mod history;
mod install;
mod jump_cost;
mod medium;
mod parts;
mod plain;
mod protection;
mod published;
mod receipt;
mod report;
mod serve;
mod serving;
mod shared_disk;
mod times;
mod units;
mod volume_files;

pub use serving::process;

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
        Boost::Attach(args) => attach::attach(args),
        Boost::Status(args) => attach::status(args, color),
        Boost::Explain(args) => coverage::explain(args, color),
        Boost::Fill(args) => fill::fill(args, color),
        Boost::Report(args) => report::report(args, color),
        Boost::Detach(args) => attach::detach(args),
        Boost::Serve(args) => serve::serve(args),
        Boost::Install(args) => install::install(args),
        Boost::Uninstall(args) => install::uninstall(args),
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
