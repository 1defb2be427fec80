//! Files that are not what they seem: pipes, devices, links, locks and directories of other users,
//! as input and as output.
//!
//! Where another user is needed it is the one that owns nothing, by `setpriv`, as root.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use testkit::{Dead, DeadFuse, Tmpfs};

use super::judge::{Form, within};
use super::recording::plain;
use super::stage::{
    AttackStage, Held, PATIENCE, Stop, as_other_user, ensure, give_away, is_documented, names,
    need, need_admin, observe, shown, text, wait_until, words,
};
use crate::process::Running;

fn make_pipe(path: &Path) -> Held {
    need(&["mkfifo"])?;
    let made = Command::new("mkfifo").arg(path).status()?;
    ensure(made.success(), || "mkfifo failed".to_owned())
}

/// L6: what is not a regular file is refused by every reader, without waiting for it.
pub(super) fn special_inputs(stage: &AttackStage) -> Held {
    let directory = stage.scratch("special")?;
    let [pipe, loop_link, socket] = ["pipe", "loop", "socket"].map(|name| directory.join(name));
    make_pipe(&pipe)?;
    symlink(&loop_link, &loop_link)?;
    let _socket = std::os::unix::net::UnixListener::bind(&socket)?;
    let out = directory.join("out");
    let inputs = [
        text(&pipe),
        text(&loop_link),
        text(&socket),
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/",
        "/proc/self/mem",
    ];
    for input in inputs {
        for command in readers(input, text(&out)) {
            stage.attack(&command, Form::Text)?;
        }
    }
    Ok(())
}

fn readers(input: &str, out: &str) -> Vec<Vec<std::ffi::OsString>> {
    vec![
        words(["explain", input]),
        words(["export", "--to", "csv", "-o", out, input]),
        words(["view", "--html", out, input]),
        words(["compare", input, input]),
        words(["proof", "--claim", "x", "-o", out, input, input]),
        words(["import", input, "-o", out]),
        words(["warm", "restore", "--dry-run", input]),
    ]
}

/// L9: what is not redacted is for its owner alone, and so is what replaces such a file meanwhile.
pub(super) fn modes(stage: &AttackStage) -> Held {
    let directory = stage.scratch("modes")?;
    let recording_path = plain(stage, &directory, "hog_beside")?;
    let recording = text(&recording_path);
    let vmstat = directory.join("vmstat.txt");
    std::fs::write(&vmstat, testkit::tool_reports::VMSTAT)?;
    let at = |name: &str| directory.join(name);
    let [export, page, verdict, imported] =
        ["export.csv", "page.html", "verdict.json", "imported.trec"].map(at);
    let commands = [
        (words(["export", "--no-redact", "--to", "csv", "-o", text(&export), recording]), &export),
        (words(["view", "--no-redact", "--html", text(&page), recording]), &page),
        (words(["run", "--json", text(&verdict), "-q", "--", "true"]), &verdict),
        (words(["import", text(&vmstat), "-o", text(&imported)]), &imported),
    ];
    for (command, path) in &commands {
        stage.attack(command, Form::Text)?;
        is_private(path)?;
    }
    need(&["strace"])?;
    // Killed where the finished file is renamed: what is left is the temporary file.
    std::fs::set_permissions(&export, PermissionsExt::from_mode(0o600))?;
    let kill = "inject=rename,renameat,renameat2:signal=KILL:error=EIO";
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", kill];
    let observed = observe(stage.terrace_under(&wrapper, &commands[0].0))?;
    let parts: Vec<PathBuf> = names(&directory)
        .into_iter()
        .filter(|name| name.ends_with(".part"))
        .map(|name| directory.join(name))
        .collect();
    ensure(observed.status() != Some(0), || "the temporary file is not renamed".to_owned())?;
    // Without a name (`O_TMPFILE`) there is nothing to read.
    parts.iter().try_for_each(|part| is_private(part))
}

fn is_private(path: &Path) -> Held {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    ensure(mode & 0o077 == 0, || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} has mode {mode:o}: others read what is not redacted")
    })
}

/// L10: after `run` has ended, nothing of it keeps the caller's directory busy.
pub(super) fn busy_mount(stage: &AttackStage) -> Held {
    need_admin()?;
    let disk = Tmpfs::mount(4 << 20).map_err(Stop::Needs)?;
    let mut command = stage.terrace(&["run", "-q", "--", "true"]);
    command.current_dir(disk.path());
    let observed = observe(command)?;
    let unmounted = Command::new("umount").arg(disk.path()).stderr(Stdio::null()).status()?;
    ensure(observed.status() == Some(0), || format!("run: {:?}", observed.status()))?;
    ensure(unmounted.success(), || {
        "the directory that `run` was called in cannot be unmounted at once".to_owned()
    })
}

/// L11: a user who may read the directory of a flight recorder could lock it.
pub(super) fn foreign_lock(stage: &AttackStage) -> Held {
    need_admin()?;
    need(&["setpriv", "flock"])?;
    let directory = stage.scratch("foreign-lock")?;
    let ring = directory.join("ring");
    let record = ["record", "--keep", "10s", "--for", "1s", "-o", text(&ring)];
    observe(stage.terrace(&record))?;
    // Its owner may have opened it to others, who read the segments.
    std::fs::set_permissions(&ring, PermissionsExt::from_mode(0o755))?;
    let mut holders = Vec::new();
    for name in [String::new()].into_iter().chain(names(&ring)) {
        let mut command = as_other_user("flock");
        command.arg(ring.join(name)).args(["sleep", "60"]);
        holders.push(Running::silent(command)?);
    }
    thread::sleep(Duration::from_millis(500));
    let observed = observe(stage.terrace(&record))?;
    ensure(observed.status() == Some(0), || {
        format!(
            "a lock of another user: status {:?}, {:?}",
            observed.status(),
            observed.text().trim()
        )
    })
}

/// L12 h: root does not write into a directory that another user can change.
pub(super) fn foreign_ring(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("foreign-ring")?;
    let ring = directory.join("ring");
    std::fs::create_dir(&ring)?;
    give_away(&ring)?;
    let record = ["record", "--keep", "10s", "--for", "1s", "-o", text(&ring)];
    let observed = observe(stage.terrace(&record))?;
    let names = names(&ring);
    ensure(observed.status() != Some(0) && names.is_empty(), || {
        format!("root recorded into another user's directory: {names:?}")
    })
}

/// L12 b: a link of another user is not followed, with or without `fs.protected_symlinks`, and the
/// message says why.
pub(super) fn link_reason(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("sticky")?;
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o1777))?;
    let [target, link] = ["target.trec", "link.trec"].map(|name| directory.join(name));
    std::fs::write(&target, "")?;
    symlink(&target, &link)?;
    give_away(&link)?;
    let arguments = words(["record", "--for", "1s", "--force", "-o", text(&link)]);
    let observed = stage.attack(&arguments, Form::Text)?;
    ensure(std::fs::metadata(&target)?.len() == 0, || "the link was followed".to_owned())?;
    let says = observed.text();
    let is_refused = observed.status() == Some(3) && says.contains("another user can change");
    ensure(is_refused, || format!("status {:?}, a wrong reason: {says:?}", observed.status()))
}

/// L12 c: a pipe is refused before it is opened: who waits at its other end does not notice.
pub(super) fn pipe_as_output(stage: &AttackStage) -> Held {
    let directory = stage.scratch("pipe-output")?;
    let pipe = directory.join("pipe");
    make_pipe(&pipe)?;
    let mut command = Command::new("cat");
    command.arg(&pipe);
    let mut reader = Running::silent(command)?;
    thread::sleep(Duration::from_millis(300));
    for command in [
        words(["run", "-q", "--force", "-o", text(&pipe), "--", "true"]),
        words(["record", "--for", "1s", "--force", "-o", text(&pipe)]),
    ] {
        let observed = observe(stage.terrace(&command))?;
        ensure(!observed.is_late && observed.status() != Some(0), || {
            format!("{:?}: {}", observed.status(), shown(&command))
        })?;
    }
    let was_opened = wait_until(Duration::from_millis(500), || !reader.is_alive());
    let kind = std::fs::symlink_metadata(&pipe)?.file_type();
    ensure(kind.is_fifo() && !was_opened, || "the pipe was opened: its reader has ended".to_owned())
}

/// Standard output that is full, closed or a pipe without a reader.
pub(super) fn full_output(stage: &AttackStage) -> Held {
    let directory = stage.scratch("full-output")?;
    let recording_path = plain(stage, &directory, "hog_beside")?;
    let recording = text(&recording_path);
    for arguments in [
        words(["explain", recording]),
        words(["explain", "--json", recording]),
        words(["warm", "show"]),
        words(["export", "--to", "csv", recording]),
    ] {
        let (reader, writer) = io::pipe()?;
        drop(reader);
        let outputs =
            [Stdio::from(File::options().write(true).open("/dev/full")?), Stdio::from(writer)];
        for output in outputs {
            let mut command = stage.terrace(&arguments);
            command.stdout(output).stderr(Stdio::piped());
            let observed = Running::start(command)?.finish(within(PATIENCE))?;
            is_documented(&observed, || shown(&arguments))?;
        }
        let closed = ["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"];
        let observed = observe(stage.terrace_under(&closed, &arguments))?;
        is_documented(&observed, || format!("outputs closed: {}", shown(&arguments)))?;
    }
    Ok(())
}

/// L5: commands that look at the files of others do not wait for a dead one.
pub(super) fn dead_fuse(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("fuse")?;
    let mut fuse = DeadFuse::mount().map_err(Stop::Needs)?;
    let pid = fuse.hold().map_err(Stop::Needs)?.to_string();
    fuse.stop(Dead::Silent);
    let snapshot = directory.join("out.snap");
    let commands = [
        words(["warm", "show", "--pid", &pid]),
        words(["warm", "snapshot", "--pid", &pid, text(&snapshot)]),
        words(["warm", "restore", "--dry-run", "--pid", &pid]),
        words(["hog", "--size", "16m", "--count", "1", "--repeat", "1"]),
    ];
    for arguments in commands {
        let mut running = Running::silent(stage.terrace(&arguments))?;
        let has_ended = wait_until(Duration::from_secs(30), || !running.is_alive());
        if !has_ended {
            // No signal ends it: the connection must go first.
            drop(fuse);
            return Err(Stop::Failed(format!("it waits for the dead file: {}", shown(&arguments))));
        }
    }
    Ok(())
}
