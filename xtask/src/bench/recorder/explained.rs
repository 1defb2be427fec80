//! How long it takes to explain as many samples as an hour at 10 Hz has: recorded in six
//! minutes at 100 Hz, which holds more changes than an hour of a machine at rest.

use std::time::Duration;

use super::LIMIT;
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;

/// 36,000 samples at 100 Hz.
const RECORDED: Duration = Duration::from_secs(360);

/// Measures the explanation of 36,000 samples.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let file = directory.file("hour.trec");
    let seconds = format!("{}s", RECORDED.as_secs());
    let args = ["record", "--for", &seconds, "--rate", "100", "--force", "-o", &file];
    terrace.run(&args, RECORDED + LIMIT)?;
    let mut values = Vec::new();
    for _ in 0..request.alternations {
        let finished = terrace.run(&["explain", &file], LIMIT)?;
        values.push(finished.elapsed.as_secs_f64());
    }
    record.command("terrace record --for 360s --rate 100 -o hour.trec".to_owned());
    record.command("terrace explain hour.trec".to_owned());
    let series = Series::new("terrace", &values);
    let target = Some(Target::AtMost(0.5));
    record.add_alone("explain 36,000 samples", "s", series, target)
}
