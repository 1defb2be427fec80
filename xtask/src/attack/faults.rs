//! Errors of the file system at each write: no space, quota, too large, an error of the disk.
//!
//! `strace` gives the error in place of the call, so no disk is needed and every write is reached. Of a
//! run only calls on the recording are concerned, never those of the command.

use std::ffi::OsString;
use std::path::Path;

use super::judge::{self, DOCUMENTED, MEMORY_LIMIT_BYTES, Observed};
use super::recording::plain;
use super::stage::{Held, PATIENCE, Stage, Stop, ensure, names, need, shown, text, words};

const ERRORS: &[&str] = &["ENOSPC", "EIO", "EDQUOT", "EFBIG"];
const CALLS: &str = "write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync";
/// The status of the command, which nothing else has.
const STATUS: i32 = 9;
/// A short recording has fewer writes.
const WRITES: u32 = 6;
/// As many as the shortest export has, and some.
const WRITER_WRITES: u32 = 3;

/// Runs the binary with this error at the write of this number, of `path` or of all files.
fn inject(
    stage: &Stage,
    path: Option<&Path>,
    error: &str,
    when: &str,
    arguments: &[OsString],
) -> Result<Observed, Stop> {
    let injected = format!("inject={CALLS}:error={error}:when={when}");
    let mut wrapper = vec![
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "signal=none",
    ];
    if let Some(path) = path {
        wrapper.extend(["-P", text(path)]);
    }
    wrapper.extend(["-e", &injected]);
    Ok(judge::observe(
        stage.terrace_under(&wrapper, arguments),
        PATIENCE,
        MEMORY_LIMIT_BYTES,
    )?)
}

/// Whether `strace` may trace here.
fn need_strace(stage: &Stage) -> Held {
    need(&["strace"])?;
    let observed = judge::observe(
        stage.terrace_under(&["strace", "-f", "-qq", "-o", "/dev/null"], &["--version"]),
        PATIENCE,
        MEMORY_LIMIT_BYTES,
    )?;
    match observed.status {
        Some(0) => Ok(()),
        _ => Err(Stop::Needs("strace to be allowed to trace".to_owned())),
    }
}

/// The status is the command's or, before it begins, 125; the recording can be read or is not there.
pub(super) fn of_run(stage: &Stage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("faults")?;
    let [out, mark] = ["out.trec", "mark"].map(|name| directory.join(name));
    let script = format!("echo begun >{}; sleep 0.3; exit {STATUS}", text(&mark));
    let arguments = words([
        "run",
        "-q",
        "--rate",
        "100",
        "-o",
        text(&out),
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let mut reached = 0;
    for number in 1..=WRITES {
        let error = ERRORS[(number as usize + stage.seed as usize) % ERRORS.len()];
        for when in [number.to_string(), format!("{number}+")] {
            for path in [&out, &mark] {
                let _ = std::fs::remove_file(path);
            }
            let observed = inject(stage, Some(&out), error, &when, &arguments)?;
            let what = format!(
                "{error} at write {when}: status {:?}, signal {:?}",
                observed.status, observed.signal
            );
            let is_right = observed.status == Some(if mark.exists() { STATUS } else { 125 });
            ensure(is_right && !observed.text().contains("panicked"), || {
                what.clone()
            })?;
            reached += u32::from(observed.text().contains("terrace"));
            if out.exists() && mark.exists() {
                let read = judge::observe(
                    stage.terrace(&["explain", text(&out)]),
                    PATIENCE,
                    MEMORY_LIMIT_BYTES,
                )?;
                let is_read =
                    matches!(read.status, Some(0 | 1)) || std::fs::metadata(&out)?.len() < 16;
                ensure(is_read, || {
                    format!("{what}; the recording cannot be read: {:?}", read.text())
                })?;
            }
        }
    }
    ensure(reached > 0, || {
        "no error was ever noticed: the case tests nothing".to_owned()
    })
}

/// L12 a: the first write fails: status 125, and no file that the next run would refuse to replace.
pub(super) fn nothing_left(stage: &Stage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("nothing-left")?;
    let out = directory.join("out.trec");
    let arguments = words(["run", "-q", "-o", text(&out), "--", "true"]);
    let observed = inject(stage, Some(&out), "ENOSPC", "1+", &arguments)?;
    ensure(observed.status == Some(125), || {
        format!("status {:?}", observed.status)
    })?;
    let left = names(&directory);
    ensure(left.is_empty(), || format!("left behind: {left:?}"))
}

/// A file is written whole or not at all: what was there before stays, and nothing is left beside it.
pub(super) fn of_writers(stage: &Stage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("fault-writers")?;
    let recording = plain(stage, &directory, "hog_beside")?;
    let (recording, out) = (text(&recording), directory.join("out"));
    let vmstat = directory.join("vmstat.txt");
    std::fs::write(&vmstat, super::import::VMSTAT)?;
    let out_name = text(&out);
    let commands = [
        words(["export", "--to", "csv", "-o", out_name, recording]),
        words(["export", "--to", "trec", "-o", out_name, recording]),
        words(["explain", "--json", "-o", out_name, recording]),
        words(["view", "--html", out_name, recording]),
        words(["import", text(&vmstat), "-o", out_name]),
    ];
    for (turn, arguments) in commands.iter().enumerate() {
        for number in 1..=WRITER_WRITES {
            let _ = std::fs::remove_file(&out);
            let error = ERRORS[(turn + number as usize) % ERRORS.len()];
            let before = names(&directory);
            let observed = inject(stage, None, error, &format!("{number}+"), arguments)?;
            let what = || {
                format!(
                    "{error} at write {number}: status {:?}, signal {:?}: {}",
                    observed.status,
                    observed.signal,
                    shown(arguments)
                )
            };
            let is_documented = observed
                .status
                .is_some_and(|status| DOCUMENTED.contains(&status));
            ensure(is_documented && !observed.text().contains("panicked"), what)?;
            if observed.status != Some(0) {
                let after = names(&directory);
                ensure(after == before, || {
                    format!("{}; left behind: {after:?}", what())
                })?;
            }
        }
    }
    Ok(())
}
