//! The lines that it prints help, and the recipes of docs/doctor.md are enough and not more than
//! that: each capability of them is taken away once.
//!
//! Where a tool can run containers the recipe itself is run; its rights are tried in any case, by
//! `setpriv` on this machine.

use crate::support::{TERRACE, has_program, run};
use crate::{ORDINARY, examined, examined_by, health, report_of, root_has, source};
use std::path::Path;
use std::process::Command;
use testkit::TempDir;

const PAGE: &str = include_str!("../../../../docs/doctor.md");

/// What each capability of the recipe that watches a machine is for.
const USES: [(&str, &str); 5] = [
    ("BPF", "ebpf"),
    ("PERFMON", "ebpf"),
    ("SYS_PTRACE", "other_processes"),
    ("NET_ADMIN", "taskstats"),
    ("SYSLOG", "kernel_symbols"),
];

/// The command of docs/doctor.md that begins so, its lines joined.
fn recipe(start: &str) -> String {
    let at = PAGE.find(&format!("\n{start}")).unwrap_or_else(|| panic!("{start}"));
    let text = &PAGE[at + 1..];
    let command = text.split("\n```").next().unwrap();
    command.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values of an option in a command.
fn values<'a>(command: &'a str, option: &str) -> Vec<&'a str> {
    let prefix = format!("{option}=");
    command.split(' ').filter_map(|word| word.strip_prefix(prefix.as_str())).collect()
}

#[test]
fn the_capabilities_of_the_file_open_the_programs_to_a_user() {
    if !root_has("ebpf") || !has_program("setcap") {
        return testkit::skip("programs in the kernel, setpriv and setcap");
    }
    let directory = TempDir::new();
    let copy = directory.join("terrace");
    std::fs::copy(TERRACE, &copy).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let program = copy.to_str().unwrap();
    let Some(before) = examined_by(ORDINARY, program) else { return };
    let line = source(&before, "ebpf")["lines"][1]["line"].as_str().unwrap().to_owned();
    assert!(line.starts_with("sudo setcap "), "{line}");
    let line = line.trim_start_matches("sudo ").replace("$(command -v terrace)", program);
    if !Command::new("sh").args(["-c", &line]).status().unwrap().success() {
        return testkit::skip("a file system that keeps capabilities");
    }
    let after = examined_by(ORDINARY, program).unwrap();
    assert_eq!(health(&before, "ebpf"), "missing");
    assert_ne!(health(&after, "ebpf"), "missing", "{}", source(&after, "ebpf"));
    assert_eq!(health(&after, "processor_samples"), "works");
    // What takes root stays closed.
    assert_eq!(health(&after, "kernel_symbols"), "missing");
}

#[test]
fn the_setting_that_it_names_opens_delay_accounting() {
    let Some(report) = examined(&["env"]) else { return };
    let one = source(&report, "delay_accounting");
    if !testkit::is_root() || one["obstacle"] != "setting" {
        return testkit::skip("root, and delay accounting that is off");
    }
    assert_eq!(one["lines"][0]["line"], "sudo sysctl kernel.task_delayacct=1");
    // `--apply` does the same, and restores it.
    let directory = TempDir::new();
    let file = directory.join("x.trec").display().to_string();
    let mut apply = testkit::with_default_signals(TERRACE);
    apply.args(["run", "--quiet", "--apply", "-o", &file, "--", TERRACE, "doctor", "--json"]);
    let inside = report_of(run(apply));
    assert_eq!(health(&inside, "delay_accounting"), "works");
}

#[test]
fn the_rights_of_the_recipe_are_enough_and_none_is_too_many() {
    if !root_has("ebpf") {
        return;
    }
    let command = recipe("docker run --rm --cap-drop=ALL");
    let named = values(&command, "--cap-add");
    let used: Vec<&str> = USES.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, used, "{command}");
    for option in ["--pid=host", "--security-opt=no-new-privileges", "--read-only"] {
        assert!(command.contains(option), "{option}: {command}");
    }
    let with = |names: &[&str]| {
        let lower = names.iter().map(|name| format!(",+{}", name.to_ascii_lowercase()));
        let set = format!("--bounding-set=-all{}", lower.collect::<String>());
        // A /run of its own: functions of the kernel that root keeps there need no right.
        let shell = "mount -t tmpfs none /run && exec setpriv --no-new-privs \"$0\" \"$@\"";
        examined(&["unshare", "--mount", "--net", "--ipc", "--uts", "sh", "-c", shell, &set])
    };
    let Some(report) = with(&named) else { return };
    for (name, id) in USES {
        let one = source(&report, id);
        assert_ne!(one["health"], "missing", "{name}: {one}");
        assert_ne!(one["obstacle"], "permission", "{name}: {one}");
        if name == "SYSLOG" && are_symbols_shown() {
            continue;
        }
        let rest: Vec<&str> = named.iter().copied().filter(|other| *other != name).collect();
        let without = with(&rest).unwrap();
        let one = source(&without, id);
        // Of processes with as few rights as this one some can be read.
        assert_ne!(one["health"], "works", "{name}: {one}");
        assert_eq!(one["obstacle"], "permission", "{name}: {one}");
        assert!(one["why"].as_str().unwrap().contains(&format!("CAP_{name}")), "{one}");
    }
}

/// Whether this machine shows the functions of the kernel without the right.
fn are_symbols_shown() -> bool {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().parse::<i32>().unwrap_or(0)
    };
    setting("kptr_restrict") == 0 && setting("perf_event_paranoid") <= 1
}

#[test]
fn podman_and_kubernetes_give_the_same_rights_as_docker() {
    let docker = recipe("docker run --rm --cap-drop=ALL");
    let podman = recipe("sudo podman run --rm --cap-drop=ALL");
    assert_eq!(values(&docker, "--cap-add"), values(&podman, "--cap-add"));
    let pod = PAGE.split("```yaml").nth(1).unwrap().split("```").next().unwrap();
    for name in values(&docker, "--cap-add") {
        assert!(pod.contains(name), "{name}: {pod}");
    }
    for field in ["hostPID: true", "drop: [ALL]", "readOnlyRootFilesystem: true"] {
        assert!(pod.contains(field), "{field}: {pod}");
    }
}

/// Whether a tool can start containers here.
fn can_run(tool: &str, words: &[&str]) -> bool {
    let ran = Command::new(tool).args(words).output();
    ran.is_ok_and(|output| output.status.success())
}

#[test]
fn the_recipe_of_podman_runs() {
    if !testkit::is_root() || !can_run("podman", &["info"]) {
        return testkit::skip("podman, as root");
    }
    let directory = TempDir::new();
    let rootfs = small_root(directory.path());
    let shown = rootfs.display().to_string();
    let words = ["run", "--rm", "--network=none", "--rootfs", &shown, "/terrace", "--version"];
    if !can_run("podman", &words) {
        return testkit::skip("podman that can start a container from a directory");
    }
    // The image is a directory with this binary and its libraries.
    let command = recipe("sudo podman run --rm --cap-drop=ALL");
    let options = command.trim_start_matches("sudo podman ");
    let (options, _) = options.split_once(" IMAGE ").unwrap();
    let out = format!("{}:/out", directory.path().display());
    let options = options.replace("\"$PWD:/out\"", &out);
    let mut start = Command::new("podman");
    start.args(options.split(' ')).args(["--rootfs", &shown]);
    start.args(["/terrace", "doctor", "--json"]);
    let report = report_of(run(start));
    assert_eq!(report["surroundings"]["place"], "podman");
    for (_, id) in USES {
        assert_ne!(health(&report, id), "missing", "{}", source(&report, id));
    }
    // Without them each is refused.
    let mut bare = Command::new("podman");
    bare.args(["run", "--rm", "--network=none", "--cap-drop=ALL", "--rootfs", &shown]);
    bare.args(["/terrace", "doctor", "--json"]);
    let report = report_of(run(bare));
    // There are no processes of others in it.
    for (_, id) in USES.into_iter().filter(|(_, id)| *id != "other_processes") {
        assert_eq!(health(&report, id), "missing", "{}", source(&report, id));
    }
}

/// A directory that is the root of a container: the binary, and the libraries that it loads.
fn small_root(directory: &Path) -> std::path::PathBuf {
    let root = directory.join("rootfs");
    for name in ["out", "proc", "sys", "dev", "tmp", "run", "etc"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::copy(TERRACE, root.join("terrace")).unwrap();
    let listed = Command::new("ldd").arg(TERRACE).output().unwrap();
    for library in String::from_utf8(listed.stdout)
        .unwrap()
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let to = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }
    root
}

#[test]
fn the_recipe_of_docker_is_run_where_a_daemon_is() {
    if !can_run("docker", &["info"]) {
        return testkit::skip("docker with a daemon");
    }
    let directory = TempDir::new();
    let rootfs = small_root(directory.path());
    let tag = format!("terrace-doctor-{}", std::process::id());
    let import = format!("tar -C {} -c . | docker import - {tag}", rootfs.display());
    assert!(can_run("sh", &["-c", &import]));
    let command = recipe("docker run --rm --cap-drop=ALL");
    let (options, _) = command.trim_start_matches("docker ").split_once(" IMAGE ").unwrap();
    let out = format!("{}:/out", directory.path().display());
    let options = options.replace("\"$PWD:/out\"", &out);
    let mut start = Command::new("docker");
    start.args(options.split(' ')).args([&tag, "/terrace", "doctor", "--json"]);
    let ran = run(start);
    can_run("docker", &["rmi", &tag]);
    let report = report_of(ran);
    for (_, id) in USES {
        assert_ne!(health(&report, id), "missing", "{}", source(&report, id));
    }
}
