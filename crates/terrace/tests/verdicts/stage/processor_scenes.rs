//! Scenes of the whole machine about processors: who has them, and whose limit keeps them from
//! others.

use super::make::{compilation_of, text};
use super::scenes::{Program, workload_as};
use super::{Cgroup, Made};
use testkit::TempDir;

/// Jobs of the compile: six for each of two processors.
const JOBS: usize = 12;

/// What they compile.
const SOURCES: usize = 18;

/// Processes that do nothing.
const IDLE: usize = 200;

/// Containers with a quota each do their work in bursts, by turns, on a machine that is idle
/// otherwise.
pub fn quota_turns() -> Result<Made, String> {
    let directory = TempDir::new();
    let mut scene = Vec::new();
    let mut groups = Vec::new();
    // The first has most to do.
    for (name, delay_ms, millions) in
        [("shop-web", "0", "20"), ("shop-search", "700", "8"), ("shop-mail", "1400", "8")]
    {
        let group = Cgroup::v1_cpu(20_000, 100_000)?;
        let argv = workload_as(&directory, name, &["bursts", delay_ms, "4", millions, "900"]);
        scene.push(Program::lead(argv).within(&group));
        groups.push(group);
    }
    Ok(Made { scene, _held_groups: groups, _directories: vec![directory], ..Made::default() })
}

/// A compile with more jobs than processors, beside an editor that is typed into.
pub fn compile_jobs() -> Result<Made, String> {
    let (directory, mut argv) = compilation_of(SOURCES)?;
    argv.push(format!("-j{JOBS}"));
    let editor = workload_as(&directory, "editor", &["service", "10", "300"]);
    let scene = vec![Program::resident(editor), Program::lead(argv)];
    Ok(Made { scene, _directories: vec![directory], ..Made::default() })
}

/// A nightly job that computes with several threads and writes a report, among many processes that
/// sleep; a service beside it answers requests.
pub fn cron_among_idle() -> Result<Made, String> {
    let directory = TempDir::new();
    let sleeper = ["sh", "-c", "exec sleep 1000 > /dev/null"].map(str::to_owned).to_vec();
    let mut scene: Vec<Program> = (0..IDLE).map(|_| Program::resident(sleeper.clone())).collect();
    let service = workload_as(&directory, "api-server", &["service", "10", "300"]);
    scene.push(Program::resident(service));
    let reports = text(&directory.join("reports"));
    let job = workload_as(&directory, "nightly-report", &["report", &reports, "6", "200"]);
    scene.push(Program::lead(job));
    Ok(Made { scene, _directories: vec![directory], ..Made::default() })
}
