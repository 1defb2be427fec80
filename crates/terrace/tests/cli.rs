//! The face as a whole: refusals, help, manual, completions, colour, closed pipes, `-o`.
//! What the commands measure is tested in their own files.

mod support;

use std::process::{Command, Stdio};
use support::{TERRACE, as_ordinary_user, closed_pipe, command, has_program, run, terrace};
use testkit::TempDir;

/// Command lines that make no sense, and what the refusal says.
const NONSENSE: &[(&str, &str)] = &[
    ("", "no command given"),
    ("surwey", "unknown command `surwey`"),
    ("measure", "measure: no probe given"),
    ("measure mmcpy", "unknown probe `mmcpy`"),
    ("--color red survey", "--color `red`"),
    ("survey --quik", "unknown option `--quik`"),
    ("survey extra", "unexpected `extra`"),
    ("completions", "SHELL is missing"),
    ("completions tcsh", "not one of bash"),
    ("measure iolat", "PATH is missing"),
    ("measure memcpy --size 0", "at least 1 byte"),
    ("measure memcpy --size -1m", "a size cannot be negative"),
    ("measure memcpy --size 99999999t", "cannot exceed"),
    ("measure memcpy --size 4q", "unknown unit `q`"),
    ("measure memcpy --size m", "a size is a number"),
    ("measure memcpy --size", "--size needs a value"),
    ("measure memcpy --size 128g", "64 GiB"),
    ("measure memcpy --block 0", "at least 1 byte"),
    ("measure memcpy --threads 0", "whole number from 1"),
    ("measure memcpy --stride -3", "a stride is"),
    ("measure memcpy --offset 2m", "an offset is"),
    ("measure memcpy --budget 0", "at least 1 ms"),
    ("measure memcpy --budget -5s", "a duration cannot be negative"),
    ("measure memcpy --budget 1y", "unknown unit `y`"),
    ("measure memcpy --budget 9d", "cannot exceed 7 days"),
    ("measure memcpy --cpu -1", "a processor is"),
    ("measure memcpy --cpu 99999", "99999"),
    ("measure memcpy --pages 1g", "not one of 4k, thp, hugetlb"),
    ("measure memcpy --operation move", "not one of copy, read, write"),
    ("measure memcpy --json --csv", "cannot be used with"),
    ("measure memcpy frobnicate", "unknown method `frobnicate`"),
    ("measure memcpy --method memcpy,memcpi", "unknown method `memcpi`"),
    ("measure memcpy --disassemble frobnicate", "unknown method"),
    ("measure memcpy --classic 16m", "--classic: a size and a count"),
    ("measure memcpy --stride 12 memcpy", "stride"),
    ("measure memlat --size 16", "so small a buffer"),
    ("measure memlat --pattern zigzag", "not one of random, in-page"),
    ("measure faults --limit 4k", "at least 2 MiB"),
    ("measure faults --way swap", "not one of 4k, thp, populate"),
    ("measure compute --iterations 0", "a count is"),
    ("measure compute --iterations 1.5", "a count is"),
    ("measure iolat . -c 0", "a count is"),
    ("measure iolat . -s 0", "at least 1 byte"),
    ("measure iolat . -D -C", "cannot be used with"),
    ("measure iolat . -s 1m -S 4k", "working set is smaller"),
    ("measure iolat /nonexistent", "no such file"),
    ("measure seqio . --bs 1000", "multiple of 4 KiB"),
    ("measure seqio . --iodepth 0", "a queue depth is"),
    ("measure seqio . --direct --uncached", "cannot be used with"),
    ("measure seqio . --size 4k", "less than one block"),
    ("record", "--output FILE is missing"),
    ("record -o x --pid 0", "a process is"),
    ("record -o x --pid 1 --unit y", "cannot be used with"),
    ("record -o x --for 0", "at least 1 ms"),
    ("record -o x --rate 101", "from 1 to 100"),
    ("record -o x --trace network", "not one of sched, block"),
    ("record -o x --trace none,sched", "`none` cannot be combined with others"),
    ("mark", "TEXT... is missing"),
    ("explain /nonexistent", "no such file"),
    ("explain x --at 25:00", "a time of day is"),
    ("explain x --at 1s --from 2s", "cannot be used with"),
    ("explain x --from -1s", "cannot be negative"),
    ("explain x --json --details", "cannot be used with"),
    ("export x", "--to FORM is missing"),
    ("export x --to xml", "not one of csv, json"),
    ("export x --to csv --redact --no-redact", "cannot be used with"),
    ("export /nonexistent --to csv", "no such file"),
    ("undo now", "unexpected `now`"),
    ("warm", "no action given"),
    ("warm up", "unknown action `up`"),
    ("warm show --pid 0", "a process is"),
    ("warm show --pid 1,x", "a process is"),
    ("warm show --pid 1 --all", "cannot be used with"),
    ("warm show --pid 4194305", "no process 4194305"),
    ("warm show --app no-such-program", "no process is called"),
    ("warm show --cgroup /no/such/group", "no control group"),
    ("warm show --json -o /nonexistent/x", "no such file"),
    ("warm restore", "whose memory?"),
    ("warm restore --only files", "whose memory?"),
    ("warm restore x --all", "cannot be used with"),
    ("warm restore /nonexistent", "no such file"),
    ("warm restore /dev/null", "snapshot"),
    ("warm restore --metadata /nonexistent", "no such file"),
    ("warm restore --all --only disk", "not one of anonymous, shared, files"),
    ("warm restore --all --method fast", "readers:N"),
    ("warm restore --all --method readers:1", "readers:N"),
    ("warm restore --all --floor 0", "at least 1 byte"),
    ("warm restore --all --max-time 0", "at least 1 ms"),
    ("warm restore --all --max-bytes -1", "cannot be negative"),
    ("warm restore --all --first x", "a process is"),
    ("warm restore --all --dry-run --first 4194305", "not among"),
    ("warm watch x", "unexpected `x`"),
    ("warm watch --quiet 0", "at least 1 s"),
    ("warm watch --quiet 999ms", "at least 1 s"),
    ("warm watch --only files", "the kernel does not count which files"),
    ("warm watch --only disk", "not one of anonymous, shared, files"),
    ("warm watch --pid 1 --app x", "cannot be used with"),
    ("warm watch --dry-run", "unknown option `--dry-run`"),
    ("warm watch --max-bytes -1", "cannot be negative"),
    ("warm snapshot", "FILE is missing"),
    ("warm snapshot /nonexistent/x --pid 4194305", "no process"),
    ("warm evict", "PATH|PID is missing"),
    ("warm evict /nonexistent", "no such file"),
    ("warm evict 4194305", "no such process"),
];

/// As above, of `run`: 125, because every status below belongs to the command.
const NONSENSE_OF_RUN: &[(&str, &str)] = &[
    ("run", "CMD... is missing"),
    ("run --", "CMD... is missing"),
    ("run --frobnicate -- true", "unknown option `--frobnicate`"),
    ("run --rate 0 -- true", "from 1 to 100"),
    ("run --repeat 0 -- true", "repeats are"),
    ("run --cache cold -- true", "--cache-file"),
    ("run --cache cold --cache-file /nonexistent -- true", "no such file"),
    ("run --cache-file x -- true", "--cache"),
    ("run --trace sched,none -- true", "`none` cannot be combined with others"),
    ("run --quiet --details -- true", "cannot be used with"),
    ("run --json - -- true", "belongs to the command"),
    ("run --json /nonexistent/x -- true", "no such file"),
    ("run --prepare false -- true", "--prepare"),
];

/// Each is refused with one line and exit status 2, and the line says what is wrong.
#[test]
fn nonsense_is_refused_in_one_line() {
    for (line, words) in NONSENSE {
        terrace(line).refused(2, words);
    }
}

#[test]
fn nonsense_of_run_has_a_status_of_its_own() {
    for (line, words) in NONSENSE_OF_RUN {
        terrace(line).refused(125, words);
    }
}

#[test]
fn a_near_name_is_suggested() {
    let hint = |line: &str| terrace(line).err.lines().nth(1).unwrap().to_owned();
    assert_eq!(hint("surwey"), "hint: did you mean `survey`?");
    assert_eq!(hint("measure memcpy --sise 1"), "hint: did you mean `--size`?");
    assert!(hint("measure memcpy rep-movs").contains("`rep-movs"));
}

#[test]
fn help_names_commands_exit_status_units_and_environment() {
    let help = terrace("--help").done();
    for word in [
        "survey",
        "run",
        "record",
        "explain",
        "view",
        "top",
        "compare",
        "proof",
        "mark",
        "export",
        "import",
        "undo",
        "measure",
        "manual",
        "completions",
        "Exit status",
        "Units",
        "NO_COLOR",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
    for command in [
        "survey",
        "run",
        "record",
        "explain",
        "compare",
        "proof",
        "measure memcpy",
        "measure iolat",
        "completions",
    ] {
        assert!(terrace(&format!("{command} --help")).done().contains("Usage:"));
    }
    let version = terrace("--version").done();
    assert!(version.starts_with("terrace "));
    for part in ["commit ", "target ", std::env::consts::ARCH, "recorders ", "eBPF, perf"] {
        assert!(version.contains(part), "{part}: {version}");
    }
    assert_eq!(terrace("-V").done().lines().count(), 1);
}

/// As packages need them: `man terrace-boost-attach`.
#[test]
fn every_command_has_a_page_of_its_own() {
    let directory = TempDir::new();
    terrace(&format!("manual --to {}", directory.join("pages").display())).done();
    let page = |name: &str| std::fs::read_to_string(directory.join("pages").join(name));
    for name in ["terrace", "terrace-run", "terrace-boost-attach", "terrace-measure-memcpy"] {
        let text = page(&format!("{name}.1")).unwrap();
        assert!(text.contains("\n.SH SYNOPSIS"), "{name}: {text}");
    }
    assert_eq!(page("terrace.1").unwrap(), terrace("manual").done());
    assert!(page("terrace-hog-process.1").is_err(), "how this program calls itself");
}

#[test]
fn the_manual_has_every_command_and_renders_without_warnings() {
    let manual = terrace("manual").done();
    for command in [
        "SURVEY",
        "RUN",
        "RECORD",
        "EXPLAIN",
        "COMPARE",
        "PROOF",
        "MARK",
        "EXPORT",
        "UNDO",
        "MEMCPY",
        "MEMLAT",
        "FAULTS",
        "COMPUTE",
        "IOLAT",
        "SEQIO",
        "COMPLETIONS",
    ] {
        assert!(
            manual.contains(&format!("{command}\""))
                || manual.contains(&format!("TERRACE {command}")),
            "{command}"
        );
    }
    assert!(manual.contains("EXIT STATUS") && manual.contains("NO_COLOR"));
    if !has_program("man") {
        return testkit::skip("man");
    }
    let directory = TempDir::new();
    let file = directory.join("terrace.1");
    std::fs::write(&file, manual).unwrap();
    let mut man = Command::new("man");
    man.args(["--warnings", "-E", "UTF-8", "-l"]).arg(&file).env("MANWIDTH", "100");
    let rendered = run(man);
    assert_eq!(rendered.err, "");
    assert!(rendered.out.contains("EXIT STATUS"), "{}", rendered.out);
}

#[test]
fn completions_are_scripts_that_shells_accept() {
    let directory = TempDir::new();
    for (shell, check) in
        [("bash", Some("bash")), ("zsh", Some("zsh")), ("fish", Some("fish")), ("elvish", None)]
    {
        let script = terrace(&format!("completions {shell}")).done();
        assert!(script.contains("memcpy"), "{shell}");
        let Some(program) = check.filter(|program| has_program(program)) else {
            continue;
        };
        let file = directory.join(shell);
        std::fs::write(&file, script).unwrap();
        let mut checked = Command::new(program);
        checked.arg("-n").arg(&file);
        assert_eq!(run(checked).code, Some(0), "{shell}");
    }
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let line = "measure memcpy --list";
    assert!(!terrace(line).done().contains('\x1b'));
    assert!(terrace(&format!("{line} --color always")).done().contains('\x1b'));
    assert!(!terrace(&format!("{line} --color never")).done().contains('\x1b'));
}

/// `script` gives the program a terminal; there NO_COLOR decides.
#[test]
fn on_a_terminal_no_color_is_obeyed_and_the_progress_line_goes_away() {
    if !has_program("script") {
        return testkit::skip("script (util-linux)");
    }
    let on_terminal = |no_color: &str| {
        let mut script = Command::new("script");
        let line = format!("{TERRACE} measure compute --budget 2s");
        script.args(["-qec", &line, "/dev/null"]).env("NO_COLOR", no_color).env("TERM", "xterm");
        run(script).out
    };
    let (plain, coloured) = (on_terminal("1"), on_terminal(""));
    assert!(coloured.contains("\x1b[1m"), "{coloured:?}");
    assert!(!plain.contains("\x1b[1m"), "{plain:?}");
    let erased = plain.rfind("\r\x1b[J").expect("the progress line is erased");
    assert!(plain.find("measuring").unwrap() < erased, "{plain:?}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for line in ["manual", "measure memcpy --list", "measure memcpy --list --json"] {
        closed_pipe(line);
    }
}

#[test]
fn a_full_device_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut manual = command("manual");
    let output = manual.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(err, "terrace: manual: cannot write standard output: no space left on device\n");
}

#[test]
fn a_file_is_written_whole_and_alone() {
    let directory = TempDir::new();
    let file = directory.join("result.json");
    let line = format!("measure memcpy --list --json -o {}", file.display());
    assert_eq!(terrace(&line).done(), "");
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&first).is_ok());
    assert_eq!(directory.names(), ["result.json"]);
    // Once more over a link, which stays a link, and keeps the file's mode.
    use std::os::unix::fs::{PermissionsExt, symlink};
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let link = directory.join("link");
    symlink("result.json", &link).unwrap();
    terrace(&format!("measure memcpy --list -o {}", link.display())).done();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("method"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn standard_output_has_two_more_names() {
    for name in ["-", "/dev/stdout"] {
        let text = terrace(&format!("measure memcpy --list -o {name}")).done();
        assert!(text.starts_with("method"), "{text}");
    }
}

#[test]
fn only_a_regular_file_is_written() {
    let directory = TempDir::new();
    let at = |name: &str| directory.join(name).display().to_string();
    std::fs::create_dir(at("sub")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    for (path, words) in [
        (at("sub"), "it is a directory"),
        ("/dev/null".to_owned(), "a device or a pipe"),
        (at("dangling"), "a symbolic link to nothing"),
        (at("missing/x"), "no such file or directory"),
        (at("sub/.."), "it is a directory"),
    ] {
        // Refused before anything is measured: a run would take an hour.
        terrace(&format!("measure compute --budget 1h -o {path}")).refused(2, words);
    }
    let mut names = directory.names();
    names.sort();
    assert_eq!(names, ["dangling", "sub"]);
}

#[test]
fn an_ordinary_user_may_not_write_everywhere() {
    let directory = TempDir::new();
    if testkit::is_root() {
        let path = directory.join("x").display().to_string();
        let Some(command) = as_ordinary_user(&format!("measure compute --budget 1h -o {path}"))
        else {
            return;
        };
        run(command).refused(3, "permission denied");
    } else {
        terrace("measure compute --budget 1h -o /x").refused(3, "");
    }
}

#[test]
fn the_host_is_named_in_json_only_when_asked() {
    // A shorter budget can end before the first trial on a busy machine.
    let text = terrace("measure compute --budget 2s --json --host-name").done();
    let named: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(named["machine"]["host"].is_string());
}

/// `docs/cli.md` is written by hand, so that this holds it to the declaration.
#[test]
fn every_option_is_in_the_documentation() {
    const DOCUMENT: &str = include_str!("../../../docs/cli.md");
    for command in [
        "survey",
        "run",
        "record",
        "mark",
        "explain",
        "compare",
        "proof",
        "export",
        "import",
        "undo",
        "hog",
        "boost attach",
        "boost install",
        "boost uninstall",
        "ramdisk adopt",
        "ramdisk create",
        "ramdisk extract",
        "ramdisk grow",
        "ramdisk install",
        "ramdisk keep",
        "ramdisk list",
        "ramdisk release",
        "ramdisk remove",
        "ramdisk restore",
        "ramdisk save",
        "ramdisk status",
        "ramdisk try",
        "ramdisk uninstall",
        "ramdisk why",
        "lab run file-copy-2008",
        "lab run memory-copy-2001",
        "lab run ramdisk-puzzle",
        "lab run recovery-2012",
        "warm show",
        "warm restore",
        "warm snapshot",
        "warm evict",
        "measure memcpy",
        "measure memlat",
        "measure faults",
        "measure compute",
        "measure iolat",
        "measure seqio",
    ] {
        // The actions of `warm` share options, and so a section; experiments have one, too.
        let title = match command.split_once(' ') {
            Some((title @ ("warm" | "lab"), _)) => title,
            _ => command,
        };
        let (_, section) = DOCUMENT
            .split_once(&format!("## `terrace {title}"))
            .unwrap_or_else(|| panic!("no section for {command}"));
        let section = section.split("\n## ").next().unwrap();
        let help = terrace(&format!("{command} -h")).done();
        let words = help.split_whitespace().map(|word| word.trim_end_matches([',', ']', ')']));
        for option in words.filter(|word| word.starts_with("--")) {
            let shared = DOCUMENT.split("## `terrace").next().unwrap();
            let is_in = |text: &str| text.contains(&format!("`{option}"));
            let known = is_in(section) || is_in(shared) || section.contains(&format!(", {option}"));
            assert!(known, "{command}: {option} is not documented");
        }
    }
}
