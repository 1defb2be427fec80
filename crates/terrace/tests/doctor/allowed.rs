//! The lines that it prints help, and the recipes of docs/doctor.md are enough and not more than
//! that: each capability of them is taken away once.
//!
//! Where a tool can run containers the recipe itself is run; its rights are tried in any case, by
//! `setpriv` on this machine.

use crate::support::{Ran, TERRACE, has_program, run};
use crate::{ORDINARY, examined, examined_by, health, report_of, root_has, source};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
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
    let pod = pod_of_kubernetes();
    for name in values(&docker, "--cap-add") {
        assert!(pod.contains(name), "{name}: {pod}");
    }
    for field in ["hostPID: true", "drop: [ALL]", "readOnlyRootFilesystem: true"] {
        assert!(pod.contains(field), "{field}: {pod}");
    }
}

/// The file of docs/doctor.md.
fn pod_of_kubernetes() -> &'static str {
    PAGE.split("```yaml").nth(1).unwrap().split("```").next().unwrap()
}

/// Podman complains of what another one of it removes at the same time.
static PODMAN: Mutex<()> = Mutex::new(());

/// Whether a tool can start containers here.
fn can_run(tool: &str, words: &[&str]) -> bool {
    let ran = container_tool(tool).args(words).output();
    ran.is_ok_and(|output| output.status.success())
}

/// Without the warnings that the tool itself writes, as that it removes a group later.
fn without_warnings(ran: Ran) -> Ran {
    let lines = ran.err.lines().filter(|line| !line.contains("level=warning"));
    Ran { err: lines.collect::<Vec<_>>().join("\n"), ..ran }
}

fn container_tool(tool: &str) -> Command {
    let mut command = Command::new(tool);
    command.env("PODMAN_IGNORE_CGROUPSV1_WARNING", "1");
    command
}

#[test]
fn the_recipe_of_podman_runs() {
    let _alone = PODMAN.lock().unwrap_or_else(PoisonError::into_inner);
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
    let mut start = container_tool("podman");
    start.args(options.split(' ')).args(["--rootfs", &shown]);
    start.args(["/terrace", "doctor", "--json"]);
    let report = report_of(without_warnings(run(start)));
    assert_eq!(report["surroundings"]["place"], "podman");
    for (_, id) in USES {
        assert_ne!(health(&report, id), "missing", "{}", source(&report, id));
    }
    // Without them each is refused.
    let mut bare = container_tool("podman");
    bare.args(["run", "--rm", "--network=none", "--cap-drop=ALL", "--rootfs", &shown]);
    bare.args(["/terrace", "doctor", "--json"]);
    let report = report_of(without_warnings(run(bare)));
    // There are no processes of others in it.
    for (_, id) in USES.into_iter().filter(|(_, id)| *id != "other_processes") {
        assert_eq!(health(&report, id), "missing", "{}", source(&report, id));
    }
}

/// A pod and an image that end with the test.
struct Pod {
    name: String,
    image: String,
}

impl Drop for Pod {
    fn drop(&mut self) {
        can_run("podman", &["pod", "rm", "-f", &self.name]);
        can_run("podman", &["rmi", "-f", &self.image]);
    }
}

/// Podman takes such files too. What it does not have is the default of a cluster, which filters no
/// calls: an annotation says that.
#[test]
fn the_pod_of_kubernetes_runs() {
    let _alone = PODMAN.lock().unwrap_or_else(PoisonError::into_inner);
    if !testkit::is_root() || !can_run("podman", &["info"]) {
        return testkit::skip("podman, as root");
    }
    let name = format!("terrace-doctor-{}", std::process::id());
    let pod = Pod { image: format!("localhost/{name}"), name };
    if !can_run("podman", &["pod", "create", "--network=none", "--name", &pod.name])
        || !can_run("podman", &["pod", "start", &pod.name])
    {
        return testkit::skip("podman that can start a pod");
    }
    can_run("podman", &["pod", "rm", "-f", &pod.name]);
    let directory = TempDir::new();
    let rootfs = small_root(directory.path());
    let import = format!("tar -C {} -c . | podman import - {}", rootfs.display(), pod.image);
    assert!(can_run("sh", &["-c", &import]));
    let annotation =
        "annotations: {container.seccomp.security.alpha.kubernetes.io/terrace: unconfined}";
    let mut text = pod_of_kubernetes().to_owned();
    for (from, to) in [
        ("metadata: {name: terrace}", format!("metadata: {{name: {}, {annotation}}}", pod.name)),
        ("image: IMAGE", format!("image: {}", pod.image)),
        (
            "[terrace, record, --for, 30s, -o, /out/machine.trec]",
            "[/terrace, doctor, --json]".to_owned(),
        ),
        ("/var/tmp/terrace", directory.path().display().to_string()),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        text = text.replace(from, &to);
    }
    let file = directory.join("pod.yaml");
    std::fs::write(&file, text).unwrap();
    let mut play = container_tool("podman");
    let played = run({
        play.args(["play", "kube", "--network=none"]).arg(&file);
        play
    });
    assert_eq!(played.code, Some(0), "{played:?}");
    let container = format!("{}-terrace", pod.name);
    let waited = container_tool("podman").args(["wait", &container]).output().unwrap();
    let logged = container_tool("podman").args(["logs", &container]).output().unwrap();
    let report: Value = serde_json::from_slice(&logged.stdout).unwrap_or_else(|error| {
        panic!("{error}: {waited:?} {logged:?}");
    });
    if report["surroundings"]["first_process_namespace"] == false {
        return testkit::skip("podman that knows hostPID (5.4 does)");
    }
    for (_, id) in USES {
        assert_ne!(health(&report, id), "missing", "{}", source(&report, id));
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
    let start = |options: &str| {
        let mut start = Command::new("docker");
        start.args(options.split(' ')).args([&tag, "/terrace", "doctor", "--json"]);
        run(start)
    };
    let mut ran = start(&options);
    if ran.err.contains("unknown capability: \"CAP_BPF\"") {
        assert!(
            PAGE.contains("`--cap-add=SYS_ADMIN`, a far greater right, takes the place of both")
        );
        let rights = "--cap-add=BPF --cap-add=PERFMON";
        assert!(options.contains(rights), "{options}");
        ran = start(&options.replace(rights, "--cap-add=SYS_ADMIN"));
    }
    can_run("docker", &["rmi", &tag]);
    let report = report_of(without_warnings(ran));
    for (_, id) in USES {
        assert_ne!(health(&report, id), "missing", "{}", source(&report, id));
    }
}
