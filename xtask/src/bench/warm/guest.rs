//! Runs a scene in a guest and reads the lines that it leaves.
//! A guest that fails gives no figures: half a comparison cannot be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::bench::Session;
use crate::error::Error;
use crate::{process, vm, workspace};

/// The program of the guest, an example of this crate.
const PROGRAM: &str = "warm-guest";

/// A release build of this crate on a busy machine.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// The disk model of the suite, and a disk as fast as the emulator.
pub(super) const HDD: &str = "model=hdd";
pub(super) const FAST: &str = "rot=0";

/// The programs that a guest gets, and where its lines come out.
pub(super) struct Guest {
    tool: PathBuf,
    program: PathBuf,
    out: PathBuf,
}

/// A machine and what is done in it.
pub(super) struct Scene<'a> {
    /// `NAME:SIZE,key=value...` each.
    pub(super) disks: &'a [&'a str],
    pub(super) memory: &'a str,
    pub(super) packages: &'a [&'a str],
    pub(super) timeout_s: u64,
    pub(super) words: &'a [&'a str],
}

impl Guest {
    /// Builds the program of the guest; the tool is built already.
    pub(super) fn build(session: &Session) -> Result<Self, Error> {
        Ok(Self {
            tool: session.terrace.program.clone(),
            program: build_program(session)?,
            out: session.directory.path().join("out"),
        })
    }

    /// Runs `scene` once for each alternation, each time in a new guest; all lines of all runs.
    pub(super) fn play(
        &self,
        scene: &Scene<'_>,
        session: &mut Session,
    ) -> Result<Vec<Value>, Error> {
        self.play_and_keep(scene, session, &mut |_| Ok(()))
    }

    /// As [`Guest::play`]; `keep` is shown the folder that came out of each guest before it goes.
    pub(super) fn play_and_keep(
        &self,
        scene: &Scene<'_>,
        session: &mut Session,
        keep: &mut dyn FnMut(&Path) -> Result<(), Error>,
    ) -> Result<Vec<Value>, Error> {
        let words = self.words(scene);
        let shown = words.iter().filter(|word| !word.contains('/')).cloned();
        session.record.command(format!("cargo xtask vm {}", shown.collect::<Vec<_>>().join(" ")));
        let mut lines = Vec::new();
        for _ in 0..session.request.alternations {
            let _ = fs::remove_dir_all(&self.out);
            fs::create_dir_all(&self.out).map_err(Error::io("make", &self.out))?;
            let status = vm::run(&words);
            let results = self.out.join("results");
            let text = fs::read_to_string(&results).unwrap_or_default();
            let kept = keep(&self.out);
            if status != 0 {
                return Err(Error::Failed(format!("the guest ended with {status}")));
            }
            kept?;
            for line in text.lines() {
                lines.push(serde_json::from_str(line).map_err(|error| Error::Malformed {
                    what: "a line of the guest",
                    why: error.to_string(),
                })?);
            }
        }
        Ok(lines)
    }

    fn words(&self, scene: &Scene<'_>) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for disk in scene.disks {
            add("--disk", (*disk).to_owned());
        }
        for package in scene.packages {
            add("--package", (*package).to_owned());
        }
        add("--mem", scene.memory.to_owned());
        add("--timeout", scene.timeout_s.to_string());
        for path in [&self.tool, &self.program] {
            add("--bin", path.to_string_lossy().into_owned());
        }
        add("--out", self.out.to_string_lossy().into_owned());
        words.extend(["--".to_owned(), PROGRAM.to_owned()]);
        words.extend(scene.words.iter().map(|word| (*word).to_owned()));
        words
    }
}

/// Builds the program of the guest into cargo's own directory; its path.
fn build_program(session: &Session) -> Result<PathBuf, Error> {
    let mut cargo = workspace::cargo(&session.root);
    cargo.args(["build", "--release", "--locked", "--quiet", "-p", "xtask", "--example", PROGRAM]);
    process::run(cargo, BUILD_LIMIT)?.success()?;
    Ok(session.target.join("release/examples").join(PROGRAM))
}
