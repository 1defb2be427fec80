//! Every limit of setrlimit, small, by the program `prlimit`.
//!
//! A command that is watched inherits the limits of its caller, as it would without Terrace. They
//! end the recording at most, never the command; commands that read a file end with a documented
//! status.

use super::recording::plain;
use super::stage::{
    AttackStage, Held, Stop, has_status, is_documented, need, no_part_left, observe, shown, text,
    words,
};

/// The status of the command, which nothing else has.
const STATUS: i32 = 9;

/// Limits that a shell and a recorder meet. An address space of 40 MiB and less ends any program
/// with threads before its first line, so it is not among them.
const OF_RUN: &[&str] = &[
    "--as=268435456",
    "--core=0",
    "--cpu=2",
    "--data=67108864",
    "--fsize=0",
    "--fsize=4096",
    "--fsize=100000",
    "--locks=0",
    "--memlock=0",
    "--msgqueue=0",
    "--nice=0",
    "--nofile=8",
    "--nofile=16",
    "--nofile=32",
    "--nofile=64",
    "--rss=0",
    "--rtprio=0",
    "--rttime=1000",
    "--sigpending=0",
    "--stack=1048576",
];

/// Limits that a reader of files meets.
const OF_READERS: &[&str] =
    &["--fsize=0", "--fsize=4096", "--nofile=8", "--memlock=0", "--stack=1048576", "--rttime=1000"];

/// The status is the command's, or 125 if it was not begun.
pub(super) fn of_run(stage: &AttackStage) -> Held {
    need(&["prlimit"])?;
    let directory = stage.scratch("limits")?;
    let [out, mark] = ["out.trec", "mark"].map(|name| directory.join(name));
    // A directory is made under any limit of the size of files.
    let script = format!("mkdir {}; sleep 0.3; exit {STATUS}", text(&mark));
    for limit in OF_RUN {
        let _ = std::fs::remove_file(&out);
        let _ = std::fs::remove_dir(&mark);
        let command = stage.recorded(&["prlimit", limit, "--"], &out, &script);
        let observed = observe(command)?;
        let expected = if mark.exists() { STATUS } else { 125 };
        has_status(&observed, expected)
            .map_err(|stop| Stop::Failed(format!("{limit}: {stop}: {:?}", observed.text())))?;
    }
    Ok(())
}

/// Commands that read a recording and write a file, under each limit.
pub(super) fn of_readers(stage: &AttackStage) -> Held {
    need(&["prlimit"])?;
    let directory = stage.scratch("reader-limits")?;
    let recording = plain(stage, &directory, "hog_beside")?;
    let (recording, out) = (text(&recording), directory.join("out"));
    let out = text(&out);
    let commands = [
        words(["explain", recording]),
        words(["explain", "--json", "-o", out, recording]),
        words(["view", "--html", out, recording]),
        words(["export", "--to", "trec", "-o", out, recording]),
        words(["compare", recording, recording]),
        words(["warm", "show"]),
    ];
    for limit in OF_READERS {
        for arguments in &commands {
            let command = stage.terrace_under(&["prlimit", limit, "--"], arguments);
            let what = || format!("{limit}: {}", shown(arguments));
            is_documented(&observe(command)?, what)?;
            no_part_left(&directory).map_err(|stop| Stop::Failed(format!("{}: {stop}", what())))?;
        }
    }
    Ok(())
}
