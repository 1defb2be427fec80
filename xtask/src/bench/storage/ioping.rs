//! ioping: the raw time of every request, from its JSON.
//!
//! Its summary has no median, so minimum and median are taken from the single requests, without
//! those that ioping itself ignores as warm-up.

use std::time::Duration;

use serde_json::Value;

use crate::bench::peer::Peer;
use crate::bench::{ratio, report};
use crate::error::Error;

/// Five thousand requests at 20 ms.
const LIMIT: Duration = Duration::from_secs(120);

/// The shortest and the median time of one run, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) min_ns: f64,
    pub(super) median_ns: f64,
}

/// Runs ioping with `args`, which must ask for JSON.
pub(super) fn run(ioping: &Peer, args: &[&str]) -> Result<Times, Error> {
    times(&report::parse(&ioping.run(args, LIMIT)?.stdout)?)
}

fn times(output: &Value) -> Result<Times, Error> {
    let mut times = Vec::new();
    for entry in report::list(output, "")? {
        // The last entry is the summary: it has no request.
        if entry.pointer("/io/ignored").and_then(Value::as_bool) == Some(false) {
            times.push(report::number(entry, "/io/time")?);
        }
    }
    let summary = ratio::summary(&times)
        .ok_or_else(|| report::malformed("ioping: no request that counts".to_owned()))?;
    Ok(Times { min_ns: summary.min, median_ns: summary.median })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ioping 1.3 prints with -J, three requests; the repeated target is cut.
    const OUTPUT: &str = r#"[{"timestamp": 1795180164.797552, "target": {"fstype": "ext4"},
        "io": {"request": 1, "operation": "read", "size": 4096, "time": 203223, "ignored": true}
    },{"io": {"request": 2, "operation": "read", "size": 4096, "time": 377493, "ignored": false}
    },{"io": {"request": 3, "operation": "read", "size": 4096, "time": 498699, "ignored": false}
    },{"stat": {"count": 2, "size": 8192, "time": 876192, "min": 377493, "avg": 438096, "max": 498699},
        "load": {"count": 3, "iops": 1.499436}}]"#;

    #[test]
    fn the_warm_up_and_the_summary_do_not_count() {
        let times = times(&report::parse(OUTPUT).unwrap()).unwrap();
        assert_eq!((times.min_ns, times.median_ns), (377_493.0, 438_096.0));
    }

    #[test]
    fn without_a_request_there_is_no_time() {
        assert!(times(&report::parse("[]").unwrap()).is_err());
    }
}
