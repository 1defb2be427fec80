//! fio: one job at a time, its JSON read for the rate and the processor time of a request.
//!
//! fio counts the processor time of the job alone (user and system, as shares of its run time), not
//! of the parent process that starts it. Written data is what fio does by default: buffers filled
//! once at random and changed a little for each request; refilling them would cost it processor
//! time.

use std::time::Duration;

use serde_json::Value;

use super::FILE_MIB;
use crate::bench::peer::Peer;
use crate::bench::report;
use crate::error::Error;

/// A run of seconds, or one pass of the file at 10 MB/s.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// What is asked of fio: a job's `--rw`, request size, engine and depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) rw: &'static str,
    pub(super) bs: &'static str,
    pub(super) engine: &'static str,
    pub(super) depth: u32,
    /// Seconds; `None` is one pass over the file.
    pub(super) seconds: Option<u32>,
}

/// What one run gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    pub(super) requests_per_s: f64,
    pub(super) bytes_per_s: f64,
    pub(super) cpu_ns_per_request: f64,
}

impl Job {
    /// fio's arguments for this job on `file`.
    pub(super) fn args(&self, file: &str) -> Vec<String> {
        let mut args = vec![
            "--name=job".to_owned(),
            format!("--filename={file}"),
            format!("--size={FILE_MIB}m"),
            format!("--rw={}", self.rw),
            format!("--bs={}", self.bs),
            format!("--ioengine={}", self.engine),
            format!("--iodepth={}", self.depth),
            "--direct=1".to_owned(),
            "--output-format=json".to_owned(),
        ];
        if let Some(seconds) = self.seconds {
            args.extend([format!("--runtime={seconds}"), "--time_based".to_owned()]);
        }
        args
    }

    /// Runs fio with `args` of this job.
    pub(super) fn run(&self, fio: &Peer, args: &[String]) -> Result<Figures, Error> {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        figures(&report::parse(&fio.run(&words, LIMIT)?.stdout)?, self.direction())
    }

    fn direction(&self) -> &'static str {
        match self.rw {
            "write" => "write",
            _ => "read",
        }
    }
}

/// fio with its buffers on huge pages where the C library (glibc from 2.35) can be asked for them;
/// other C libraries ignore the request, and the figures are then those of fio as it is.
pub(super) fn with_huge_pages(fio: &Peer) -> Peer {
    let mut fio = fio.clone();
    fio.environment.push(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"));
    fio
}

/// Writes the file that is read later: data that no layer below can shrink.
pub(super) fn lay(fio: &Peer, file: &str) -> Result<(), Error> {
    eprintln!("storage: laying a file of {FILE_MIB} MiB");
    let job = Job { rw: "write", bs: "1m", engine: "psync", depth: 1, seconds: None };
    let mut args = job.args(file);
    args.extend(
        ["--refill_buffers", "--buffer_compress_percentage=0", "--end_fsync=1"].map(str::to_owned),
    );
    job.run(fio, &args).map(drop)
}

fn figures(output: &Value, direction: &str) -> Result<Figures, Error> {
    let of = |field: &str| report::number(output, &format!("/jobs/0/{field}"));
    let requests = of(&format!("{direction}/total_ios"))?;
    let cpu_share = (of("usr_cpu")? + of("sys_cpu")?) / 100.0;
    Ok(Figures {
        requests_per_s: of(&format!("{direction}/iops"))?,
        bytes_per_s: of(&format!("{direction}/bw_bytes"))?,
        cpu_ns_per_request: cpu_share * of("job_runtime")? * 1e6 / requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 prints for a random read at depth 1; fields that are not read are cut.
    const OUTPUT: &str = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "job", "error": 0,
        "read": {"io_bytes": 193003520, "bw_bytes": 64313068, "iops": 15701.432856, "runtime": 3001,
            "total_ios": 47120}, "write": {"total_ios": 0, "iops": 0.0, "bw_bytes": 0},
        "job_runtime": 3000, "usr_cpu": 2.833333, "sys_cpu": 43.533333}]}"#;

    #[test]
    fn rate_and_processor_time_are_read() {
        let figures = figures(&report::parse(OUTPUT).unwrap(), "read").unwrap();
        assert_eq!(figures.requests_per_s, 15701.432856);
        assert_eq!(figures.bytes_per_s, 64313068.0);
        // 46.37 % of 3 s over 47,120 requests.
        assert!((figures.cpu_ns_per_request - 29520.0).abs() < 10.0, "{figures:?}");
    }

    #[test]
    fn output_without_a_job_is_an_error() {
        let error = figures(&report::parse(r#"{"jobs": []}"#).unwrap(), "read").unwrap_err();
        assert!(error.to_string().contains("/jobs/0/read/total_ios"), "{error}");
    }

    #[test]
    fn a_pass_has_no_run_time() {
        let mut job = Job { rw: "read", bs: "1m", engine: "io_uring", depth: 8, seconds: None };
        assert!(!job.args("f").contains(&"--time_based".to_owned()));
        job.seconds = Some(3);
        assert!(job.args("f").contains(&"--runtime=3".to_owned()));
        assert_eq!(job.direction(), "read");
    }
}
