//! `terrace boost report`: asks the services what their caches have brought. What is concluded of
//! it is in `output`.

use super::control::{self, Question};
use crate::args::When;
use crate::args::boost::CacheReportArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::boost_report::{CacheHistory, CacheReport, CacheReports, page};
use crate::output::{OutputTarget, Page, json};

/// Shows what the caches have brought.
///
/// # Errors
/// `Usage` for a name that is not attached.
pub(super) fn report(args: &CacheReportArgs, color: When) -> Result<Exit> {
    control::only_root()?;
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => control::names()?,
    };
    let asked = names.iter().map(|name| -> Result<CacheReport> {
        let history: CacheHistory = control::ask(name, Question::History)?;
        Ok(CacheReport::of(history))
    });
    let caches: Vec<CacheReport> = asked.collect::<Result<_>>()?;
    let target = OutputTarget::of(None)?;
    let text = if args.json {
        json::render(&CacheReports { schema: "terrace.boost_report/1", caches: &caches })?
    } else {
        page(&caches, Page::of(&target, color))
    };
    target.write(&text)?;
    Ok(Exit::Done)
}
