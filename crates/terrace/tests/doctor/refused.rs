//! What is taken away is reported: rights, namespaces, mounts, devices, system calls. Each test
//! sees the source work before, so that it cannot pass where nothing was there.

use crate::support::{TERRACE, has_program, run};
use crate::{ORDINARY, examined, health, lines, root_has, source, sources, staged};
use serde_json::Value;
use std::path::Path;

fn obstacle<'a>(report: &'a Value, id: &str) -> &'a str {
    source(report, id)["obstacle"].as_str().unwrap_or("none")
}

#[test]
fn an_ordinary_user_lacks_permissions_and_each_has_its_line() {
    if !root_has("ebpf") {
        return;
    }
    let Some(report) = examined(ORDINARY) else { return };
    for id in ["ebpf", "tracepoints", "page_faults", "kernel_symbols", "taskstats", "loop_devices"]
    {
        let one = source(&report, id);
        assert_eq!(one["health"], "missing", "{one}");
        assert_eq!(one["obstacle"], "permission", "{one}");
        assert!(lines(one).contains("sudo terrace "), "{one}");
    }
    assert_eq!(source(&report, "ebpf")["errno"], "EPERM");
    assert!(lines(source(&report, "ebpf")).contains("setcap cap_bpf,cap_perfmon+ep"));
    for id in ["pagemap", "groups_v2", "swap"] {
        assert_eq!(health(&report, id), "partly", "{}", source(&report, id));
    }
    for id in ["pressure", "disk_counters"] {
        assert_eq!(health(&report, id), "works", "{}", source(&report, id));
    }
    assert!(report["summary"].as_str().unwrap().contains("need a permission"));
}

#[test]
fn the_verdict_of_an_ordinary_user_points_to_the_doctor() {
    let mut words = ORDINARY.to_vec();
    words.push(TERRACE);
    let mut command = testkit::with_default_signals("setpriv");
    if !testkit::is_root() || !has_program("setpriv") {
        return testkit::skip("root and setpriv");
    }
    command.args(&words[1..]).args(["run", "--details", "--", "sleep", "0.3"]);
    command.env("XDG_RUNTIME_DIR", "/nonexistent");
    let ran = run(command);
    assert!(ran.err.contains("`terrace doctor`"), "{ran:?}");
}

#[test]
fn root_without_a_capability_reads_which() {
    if !root_has("ebpf") {
        return;
    }
    let Some(report) = examined(&["setpriv", "--bounding-set=-bpf,-sys_admin"]) else { return };
    let one = source(&report, "ebpf");
    assert_eq!((obstacle(&report, "ebpf"), health(&report, "ebpf")), ("permission", "missing"));
    assert!(one["why"].as_str().unwrap().contains("CAP_BPF"), "{one}");
    // SYS_ADMIN includes BPF on some kernels: only an attempt knows that.
    let Some(report) = examined(&["setpriv", "--bounding-set=-bpf"]) else { return };
    assert_ne!(health(&report, "ebpf"), "missing");
    let Some(report) = examined(&["setpriv", "--bounding-set=-net_admin"]) else { return };
    assert_eq!(obstacle(&report, "taskstats"), "permission");
    assert_ne!(health(&report, "ebpf"), "missing");
}

#[test]
fn a_hidden_tracefs_is_a_mount_only_where_it_cannot_be_mounted_again() {
    if !root_has("tracepoints") {
        return;
    }
    let hide = "mount -t tmpfs none /sys/kernel/tracing && exec \"$0\" \"$@\"";
    let hidden = ["unshare", "--mount", "sh", "-c", hide];
    let Some(report) = examined(&hidden) else { return };
    assert_eq!(health(&report, "tracepoints"), "works", "it is mounted for this process alone");
    let dropped = "mount -t tmpfs none /sys/kernel/tracing && \
                   exec setpriv --bounding-set=-sys_admin \"$0\" \"$@\"";
    let Some(report) = examined(&["unshare", "--mount", "sh", "-c", dropped]) else { return };
    let one = source(&report, "tracepoints");
    assert_eq!(obstacle(&report, "tracepoints"), "mount", "{one}");
    assert!(lines(one).contains("tracefs /sys/kernel/tracing"), "{one}");
    assert_ne!(health(&report, "ebpf"), "missing", "programs need no tracefs");
}

#[test]
fn rights_of_a_user_namespace_do_not_count() {
    if !root_has("ebpf") {
        return;
    }
    let Some(report) = examined(&["unshare", "--user", "--map-root-user"]) else { return };
    // The image that a machine was made from may have left its mark.
    let has_mark = Path::new("/.dockerenv").exists();
    let place = if has_mark { "docker" } else { "namespace" };
    assert_eq!(report["surroundings"]["place"], place);
    assert_eq!(report["surroundings"]["uid"], 0);
    for id in ["ebpf", "taskstats"] {
        let one = source(&report, id);
        assert_eq!(obstacle(&report, id), "container", "{one}");
        assert!(one["why"].as_str().unwrap().contains("user namespace"), "{one}");
        let start = if has_mark { "docker run --userns=host" } else { "sudo terrace " };
        assert!(lines(one).starts_with(start), "{one}");
    }
    assert!(report["summary"].as_str().unwrap().contains("container or namespace"));
}

#[test]
fn other_process_numbers_close_the_events() {
    if !root_has("ebpf") {
        return;
    }
    let words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let Some(report) = examined(&words) else { return };
    for id in ["ebpf", "tracepoints", "taskstats"] {
        let one = source(&report, id);
        assert_eq!(obstacle(&report, id), "container", "{one}");
        assert!(one["why"].as_str().unwrap().contains("process numbers"), "{one}");
    }
    // What does not name processes is as it was.
    assert_eq!(health(&report, "pressure"), "works");
}

#[test]
fn devices_that_are_not_there_are_missing() {
    if !root_has("loop_devices") {
        return;
    }
    let hide = "mount -t tmpfs none /dev && exec \"$0\" \"$@\"";
    let Some(report) = examined(&["unshare", "--mount", "sh", "-c", hide]) else { return };
    for id in ["loop_devices", "fuse"] {
        let one = source(&report, id);
        assert_eq!(one["errno"], "ENOENT", "{one}");
        assert_eq!(obstacle(&report, id), "module", "{one}");
    }
    assert_ne!(health(&report, "block_devices"), "works");
}

/// Runs the rest of the line under a filter that answers the call `NUMBER` with `ERRNO`.
/// `struct sock_filter`: load the number; if it is that one, return the error; else allow.
const FILTER: &str = r#"
my ($number, $errno) = splice @ARGV, 0, 2;
my @code = ([0x20, 0, 0, 0], [0x15, 0, 1, $number], [0x06, 0, 0, 0x50000 | $errno],
    [0x06, 0, 0, 0x7fff0000]);
my $code = join "", map { pack "SCCL", @$_ } @code;
my $program = pack "Sx6P", scalar @code, $code;
syscall(0 + $ENV{PRCTL}, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall(0 + $ENV{PRCTL}, 22, 2, $program) == 0 or die "seccomp: $!";
exec { $ARGV[0] } @ARGV or die "exec: $!";
"#;
/// `prctl` and `io_uring_setup` of this architecture; cachestat has one number everywhere.
const PRCTL: u32 = if cfg!(target_arch = "x86_64") { 157 } else { 167 };
const IO_URING_SETUP: &str = "425";
const CACHESTAT: &str = "451";
const NO_CALL: &str = "9999";
const EPERM: &str = "1";
const ENOSYS: &str = "38";

fn filtered(number: &str, errno: &str) -> Option<Value> {
    let prctl = format!("PRCTL={PRCTL}");
    examined(&["env", &prctl, "perl", "-e", FILTER, number, errno])
}

#[test]
fn a_filter_of_system_calls_is_named_with_its_calls() {
    if !root_has("io_uring") {
        return;
    }
    let Some(report) = filtered(NO_CALL, EPERM) else { return };
    assert_eq!(report["surroundings"]["filtered"], true);
    assert_eq!(health(&report, "io_uring"), "works", "the filter alone closes nothing");
    for errno in [EPERM, ENOSYS] {
        let report = filtered(IO_URING_SETUP, errno).unwrap();
        let one = source(&report, "io_uring");
        assert_eq!(obstacle(&report, "io_uring"), "filter", "{one}");
        assert!(one["why"].as_str().unwrap().contains("io_uring_setup"), "{one}");
        assert!(lines(one).contains("SystemCallFilter=io_uring_setup"), "{one}");
        assert_eq!(health(&report, "cachestat"), "works");
    }
    let report = filtered(CACHESTAT, ENOSYS).unwrap();
    assert_eq!(obstacle(&report, "cachestat"), "filter");
}

#[test]
fn the_page_of_an_ordinary_user_names_cost_line_and_risk() {
    if !testkit::is_root() || !has_program("setpriv") {
        return testkit::skip("root and setpriv");
    }
    let ran = run(staged(ORDINARY, TERRACE, &["doctor"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    for part in [
        "\n missing programs in the kernel (eBPF): ",
        "   Allow: sudo terrace record -o FILE.trec\n",
        "   Or: sudo setcap cap_bpf,cap_perfmon+ep $(command -v terrace)\n",
        "     Risk: ",
        "   Costs record, run, top, view, advise: ",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(sources(&examined(ORDINARY).unwrap()).count() > 20);
}
