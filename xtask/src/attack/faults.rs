//! Errors of the file system at each write: no space, quota, too large, an error of the disk.
//!
//! `strace` gives the error in place of the call, so no disk is needed and every write is reached.
//! Of a run only calls on the recording are concerned, never those of the command.

use std::path::Path;

use testkit::tool_reports::VMSTAT;

use super::recording::plain;
use super::stage::{
    AttackStage, Held, Stop, ensure, has_status, is_documented, names, need, observe, shown, text,
    words,
};

const ERRORS: &[&str] = &["ENOSPC", "EIO", "EDQUOT", "EFBIG"];
const CALLS: &str = "write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync";
/// The status of the command, which nothing else has.
const STATUS: i32 = 9;
/// A short recording has fewer writes.
const WRITES: u32 = 6;
/// As many as the shortest export has, and some.
const WRITER_WRITES: u32 = 3;
/// A file of so many bytes is made durable by itself.
const COPIED_BYTES: usize = 2 << 20;

/// The program that gives this error at the write of this number, of `path` or of all files.
fn injected<'a>(path: Option<&'a Path>, fault: &'a str) -> Vec<&'a str> {
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", "signal=none"];
    if let Some(path) = path {
        wrapper.extend(["-P", text(path)]);
    }
    wrapper.extend(["-e", fault]);
    wrapper
}

fn fault(error: &str, when: &str) -> String {
    format!("inject={CALLS}:error={error}:when={when}")
}

/// Whether `strace` may trace here.
fn need_strace(stage: &AttackStage) -> Held {
    need(&["strace"])?;
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null"];
    let observed = observe(stage.terrace_under(&wrapper, &["--version"]))?;
    match observed.status() {
        Some(0) => Ok(()),
        _ => Err(Stop::Needs("strace to be allowed to trace".to_owned())),
    }
}

/// The status is the command's or, before it begins, 125; the recording can be read or is not
/// there.
pub(super) fn of_run(stage: &AttackStage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("faults")?;
    let [out, mark] = ["out.trec", "mark"].map(|name| directory.join(name));
    let script = format!("echo begun >{}; sleep 0.3; exit {STATUS}", text(&mark));
    let mut reached = 0;
    for number in 1..=WRITES {
        let error = ERRORS[(number as usize + stage.seed as usize) % ERRORS.len()];
        for when in [number.to_string(), format!("{number}+")] {
            for path in [&out, &mark] {
                let _ = std::fs::remove_file(path);
            }
            let fault = fault(error, &when);
            let wrapper = injected(Some(&out), &fault);
            let observed = observe(stage.recorded(&wrapper, &out, &script))?;
            let what = format!(
                "{error} at write {when}: status {:?}, signal {:?}",
                observed.status(),
                observed.signal()
            );
            let is_right = observed.status() == Some(if mark.exists() { STATUS } else { 125 });
            ensure(is_right && !observed.text().contains("panicked"), || what.clone())?;
            reached += u32::from(observed.text().contains("terrace"));
            if out.exists() && mark.exists() {
                let read = observe(stage.terrace(&["explain", text(&out)]))?;
                let is_read =
                    matches!(read.status(), Some(0 | 1)) || std::fs::metadata(&out)?.len() < 16;
                ensure(is_read, || {
                    format!("{what}; the recording cannot be read: {:?}", read.text())
                })?;
            }
        }
    }
    ensure(reached > 0, || "no error was ever noticed: the case tests nothing".to_owned())
}

/// L12 a: the first write fails: status 125, and no file that the next run would refuse to replace.
pub(super) fn nothing_left(stage: &AttackStage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("nothing-left")?;
    let out = directory.join("out.trec");
    let arguments = words(["run", "-q", "-o", text(&out), "--", "true"]);
    let fault = fault("ENOSPC", "1+");
    let wrapper = injected(Some(&out), &fault);
    has_status(&observe(stage.terrace_under(&wrapper, &arguments))?, 125)?;
    let left = names(&directory);
    ensure(left.is_empty(), || format!("left behind: {left:?}"))
}

/// A file is written whole or not at all: what was there before stays, and nothing is left beside
/// it.
pub(super) fn of_writers(stage: &AttackStage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("fault-writers")?;
    let recording = plain(stage, &directory, "hog_beside")?;
    let (recording, out) = (text(&recording), directory.join("out"));
    let vmstat = directory.join("vmstat.txt");
    std::fs::write(&vmstat, VMSTAT)?;
    let out_name = text(&out);
    let commands = [
        words(["export", "--to", "csv", "-o", out_name, recording]),
        words(["export", "--to", "trec", "-o", out_name, recording]),
        words(["explain", "--json", "-o", out_name, recording]),
        words(["view", "--html", out_name, recording]),
        words(["import", text(&vmstat), "-o", out_name]),
    ];
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len());
    for (turn, arguments) in commands.iter().enumerate() {
        let _ = std::fs::remove_file(&out);
        has_status(&observe(stage.terrace(arguments))?, 0)?;
        let whole = size(&out);
        for number in 1..=WRITER_WRITES {
            let _ = std::fs::remove_file(&out);
            let error = ERRORS[(turn + number as usize) % ERRORS.len()];
            let before = names(&directory);
            let fault = fault(error, &format!("{number}+"));
            let wrapper = injected(None, &fault);
            let observed = observe(stage.terrace_under(&wrapper, arguments))?;
            let what = || format!("{error} at write {number}: {}", shown(arguments));
            is_documented(&observed, what)?;
            if observed.status() != Some(0) {
                let mut after = names(&directory);
                // The directory is synced after the whole file was put in its place.
                if size(&out) * 100 >= whole * 99 {
                    after.retain(|name| name != "out");
                }
                ensure(after == before, || format!("{}; left behind: {after:?}", what()))?;
            }
        }
    }
    Ok(())
}

/// A file of a copy that was durable, and that the file system damaged when a sync failed, is
/// copied again by the next run: its length and its times do not show the damage.
pub(super) fn of_copy(stage: &AttackStage) -> Held {
    need_strace(stage)?;
    let directory = stage.scratch("fault-copy")?;
    let [source, target] = ["source", "target"].map(|name| directory.join(name));
    std::fs::create_dir(&source)?;
    let bytes = vec![7; COPIED_BYTES];
    std::fs::write(source.join("file"), &bytes)?;
    let arguments = words(["copy", text(&source), text(&target)]);
    let wrapper = injected(None, "inject=syncfs:error=EIO:when=1");
    let observed = observe(stage.terrace_under(&wrapper, &arguments))?;
    has_status(&observed, 1)?;
    ensure(observed.text().contains("begins anew"), || observed.text().to_owned())?;
    let left = names(&directory).into_iter().find(|name| name.starts_with(".terrace-copy."));
    let hidden = left.ok_or_else(|| Stop::Failed("nothing was left".to_owned()))?;
    let sealed = directory.join(hidden).join("tree/target/file");
    let modified = std::fs::metadata(&sealed)?.modified()?;
    std::fs::write(&sealed, vec![0; COPIED_BYTES])?;
    std::fs::File::options().write(true).open(&sealed)?.set_modified(modified)?;
    has_status(&observe(stage.terrace(&arguments))?, 0)?;
    let is_whole = std::fs::read(target.join("file"))? == bytes;
    ensure(is_whole, || "the copy has what the file system damaged".to_owned())
}
