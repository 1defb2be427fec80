//! What `terrace measure iolat` and `terrace measure seqio` say, in the peers' terms.
//!
//! Rates are over wall time, as fio's. The report of single requests holds no processor time: there
//! that of the whole process is divided among them, and its start is ours to pay.

use serde_json::Value;

use super::fio::Figures;
use super::ioping::Times;
use crate::bench::report;
use crate::error::Error;

/// The figures of random requests, one at a time.
pub(super) fn one_at_a_time(output: &Value) -> Result<Figures, Error> {
    let of = |field: &str| report::number(output, &format!("/result/paces/0/{field}"));
    let (requests, wall_s) = (of("requests")?, of("wall_s")?);
    Ok(Figures {
        requests_per_s: requests / wall_s,
        bytes_per_s: of("bytes")? / wall_s,
        cpu_ns_per_request: report::number(output, "/cost/cpu_s")? * 1e9 / requests,
    })
}

/// The figures of random requests, several in flight.
pub(super) fn in_flight(output: &Value) -> Result<Figures, Error> {
    let of = |field: &str| report::number(output, &format!("/result/random/{field}"));
    Ok(Figures {
        requests_per_s: of("requests_per_s/median")?,
        bytes_per_s: of("bytes_per_s")?,
        cpu_ns_per_request: of("cpu_ns_per_request")?,
    })
}

/// The figures of the phase called `name`: `read`, `write`.
pub(super) fn phase(output: &Value, name: &str) -> Result<Figures, Error> {
    let phases = report::list(output, "/result/phases")?;
    let phase = phases
        .iter()
        .find(|phase| phase["name"] == name)
        .ok_or_else(|| report::malformed(format!("no phase {name}")))?;
    let (bytes, wall_s) = (report::number(phase, "/bytes")?, report::number(phase, "/wall_s")?);
    let requests = bytes / report::number(output, "/result/block_bytes")?;
    Ok(Figures {
        requests_per_s: requests / wall_s,
        bytes_per_s: report::number(phase, "/bytes_per_s")?,
        cpu_ns_per_request: report::number(phase, "/cpu_s")? * 1e9 / requests,
    })
}

/// Minimum and median of single requests.
pub(super) fn times(output: &Value) -> Result<Times, Error> {
    Ok(Times {
        min_ns: report::number(output, "/result/paces/0/latency/min_ns")?,
        median_ns: report::number(output, "/result/paces/0/latency/p50_ns")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `terrace measure iolat --json` prints; fields that are not read are cut.
    const IOLAT: &str = r#"{"schema": "terrace.measure.iolat/2", "result": {"paces": [{"requests": 44734,
        "bytes": 183230464, "latency": {"min_ns": 43104, "p50_ns": 65663},
        "wall_s": 2.999127617}]},
        "cost": {"cpu_s": 1.373768}}"#;

    /// As `terrace measure seqio --json` prints, likewise.
    const SEQIO: &str = r#"{"schema": "terrace.measure.seqio/1", "result": {"block_bytes": 1048576,
        "phases": [{"name": "read", "bytes": 1073741824, "wall_s": 0.655651023,
            "bytes_per_s": 1637672765.440038, "cpu_s": 0.014958}]}}"#;

    #[test]
    fn random_rates_are_over_wall_time() {
        let output = report::parse(IOLAT).unwrap();
        let figures = one_at_a_time(&output).unwrap();
        assert!((figures.requests_per_s - 44734.0 / 2.999127617).abs() < 1e-6);
        assert!((figures.cpu_ns_per_request - 1.373768e9 / 44734.0).abs() < 1e-6);
        assert_eq!(times(&output).unwrap().median_ns, 65663.0);
        assert!(in_flight(&output).is_err());
    }

    #[test]
    fn requests_in_flight_have_figures_of_their_own() {
        let output = report::parse(
            r#"{"schema": "terrace.measure.iolat/2", "result": {"region_bytes": 1073741824,
            "random": {"depth": 32, "block_bytes": 4096, "requests": 156036, "wall_s": 1.99935591,
            "requests_per_s": {"median": 78043.13340089608}, "bytes_per_s": 319664674.41007036,
            "cpu_ns_per_request": 3710.5}}, "cost": {"cpu_s": 0.9}}"#,
        );
        let figures = in_flight(&output.unwrap()).unwrap();
        assert_eq!(figures.requests_per_s, 78043.13340089608);
        assert_eq!(figures.cpu_ns_per_request, 3710.5);
    }

    #[test]
    fn a_phase_is_found_by_its_name() {
        let output = report::parse(SEQIO).unwrap();
        let figures = phase(&output, "read").unwrap();
        assert_eq!(figures.bytes_per_s, 1637672765.440038);
        assert!((figures.cpu_ns_per_request - 0.014958e9 / 1024.0).abs() < 1e-6);
        let error = phase(&output, "write").unwrap_err();
        assert!(error.to_string().contains("no phase write"), "{error}");
    }
}
