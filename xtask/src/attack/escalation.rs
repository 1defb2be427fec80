//! Ways by which another user would make root write, remove or give away files of third parties.
//!
//! Root is led by links into directories of its own; nothing there may change.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::stage::{
    AttackStage, Held, PATIENCE, Stop, ensure, give_away, names, need, need_admin, text, wait_until,
};
use crate::process::{self, Limits, Running};

/// `survey --quick` takes at most 15 s on an idle machine.
const SURVEY_LIMIT: Duration = Duration::from_secs(180);
/// The lab starts its applications in some seconds, in a debug build.
const LAB_LIMIT: Duration = Duration::from_secs(150);
/// What was linked is opened at once when the application starts.
const LAB_GRACE: Duration = Duration::from_secs(15);

/// M7: the directory of kept surveys is a link of another user; root made and removed files there.
pub(super) fn kept_surveys(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("kept")?;
    let [home, evil, victim] = ["home", "evil", "victim"].map(|name| directory.join(name));
    for path in [&home.join(".local"), &evil.join("terrace"), &victim] {
        std::fs::create_dir_all(path)?;
    }
    symlink(&evil, home.join(".local/state"))?;
    symlink(&victim, evil.join("terrace/surveys"))?;
    give_away(&evil.join("terrace/surveys"))?;
    give_away(&evil.join("terrace"))?;
    // As /tmp is: root's, and everybody may make something in it.
    std::fs::set_permissions(&evil, PermissionsExt::from_mode(0o1777))?;
    let mut command = stage.terrace(&["survey", "--quick"]);
    command.env("HOME", &home).env_remove("XDG_STATE_HOME");
    let observed = process::observe(command, Limits { time: SURVEY_LIMIT, memory_bytes: None })?;
    ensure(observed.status() == Some(0), || format!("survey: {:?}", observed.status()))?;
    let made = names(&victim);
    ensure(made.is_empty(), || format!("root wrote through another user's link: {made:?}"))
}

/// L12 d: `result.json` was written through a link that another user put into the output's
/// directory.
pub(super) fn lab_output(stage: &AttackStage) -> Held {
    need_admin()?;
    let directory = stage.scratch("lab-output")?;
    let [out, victim] = ["out", "victim"].map(|name| directory.join(name));
    std::fs::create_dir(&out)?;
    give_away(&out)?;
    std::fs::write(&victim, "before")?;
    let arguments = ["lab", "run", "memory-copy-2001", "--budget", "3s", "--out", text(&out)];
    let mut running = Running::silent(stage.terrace(&arguments))?;
    // Late enough that the directory was found empty, early enough that nothing is there yet.
    thread::sleep(Duration::from_millis(500));
    for name in ["result.json", "recording.trec"] {
        let _ = symlink(&victim, out.join(name));
    }
    wait_until(LAB_LIMIT, || !running.is_alive());
    let after = std::fs::read_to_string(&victim)?;
    ensure(after == "before", || "root wrote through a link of another user".to_owned())
}

/// H1: the database's user replaced its log by a link, and root opened it.
pub(super) fn lab_log(stage: &AttackStage) -> Held {
    need_admin()?;
    need(&["setpriv"])?;
    let versions = Path::new("/usr/lib/postgresql");
    if process::find("postgres").is_none() && names(versions).is_empty() {
        return Err(Stop::Needs("postgresql".to_owned()));
    }
    let directory = stage.scratch("lab-log")?;
    let [disk, out, private, trace] =
        ["disk", "out", "private", "trace"].map(|name| directory.join(name));
    std::fs::create_dir(&disk)?;
    std::fs::create_dir(&private)?;
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o700))?;
    let victim = private.join("victim");
    std::fs::write(&trace, "")?;
    std::fs::set_permissions(&trace, PermissionsExt::from_mode(0o666))?;
    let attacker = Running::silent(planter(&disk, &victim, &trace))?;
    let arguments = [
        "lab",
        "run",
        "recovery-2012",
        "--app",
        "postgresql",
        "--runs",
        "1",
        "--repeat",
        "1",
        "--memory",
        "128m",
        "--limit",
        "5s",
        "--disk",
        text(&disk),
        "--out",
        text(&out),
    ];
    let mut lab = Running::silent(stage.terrace(&arguments))?;
    let has = |word: &str| std::fs::read_to_string(&trace).is_ok_and(|trace| trace.contains(word));
    let began = wait_until(LAB_LIMIT, || has("seen") || !lab.is_alive());
    wait_until(LAB_GRACE, || victim.exists() || !lab.is_alive());
    let was_written = victim.exists();
    drop(attacker);
    process::signal(lab.pid(), "TERM")?;
    wait_until(PATIENCE, || !lab.is_alive());
    ensure(!was_written, || {
        "root made a file for the database's user outside of its directory".to_owned()
    })?;
    if began && has("seen") {
        Ok(())
    } else {
        Err(Stop::Needs("the lab to start PostgreSQL here".to_owned()))
    }
}

/// The database's user, who makes every log in its directory a link to `victim` and notes that in
/// `trace`.
fn planter(disk: &Path, victim: &Path, trace: &Path) -> Command {
    let (disk, victim, trace) = (text(disk), text(victim), text(trace));
    let script = format!(
        "while :; do for d in {disk}/*/postgresql; do [ -d $d ] || continue; echo seen >>{trace}; \
         for f in $d/complaints.txt $d/log.txt $d/*.txt $d/*.log; do [ -L $f ] || \
         {{ rm -f $f && ln -s {victim} $f && echo linked >>{trace}; }}; done; done; \
         sleep 0.001; done 2>/dev/null"
    );
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "sh", "-c"]);
    command.arg(script);
    command
}
