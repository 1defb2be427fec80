//! The list of named cases: every weakness that was found, and what held when it was tried.
//!
//! The first word of a name is the finding (`h1`, `m1`, `l12a`) where there was one. A case that
//! passes before its mend is not a case: each was seen to fail once, or says in its file what holds
//! it.

use super::stage::{AttackStage, Held};
use super::{escalation, faults, files, http, injection, kill, limits, memory, status};

/// One named case.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What the attacker does, in one line.
    pub(super) attack: &'static str,
    pub(super) run: fn(&AttackStage) -> Held,
    /// Whether other cases would disturb it, or it them: it counts processes, groups or settings of
    /// the whole machine, or takes its time or its memory.
    pub(super) is_alone: bool,
}

const fn case(name: &'static str, attack: &'static str, run: fn(&AttackStage) -> Held) -> Case {
    Case { name, attack, run, is_alone: false }
}

const fn alone(name: &'static str, attack: &'static str, run: fn(&AttackStage) -> Held) -> Case {
    Case { is_alone: true, ..case(name, attack, run) }
}

/// In the order in which they are begun.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("m1-recording", "control characters in every text of a recording", injection::recordings),
    case("m1-survey", "control characters in every text of a survey", injection::surveys),
    case("m1-names", "control characters in names of files, groups and mounts", injection::names),
    case("m1-process", "control characters in the name of a process", injection::process),
    case("html-markup", "markup in every text of a recording and a survey, as pages",
        injection::pages),
    case("l8-markdown", "markup in every text of a recording and a survey, as Markdown",
        injection::markdown),
    case("m2-status-forged", "the recording of a run is replaced while it runs", status::forged),
    case("m2-status-cut", "the recording of a run is cut while it runs", status::cut),
    case("m3-file-size-limit", "a limit of the size of files while a command is recorded",
        status::file_size_limit),
    case("m4-record-full", "the disk of `record` fills up and stays full", status::record_full),
    case("m4-ring-full", "the disk of `record --keep` fills up and has room again",
        status::ring_full),
    case("m5-browser-ticket", "another user reads the browser's command line",
        http::browser_ticket),
    alone("m6-sparse-files", "another user holds large files without a block open",
        memory::sparse_files),
    alone("m6-sparse-snapshot", "a snapshot of a file of 8 EiB without a block",
        memory::sparse_snapshot),
    case("m7-kept-surveys", "a link in the directory of kept surveys leads to files of others",
        escalation::kept_surveys),
    case("l1-idle-events", "a connection to the events of a page that is not live",
        http::idle_events),
    case("l2-refused-connections", "connections without the secret that stay",
        http::refused_connections),
    alone("l3-small-file-much-memory", "a recording of 65 KB that unpacks to 64 Mi changes",
        memory::changes),
    alone("l3-small-file-many-rows", "a recording that unpacks to two million rows of processes",
        memory::growths),
    alone("l4-redaction-time", "4,090 words to redact in 1 MiB of text", memory::redaction),
    case("l5-dead-fuse", "a file of a dead FUSE server is held open", files::dead_fuse),
    case("l6-special-files", "pipes, devices, directories and loops of links as input",
        files::special_inputs),
    alone("l7-recorder-stopped", "the recorder is stopped while its command runs on",
        status::stopped),
    case("l9-file-modes", "what is not redacted, and what replaces a private file, is read by others",
        files::modes),
    alone("l10-mount-stays-busy", "what `run` leaves behind holds the caller's directory",
        files::busy_mount),
    case("l11-foreign-lock", "another user locks the directory of a flight recorder",
        files::foreign_lock),
    case("l12a-nothing-left", "no room before the command begins: no file is left",
        faults::nothing_left),
    case("l12b-link-reason", "the output is a link of another user in a sticky directory",
        files::link_reason),
    case("l12c-pipe-as-output", "the output to replace is a pipe: it is not opened",
        files::pipe_as_output),
    alone("l12d-lab-output", "the directory of `lab --out` belongs to another user",
        escalation::lab_output),
    alone("l12e-undo", "`undo` removes the sockets and groups of killed recorders", kill::undo),
    case("l12f-signals", "signals that end a process by default reach the recorder",
        status::signals),
    case("l12g-long-arguments", "a command line of 3 MB of control characters",
        status::long_arguments),
    case("l12h-foreign-ring", "the directory of a flight recorder belongs to another user",
        files::foreign_ring),
    case("full-output", "standard output is full, closed or a pipe that nobody reads",
        files::full_output),
    case("limits-run", "every limit of setrlimit, small, on `run`", limits::of_run),
    case("limits-readers", "small limits on commands that read and write a file",
        limits::of_readers),
    case("faults-copy", "a sync of a copy fails, and what was durable is damaged", faults::of_copy),
    case("faults-run", "an error at each write of the recording of a run", faults::of_run),
    case("faults-writers", "an error at each write of exports, pages and imports",
        faults::of_writers),
    alone("kill-run", "run, run --apply and record are killed at random moments", kill::recorders),
    alone("kill-others", "warm restore, hog and view are killed, stopped and ended", kill::others),
    alone("h1-lab-log", "the database's user replaces its log in the lab by a link",
        escalation::lab_log),
];
