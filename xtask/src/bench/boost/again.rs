//! What is warm in the next boot: after a detach, and after a power cut amid requests of which a
//! tenth writes. The hits of 2,000 requests beside those at the end of the first boot.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, DATA_MIB, boot, figure, requests};

const SKEW: &str = "1.2";
const REQUESTS: &str = "8000";
/// The cases, how many seconds of writes come before the cut, and the hits that are left at least.
const CASES: [(&str, &str, f64); 2] =
    [("a boot", "0", 0.95), ("a power cut 30 s into 10 % writes", "30", 0.8)];

/// Compares the two boots of each case.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let parameters = format!("{REQUESTS}, skew {SKEW}, {CACHE} before {DATA_MIB} MiB");
    let (target, program) = (session.target.clone(), session.terrace.program.clone());
    let mut steps = Steps::open(&target, "boost-again", &program, &parameters, 3)?;
    for (case, (what, seconds, least)) in CASES.iter().enumerate() {
        let (mut again, mut before, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            let step = steps.get(case * rounds + round, || one_case(session, seconds))?;
            step.note_in(&mut session.record);
            again.push(step.values[0]);
            before.push(step.values[1]);
            wrong.push(step.values[2]);
        }
        let title = format!("share of hits after {what}");
        let pair = (Series::new("after", &again), Series::new("before", &before));
        session.record.add_against(&title, "", pair, Some(Target::AtLeast(*least)))?;
        let title = format!("wrong blocks after {what}");
        let series = Series::new("after", &wrong);
        session.record.add_alone(&title, "", series, Some(Target::AtMost(0.0)))?;
    }
    steps.end(&mut session.record, "boots", CASES.len() * rounds);
    Ok(())
}

fn one_case(session: &mut Session, seconds: &str) -> Result<(Vec<f64>, Vec<String>), Error> {
    let script = ["first.sh", CACHE, DATA_MIB, REQUESTS, SKEW, seconds];
    let then = format!("bash second.sh {CACHE} {SKEW}");
    boot(session, "again", &script, Some(&then))?;
    let (again, warm) = (requests(session, "again")?, requests(session, "warm")?);
    Ok((vec![again.hit_ratio(), warm.hit_ratio(), figure(session, "wrong")?], Vec::new()))
}
