//! `terrace boost install` and `uninstall`: units that systemd accepts, written only over those of
//! the same command, for a disk by a name that stays; and the start without the flash that they ask
//! for. The order of a whole boot is tried by `xtask/tests/boost_attach_guest.rs`.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Started, terrace};
use testkit::{LoopDevice, Mounted, TempDir};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Files for the words of a command line; the disk is one that no system lacks.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = TempDir::new();
        fs::write(directory.join("cache"), "of a cache").unwrap();
        fs::create_dir(directory.join("point")).unwrap();
        Self { directory }
    }

    fn units(&self) -> PathBuf {
        self.directory.join("units")
    }

    fn install(&self, more: &str) -> Ran {
        let path = |name: &str| self.directory.join(name).display().to_string();
        terrace(&format!(
            "boost install fast --backing /dev/null --cache {} --state {} --size 64m --to {} {more}",
            path("cache"),
            path("state"),
            path("units")
        ))
    }

    fn uninstall(&self, more: &str) -> Ran {
        terrace(&format!("boost uninstall fast --to {} {more}", self.units().display()))
    }
}

/// What systemd itself says of all units.
fn verify(units: &Path) {
    let mut command = Command::new("systemd-analyze");
    command.arg("verify").env("SYSTEMD_UNIT_PATH", format!("{}:", units.display()));
    let is_unit = |name: &&String| [".mount", ".service"].iter().any(|kind| name.ends_with(kind));
    command.args(names(units).iter().filter(is_unit).map(|name| units.join(name)));
    let ran = support::run(command);
    let ours: Vec<&str> = ran.err.lines().filter(|line| line.contains("boost")).collect();
    assert!(ran.code == Some(0) && ours.is_empty(), "{ran:?}");
}

#[test]
fn units_are_written_that_systemd_accepts_and_no_other_unit_is_touched() {
    let scene = Scene::new();
    let point = scene.directory.join("point");
    let mount = format!("--mount {}", point.display());
    let dry = scene.install(&format!("{mount} --dry-run")).done();
    assert!(!scene.units().exists(), "a dry run writes nothing");
    assert!(!dry.contains("/etc/fstab"), "{dry}");
    let by_hand = scene.install("--dry-run").done();
    let line = "/run/terrace/boost/fast/device DIR auto nofail,\
                x-systemd.requires=terrace-boost-fast.service 0 0";
    assert!(by_hand.contains(line), "{by_hand}");
    let said = scene.install(&mount).done();
    assert!(said.contains("Start it now: systemctl start '"), "{said}");
    let all = names(&scene.units());
    assert_eq!(all.len(), 3, "{all:?}");
    for unit in all.iter().filter(|name| !name.ends_with(".wants")) {
        let text = fs::read_to_string(scene.units().join(unit)).unwrap();
        assert!(dry.contains(&text), "{unit}");
    }
    assert_eq!(names(&scene.units().join("local-fs.target.wants")).len(), 2);
    if support::has_program("systemd-analyze") {
        verify(&scene.units());
    }
    // Mounted elsewhere now: the unit of before goes, with its link.
    fs::create_dir(scene.directory.join("other")).unwrap();
    scene.install(&format!("--mount {}", scene.directory.join("other").display())).done();
    let now = names(&scene.units());
    assert!(now.len() == 3 && now != all, "{now:?}");
    scene.install("").done();
    assert_eq!(names(&scene.units()), ["local-fs.target.wants", "terrace-boost-fast.service"]);
    assert_eq!(names(&scene.units().join("local-fs.target.wants")).len(), 1);
    // One of another maker stops everything before anything is written.
    let service = scene.units().join("terrace-boost-fast.service");
    fs::write(&service, "[Unit]\n").unwrap();
    scene.install(&mount).refused(3, "was not made by this program");
    scene.uninstall("").refused(3, "was not made by this program");
    assert_eq!(names(&scene.units()).len(), 2);
    assert_eq!(fs::read_to_string(&service).unwrap(), "[Unit]\n");
    fs::remove_file(&service).unwrap();
    scene.install(&mount).done();
    assert_eq!(scene.uninstall("--dry-run").done().lines().count(), 4);
    scene.uninstall("").done();
    assert!(names(&scene.units()).is_empty(), "{:?}", names(&scene.units()));
    scene.uninstall("").refused(2, "has no units in");
}

#[test]
fn what_has_no_file_yet_or_no_name_that_stays_is_refused() {
    let scene = Scene::new();
    fs::remove_file(scene.directory.join("cache")).unwrap();
    scene.install("").refused(2, "attach the cache once before");
    assert!(!scene.units().exists());
}

/// As a boot finds it whose stick is not there: served from the disk, readiness reported, nothing
/// made where the stick would be.
#[test]
fn a_service_starts_without_its_flash_and_uses_it_when_it_comes() {
    if !testkit::is_admin() {
        return testkit::skip("root outside of a container");
    }
    if let Err(error) = sys::fuse_device::open() {
        return testkit::skip(error.to_string());
    }
    let directory = TempDir::new();
    let image = directory.join("volume");
    fs::File::create(&image).unwrap().set_len(32 * MIB).unwrap();
    let volume = match LoopDevice::over(&image) {
        Ok(volume) => volume,
        Err(need) => return testkit::skip(need),
    };
    let flash = match Mounted::ext4(64 * MIB) {
        Ok(flash) => flash,
        Err(need) => return testkit::skip(need),
    };
    let name = format!("terrace-test-optional-{}", std::process::id());
    let (file, state) = (flash.path().join("cache"), directory.join("state"));
    let words = |action: &str, more: &str| {
        format!(
            "boost {action} {name} --backing {} --cache {} --size 16m --state {} {more}",
            volume.path().display(),
            file.display(),
            state.display()
        )
    };
    let off = || {
        let ran = terrace(&format!("boost status {name} --json"));
        let json: serde_json::Value = serde_json::from_str(&ran.done()).unwrap();
        json["caches"][0]["off"].clone()
    };
    let said = terrace(&words("attach", "--file-optional")).done();
    assert!(said.contains("not used now: the file of the cache is not there"), "{said}");
    assert!(off().as_str().unwrap().contains("is not there"), "{}", off());
    assert!(!file.exists());
    terrace(&format!("boost detach {name}")).done();
    // It is made by an attach, and taken away before the next start.
    terrace(&words("attach", "")).done();
    terrace(&format!("boost detach {name}")).done();
    let away = flash.path().join("away");
    fs::rename(&file, &away).unwrap();
    let socket = UnixDatagram::bind(directory.join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = support::command(&words("serve", "--file-optional"));
    command.env("NOTIFY_SOCKET", directory.join("notify"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut service = Started(command.spawn().unwrap());
    let mut message = [0; 4096];
    let length = socket.recv(&mut message).unwrap();
    let message = String::from_utf8_lossy(&message[..length]);
    assert!(message.starts_with("READY=1\nSTATUS="), "{message}");
    assert!(off().is_string());
    fs::rename(&away, &file).unwrap();
    let end = Instant::now() + PATIENCE;
    while !off().is_null() {
        assert!(Instant::now() < end, "{}", off());
        std::thread::sleep(Duration::from_millis(50));
    }
    terrace(&format!("boost detach {name}")).done();
    assert!(service.0.wait().unwrap().success());
}
