//! `terrace copy --eject` of an ordinary user, by the service that mounts sticks: unmounted when
//! the copy is durable, and what holds it is named.
//!
//! A bus, polkit, udisks and, without one, udev of the test's own run in mounts of its own, so the
//! machine's are neither needed nor asked. The policy grants what a desktop grants its user: to
//! mount. An unmount of what one has mounted needs no grant.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Started, as_ordinary_user, has_program, run};
use testkit::{LoopDevice, TempDir};

/// Longer than the services take to start.
const LIMIT: Duration = Duration::from_secs(60);
/// Covered by empty directories, for this test alone.
const COVERED: [&str; 3] = ["/media", "/var/lib/udisks2", "/etc/polkit-1/rules.d"];
/// The rules of udev that may be there.
const UDEV_RULES: [&str; 2] = ["/etc/udev/rules.d", "/lib/udev/rules.d"];
const SOCKET: &str = "/run/bus";
const BUS: &str = r#"
    <busconfig>
      <type>system</type> <listen>unix:path=/run/bus</listen> <auth>EXTERNAL</auth>
      <policy context="default">
        <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
      </policy>
    </busconfig>"#;
const POLICY: &str = r#"
    polkit.addRule(function (action, subject) {
        if (action.id.indexOf("org.freedesktop.udisks2.filesystem-mount") == 0) {
            return polkit.Result.YES;
        }
    });"#;
const UDEVD: [&str; 2] = ["/lib/systemd/systemd-udevd", "/usr/lib/systemd/systemd-udevd"];
const UDISKSD: [&str; 2] = ["/usr/libexec/udisks2/udisksd", "/usr/lib/udisks2/udisksd"];
const POLKITD: [&str; 3] =
    ["/usr/lib/polkit-1/polkitd", "/usr/libexec/polkitd", "/usr/libexec/polkit-1/polkitd"];

/// The services, for the calling thread and what it starts. They end with this.
struct Udisks(#[allow(dead_code, reason = "ended on drop")] Vec<Started>);

impl Udisks {
    /// `device` has an ext4.
    fn start(device: &Path) -> Result<Self, String> {
        let find = |paths: &[&str], need: &str| {
            let path = paths.iter().find(|path| Path::new(path).is_file());
            path.map(PathBuf::from).ok_or_else(|| need.to_owned())
        };
        let (udisksd, polkitd) = (find(&UDISKSD, "udisks2")?, find(&POLKITD, "polkitd")?);
        let udevd = find(&UDEVD, "udev")?;
        for program in ["dbus-daemon", "udisksctl", "setpriv"] {
            if !has_program(program) {
                return Err(program.to_owned());
            }
        }
        const DIRECTORIES: [&str; 2] = ["/media", "/etc/polkit-1/rules.d"];
        if !DIRECTORIES.iter().all(|path| Path::new(path).is_dir()) {
            return Err(DIRECTORIES.join(" and "));
        }
        sys::mount::separate_mounts().map_err(|error| format!("mounts of its own: {error}"))?;
        let has_udev = Path::new("/run/udev/control").exists();
        COVERED.iter().for_each(|path| cover(path));
        cover_run(has_udev);
        let mut started = Vec::new();
        if !has_udev {
            UDEV_RULES.iter().for_each(|path| cover(path));
            let name = device.file_name().unwrap().to_string_lossy();
            let found = r#"ENV{ID_FS_USAGE}="filesystem", ENV{ID_FS_TYPE}="ext4""#;
            fs::create_dir("/run/udev/rules.d").unwrap();
            let rule = format!("KERNEL==\"{name}\", {found}\n");
            fs::write("/run/udev/rules.d/00-test.rules", rule).unwrap();
            started.push(daemon(&[&udevd]));
            await_true(|| Path::new("/run/udev/control").exists());
        }
        let mut known = Command::new("udevadm");
        // Mounts other than those of process 1 are a changed root to it.
        known.args(["trigger", "--settle"]).arg(device).env("SYSTEMD_IGNORE_CHROOT", "1");
        assert!(known.status().unwrap().success());
        fs::write("/run/bus.conf", BUS).unwrap();
        fs::write("/etc/polkit-1/rules.d/00-test.rules", POLICY).unwrap();
        let bus = [Path::new("dbus-daemon"), Path::new("--config-file=/run/bus.conf")];
        started.push(daemon(&[&bus[..], &["--nofork", "--nopidfile"].map(Path::new)].concat()));
        await_true(|| Path::new(SOCKET).exists());
        started.extend([daemon(&[&polkitd]), daemon(&[&udisksd])]);
        await_true(|| udisksctl("info", device).out.contains("ext4"));
        Ok(Self(started))
    }
}

/// Covers a directory by an empty one, if it is there.
fn cover(path: &str) {
    if Path::new(path).is_dir() {
        mount(&["-t", "tmpfs", "-o", "mode=755", "terrace-test", path]);
    }
}

/// Covers /run, but for what udev keeps there if it runs.
fn cover_run(has_udev: bool) {
    const NEW: &str = "/media/run";
    fs::create_dir(NEW).unwrap();
    cover(NEW);
    fs::create_dir("/media/run/udev").unwrap();
    if has_udev {
        mount(&["--bind", "/run/udev", "/media/run/udev"]);
    }
    mount(&["--move", NEW, "/run"]);
}

fn mount(words: &[&str]) {
    let mounted = Command::new("mount").arg("--no-mtab").args(words).status();
    assert!(mounted.unwrap().success(), "{words:?}");
}

/// Starts a service that ends with this thread.
fn daemon(words: &[&Path]) -> Started {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "SIGKILL"]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Started(command.env("DBUS_SYSTEM_BUS_ADDRESS", address()).spawn().unwrap())
}

fn address() -> String {
    format!("unix:path={SOCKET}")
}

#[track_caller]
fn await_true(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "a service did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a program as an ordinary user on the bus of this test.
fn ordinary(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(words);
    command.env("DBUS_SYSTEM_BUS_ADDRESS", address());
    command
}

fn udisksctl(verb: &str, device: &Path) -> Ran {
    let device = device.to_str().unwrap();
    let mut words = vec!["udisksctl", verb, "--block-device", device];
    if verb != "info" {
        words.push("--no-user-interaction");
    }
    run(ordinary(&words))
}

/// Where a device is mounted for this thread.
fn mount_point(device: &Path) -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    let device = format!(" {} ", device.display());
    let line = table.lines().find(|line| line.contains(&device))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// Copies as the ordinary user. `None` if it cannot run the program.
fn copy(source: &Path, target: &Path) -> Option<Ran> {
    let line = format!("copy {}/tree {} --eject", source.display(), target.display());
    let mut command = as_ordinary_user(&line)?;
    command.env("DBUS_SYSTEM_BUS_ADDRESS", address());
    Some(run(command))
}

#[test]
fn what_an_ordinary_user_has_mounted_is_unmounted_by_the_service() {
    if !testkit::is_admin() {
        return testkit::skip("root, for a device that an ordinary user mounts");
    }
    // Mounts of its own are those of a thread.
    std::thread::spawn(unmounted_by_the_service).join().unwrap();
}

fn unmounted_by_the_service() {
    let memory = TempDir::in_dir(Path::new("/dev/shm"));
    File::create_new(memory.join("disk")).unwrap().set_len(64 << 20).unwrap();
    let disk = match LoopDevice::over(&memory.join("disk")) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let device = disk.path();
    let mut make = Command::new("mkfs.ext4");
    make.args(["-q", "-F", "-E", "root_owner=65534:65534"]).arg(device);
    if !make.status().is_ok_and(|status| status.success()) {
        return testkit::skip("mkfs.ext4");
    }
    let source = TempDir::new();
    fs::create_dir(source.join("tree")).unwrap();
    fs::write(source.join("tree/large"), vec![3; 3_000_005]).unwrap();
    let udisks = match Udisks::start(device) {
        Ok(udisks) => udisks,
        Err(need) => return testkit::skip(need),
    };
    let mounted = udisksctl("mount", device);
    assert_eq!(mounted.code, Some(0), "{mounted:?}");
    let point = mount_point(device).unwrap();

    // What holds it is named, and it stays mounted.
    let held = point.join("held");
    fs::write(&held, "x").unwrap();
    let holder = {
        // This process itself must not go on holding the file.
        let mut sleeping = ordinary(&["sleep", "1000"]);
        sleeping.stdin(File::open(&held).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        Started(sleeping.spawn().unwrap())
    };
    let Some(ran) = copy(source.path(), &point) else { return };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the copy is durable") && ran.err.contains("(sleep)"), "{ran:?}");
    assert!(ran.err.contains(&holder.pid().to_string()), "{ran:?}");
    assert_eq!(mount_point(device).as_deref(), Some(point.as_path()));
    drop(holder);

    let ran = copy(source.path(), &point).unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&format!("{} is safe to unplug", device.display())), "{page}");
    assert_eq!(mount_point(device), None);
    assert_eq!(udisksctl("mount", device).code, Some(0));
    assert_eq!(fs::read(mount_point(device).unwrap().join("tree/large")).unwrap().len(), 3_000_005);
    assert_eq!(udisksctl("unmount", device).code, Some(0));

    // What root has mounted is not the user's to unmount.
    let own = TempDir::new();
    assert!(Command::new("mount").arg(device).arg(own.path()).status().unwrap().success());
    let ran = copy(source.path(), own.path()).unwrap();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the copy is durable") && ran.err.contains("udisksctl: "), "{ran:?}");
    assert_eq!(mount_point(device).as_deref(), Some(own.path()));
    assert!(Command::new("umount").arg(own.path()).status().unwrap().success());
    drop(udisks);
}
