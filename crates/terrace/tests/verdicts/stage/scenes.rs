//! The scenes of the whole machine: programs beside each other, of which one makes another wait,
//! and the recorder that watches all of them.
//!
//! Each program runs under a name of its own, so that the verdict can name it. Residents run
//! before the recorder begins, until the end; leads are waited for.

use super::make::{own_workload, text};
use super::{Made, Neighbour, TERRACE};
use crate::busy::Processors;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{Cgroup, TempDir};

/// How long a recorder may take to begin, and leads to end.
const BEGIN_LIMIT: Duration = Duration::from_secs(10);
const LEADS_LIMIT: Duration = Duration::from_secs(60);

/// What is recorded before and after the scene, at ten samples a second.
const MARGIN: Duration = Duration::from_millis(250);

/// A program of a scene.
pub struct Program {
    argv: Vec<String>,
    is_lead: bool,
    /// The control group that it runs in.
    group: Option<PathBuf>,
}

impl Program {
    /// One that is waited for.
    pub fn lead(argv: Vec<String>) -> Self {
        Self { argv, is_lead: true, group: None }
    }

    /// One that was there before. It writes a line once it is at work, or closes its output.
    pub fn resident(argv: Vec<String>) -> Self {
        Self { argv, is_lead: false, group: None }
    }

    /// In a control group.
    pub fn within(self, group: &Cgroup) -> Self {
        Self { group: Some(group.path().to_owned()), ..self }
    }

    fn start(&self) -> Result<Neighbour, String> {
        let mut command = Command::new(&self.argv[0]);
        if let Some(group) = &self.group {
            command = Command::new("sh");
            command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(group);
            command.arg(&self.argv[0]);
        }
        command.args(&self.argv[1..]).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(if self.is_lead { Stdio::null() } else { Stdio::piped() });
        let child = command.spawn().map_err(|error| format!("{}: {error}", self.argv[0]))?;
        let mut started = Neighbour(child);
        if let Some(output) = &mut started.0.stdout {
            let mut line = String::new();
            let said = BufReader::new(output).read_line(&mut line);
            said.map_err(|error| format!("{}: {error}", self.argv[0]))?;
        }
        Ok(started)
    }
}

/// This program as the workload of these words, under another name: a link in `directory`.
pub fn workload_as(directory: &TempDir, name: &str, words: &[&str]) -> Vec<String> {
    let link = directory.join(name);
    let mut argv = own_workload(words);
    std::os::unix::fs::symlink(&argv[0], &link).unwrap();
    argv[0] = text(&link);
    argv
}

/// Records the machine while the scene is played; also the share of the processors that others
/// had.
pub fn record(scene: &[Program], file: &Path) -> Result<(Output, f64), String> {
    let (leads, residents): (Vec<&Program>, Vec<&Program>) =
        scene.iter().partition(|program| program.is_lead);
    let started: Result<Vec<Neighbour>, String> =
        residents.into_iter().map(Program::start).collect();
    let at_work = started?;
    let mut command = Command::new(TERRACE);
    command.args(["record", "-o"]).arg(file).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = Neighbour(command.spawn().map_err(|error| error.to_string())?);
    let before = Processors::now();
    let begun = Instant::now();
    while !std::fs::metadata(file).is_ok_and(|file| file.len() > 0) {
        let ended = recorder.0.try_wait().is_ok_and(|status| status.is_some());
        if ended || begun.elapsed() > BEGIN_LIMIT {
            return Err("a recorder that begins".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(MARGIN);
    play(&leads)?;
    std::thread::sleep(MARGIN);
    let number = recorder.0.id().to_string();
    let _ = Command::new("kill").args(["-TERM", &number]).status();
    let status = recorder.0.wait().map_err(|error| error.to_string())?;
    drop(at_work);
    let others = Processors::now().others_since(&before);
    let read = |pipe: Option<&mut dyn std::io::Read>| -> Vec<u8> {
        let mut bytes = Vec::new();
        pipe.map(|pipe| pipe.read_to_end(&mut bytes));
        bytes
    };
    let stdout = read(recorder.0.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
    let stderr = read(recorder.0.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
    Ok((Output { status, stdout, stderr }, others))
}

/// Starts the leads, and returns once they have ended.
fn play(leads: &[&Program]) -> Result<(), String> {
    let started: Result<Vec<Neighbour>, String> = leads.iter().map(|lead| lead.start()).collect();
    let mut leads = started?;
    let end = Instant::now() + LEADS_LIMIT;
    let is_over = |lead: &mut Child| lead.try_wait().is_ok_and(|status| status.is_some());
    while !leads.iter_mut().all(|lead| is_over(&mut lead.0)) {
        if Instant::now() > end {
            return Err("leads that end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A script starts one very short program after another.
pub fn fork_storm() -> Result<Made, String> {
    let directory = TempDir::new();
    let shell = directory.join("health-check");
    std::os::unix::fs::symlink("/bin/sh", &shell).map_err(|error| error.to_string())?;
    let script = "i=0; while [ $i -lt 2500 ]; do /bin/true; i=$((i+1)); done";
    let argv = [&text(&shell), "-c", script].map(str::to_owned).to_vec();
    let scene = vec![Program::lead(argv.clone()), Program::lead(argv)];
    Ok(Made { scene, _directories: vec![directory], ..Made::default() })
}
