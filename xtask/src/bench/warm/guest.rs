//! Runs a scene in a guest and reads the lines that it leaves.
//! A guest that fails gives no figures: half a comparison cannot be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::bench::Session;
use crate::bench::guest::{self, GuestRun};
use crate::error::Error;
use crate::{process, workspace};

/// The program of the guest, an example of this crate.
const PROGRAM: &str = "warm-guest";

/// A release build of this crate on a busy machine.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// The disk model of the suite, and a disk as fast as the emulator.
pub(super) const HDD: &str = "model=hdd";
pub(super) const FAST: &str = "rot=0";

/// The program that a guest gets besides the measured one.
pub(super) struct Guest {
    program: PathBuf,
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
        Ok(Self { program: build_program(session)? })
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
        let command = [&[PROGRAM], scene.words].concat();
        let machine = GuestRun {
            disks: scene.disks,
            memory: scene.memory,
            timeout_s: scene.timeout_s,
            packages: scene.packages,
            modules: &[],
            programs: &[&self.program],
            scripts: &[],
            then: None,
            command: &command,
        };
        let out = guest::out(session);
        let mut lines = Vec::new();
        for _ in 0..session.request.alternations {
            let ran = guest::run(session, &machine);
            let text = fs::read_to_string(out.join("results")).unwrap_or_default();
            let kept = keep(&out);
            ran?;
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
}

/// Builds the program of the guest into cargo's own directory; its path.
fn build_program(session: &Session) -> Result<PathBuf, Error> {
    let mut cargo = workspace::cargo(&session.root);
    cargo.args(["build", "--release", "--locked", "--quiet", "-p", "xtask", "--example", PROGRAM]);
    process::run(cargo, BUILD_LIMIT)?.success()?;
    Ok(session.target.join("release/examples").join(PROGRAM))
}
