//! The scenes of the whole machine: programs beside each other, of which one makes another wait,
//! and the recorder that watches all of them.
//!
//! Each program runs under a name of its own, so that the verdict can name it. Leads are waited
//! for; the others run until the leads have ended.

use super::make::text;
use super::{Made, Neighbour, TERRACE};
use crate::busy::Processors;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::TempDir;

/// How long a recorder may take to begin, and leads to end.
const BEGIN_LIMIT: Duration = Duration::from_secs(10);
const LEADS_LIMIT: Duration = Duration::from_secs(60);

/// What is recorded before and after the scene, at ten samples a second.
const MARGIN: Duration = Duration::from_millis(250);

/// A program of a scene.
pub struct Program {
    argv: Vec<String>,
    is_lead: bool,
}

impl Program {
    fn lead(argv: Vec<String>) -> Self {
        Self { argv, is_lead: true }
    }

    fn start(&self) -> Result<Neighbour, String> {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        child.map(Neighbour).map_err(|error| format!("{}: {error}", self.argv[0]))
    }
}

/// Records the machine while the scene is played; also the share of the processors that others
/// had.
pub fn record(scene: &[Program], file: &Path) -> Result<(Output, f64), String> {
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
    play(scene)?;
    std::thread::sleep(MARGIN);
    let number = recorder.0.id().to_string();
    let _ = Command::new("kill").args(["-TERM", &number]).status();
    let status = recorder.0.wait().map_err(|error| error.to_string())?;
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

/// Starts all programs, and returns once the leads have ended; the others are killed.
fn play(scene: &[Program]) -> Result<(), String> {
    let mut leads: Vec<Neighbour> = Vec::new();
    let mut others: Vec<Neighbour> = Vec::new();
    for program in scene {
        let started = program.start()?;
        if program.is_lead { leads.push(started) } else { others.push(started) }
    }
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
