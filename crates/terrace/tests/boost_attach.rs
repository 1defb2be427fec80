//! `terrace boost attach` on real loop devices: a file system in use over a cache whose service is
//! killed, whose flash is unplugged, and which is warm after a detach. Needs root and FUSE with
//! resend (Linux 6.9).

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/boost_scene.rs"]
mod boost_scene;
#[path = "boost_attach/fill.rs"]
mod fill;
#[path = "../../serve/tests/served/load.rs"]
mod load;
#[path = "boost_attach/report.rs"]
mod report;
mod support;

use boost_scene::{BLOCK, MIB, Scene, VOLUME, read_blocks, wait_until};
use load::Tally;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;
use support::{Ran, as_ordinary_user, terrace};
use sys::memory::AlignedBuffer;
use testkit::{FaultPlan, FaultyDisk, FileSystem, Mount, with_default_signals};

/// How much the series of the cache grew in a recording that was made meanwhile.
fn growths_while(scene: &Scene, act: impl FnOnce()) -> BTreeMap<String, u64> {
    let file = scene.directory.join("meanwhile.trec");
    let mut command = with_default_signals(support::TERRACE);
    command.args(["record", "--for", "60s", "-o"]).arg(&file);
    let mut recorder = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it records", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
    std::thread::sleep(Duration::from_millis(500));
    act();
    // The counters are read ten times a second.
    std::thread::sleep(Duration::from_millis(500));
    let stopped = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    recorder.wait().unwrap();
    let text = terrace(&format!("export {} --to json --no-redact", file.display())).done();
    let value: Value = serde_json::from_str(&text).unwrap();
    let prefix = format!("boost.{}.", scene.name);
    let growth = |series: &Value| {
        let name = series["name"].as_str()?.strip_prefix(&prefix)?.to_owned();
        let steps = series["steps"].as_array()?;
        let [first, last] = [steps.first()?, steps.last()?].map(|step| step[1].as_u64());
        Some((name, last? - first?))
    };
    value["series"].as_array().unwrap().iter().filter_map(growth).collect()
}

#[test]
fn a_killed_service_has_a_successor_and_no_request_fails() {
    let Some(scene) = Scene::new("kill") else { return };
    let file = scene.medium();
    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    cold: the cache is new"), "{attached}");
    let device = scene.device();
    let use_it = format!("use {} instead of {}", device.display(), scene.volume.path().display());
    assert!(attached.contains(&use_it), "{attached}");
    let again = scene.attach(&file);
    again.refused(2, "is attached already");
    used_and_killed(&scene, FileSystem::Ext4, &["e2fsck", "-f", "-n"]);
}

#[test]
fn no_request_of_xfs_or_btrfs_fails_when_the_service_is_killed() {
    type Words = &'static [&'static str];
    let cases: [(FileSystem, u64, Words, Words); 2] = [
        (FileSystem::Xfs, 320, &["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"]),
        (
            FileSystem::Other("btrfs", &[]),
            256,
            &["mkfs.btrfs", "-q", "-f"],
            &["btrfs", "check", "--readonly"],
        ),
    ];
    for (system, mib, maker, checker) in cases {
        match Scene::of(maker[0], maker, mib * MIB) {
            Ok(scene) => {
                scene.attach(&scene.medium()).done();
                used_and_killed(&scene, system, checker);
            }
            Err(need) => testkit::skip(need),
        }
    }
}

/// Kills the service amid a load that checks what it reads; no request fails, the file system is
/// whole, and the cache is proved fresh. `TERRACE_BOOST_KILLS` is how often.
fn used_and_killed(scene: &Scene, system: FileSystem, checker: &[&str]) {
    let kills = std::env::var("TERRACE_BOOST_KILLS").map_or(5, |count| count.parse().unwrap());
    let (device, point) = (scene.device(), scene.directory.join("point"));
    let mount = match Mount::existing(system, &device, point) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    scene.detach().refused(3, "is mounted at");
    let files: Vec<PathBuf> = (0..4).map(|it| mount.path().join(it.to_string())).collect();
    let disturb = |tally: &Tally| {
        for _ in 0..kills {
            let before = tally.requests.load(Ordering::Relaxed);
            wait_until("the load goes on", || {
                tally.requests.load(Ordering::Relaxed) > before + 200
            });
            scene.kill();
        }
    };
    let served = Path::new("/run/terrace/boost").join(&scene.name).join("volume");
    let tally = load::during(&files, disturb, || drop(sys::mount::abandon(&served)));
    let found = format!("{kills} kills under {system:?}: {tally:?}");
    assert_eq!((tally.errors.into_inner(), tally.wrong.into_inner()), (0, 0), "{found}");
    drop(mount);
    let checked = Command::new(checker[0]).args(&checker[1..]).arg(&device).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let detached = scene.detach().done();
    assert!(detached.contains("is detached, and proved fresh"), "{detached}");
}

#[test]
fn a_detached_cache_is_warm_and_empty_if_the_disk_was_written_elsewhere() {
    let Some(scene) = Scene::new("warm") else { return };
    let file = scene.medium();
    scene.attach(&file).done();
    let device = scene.device();
    // The second round fills the cache.
    let blocks = 2000;
    let first = read_blocks(&device, blocks);
    let recorded = growths_while(&scene, || assert!(read_blocks(&device, blocks) == first));
    assert_eq!(recorded["read_bytes"], blocks * BLOCK as u64, "{recorded:?}");
    wait_until("it is filled", || scene.status()["cached_bytes"].as_u64().unwrap() > MIB);
    // Of what was read, block by block, no more is cached than was read.
    let status = scene.status();
    for (what, rounds) in [("cached_bytes", 1), ("filled_bytes", 2)] {
        assert!(status[what].as_u64().unwrap() <= rounds * blocks * BLOCK as u64, "{status}");
    }
    let detached = scene.detach().done();
    assert!(detached.contains("is detached, and proved fresh"), "{detached}");
    let gone = terrace(&format!("boost status {}", scene.name));
    gone.refused(2, "is attached");
    let is_left = |directory: &str| Path::new(directory).join(&scene.name).exists();
    wait_until("the service has ended", || !is_left("/run/terrace/boost-services"));
    assert!(!is_left("/run/terrace/boost"));
    scene.flash.remount().expect("nothing holds the flash any more");

    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    warm"), "{attached}");
    let device = scene.device();
    wait_until("it is recovered", || scene.status()["cached_bytes"].as_u64().unwrap() > MIB);
    let before = scene.status();
    assert_eq!(before["cold"], Value::Null);
    assert!(read_blocks(&device, blocks) == first);
    let hits = scene.status()["hits"].as_u64().unwrap() - before["hits"].as_u64().unwrap();
    assert!(hits > blocks / 2, "{hits} of {blocks} came from the cache");
    let places = [0, (blocks - 1) * BLOCK as u64].map(|offset| {
        let said = terrace(&format!("boost explain {} {offset}", scene.name)).done();
        said.contains("is in the cache")
    });
    assert!(places.contains(&true), "{places:?}");
    terrace(&format!("boost explain {} {VOLUME}", scene.name)).refused(2, "behind the end");
    let page = terrace(&format!("boost status {}", scene.name)).done();
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("came from the cache"), "{page}");
    scene.detach().done();

    // Written by another: nothing of the cache is used.
    let point = scene.directory.join("elsewhere");
    let mount = Mount::existing(FileSystem::Ext4, scene.volume.path(), point).unwrap();
    fs::write(mount.path().join("new"), "new").unwrap();
    drop(mount);
    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    cold: the volume was written elsewhere"), "{attached}");
    scene.detach().done();
}

/// XFS shows a write elsewhere only from what it holds after the last one.
#[test]
fn a_volume_with_xfs_is_warm_after_a_detach_alone() {
    let scene = match Scene::of("xfs", &["mkfs.xfs", "-q", "-f"], 320 * MIB) {
        Ok(scene) => scene,
        Err(need) => return testkit::skip(need),
    };
    let file = scene.medium();
    scene.attach(&file).done();
    let device = scene.device();
    let first = read_blocks(&device, 500);
    assert!(read_blocks(&device, 500) == first);
    let detached = scene.detach().done();
    assert!(detached.contains("is detached, and proved fresh"), "{detached}");
    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    warm"), "{attached}");
    scene.kill();
    assert!(scene.status()["cold"].is_string(), "{}", scene.status());
    assert!(read_blocks(&scene.device(), 500) == first);
    scene.detach().done();
}

#[test]
fn a_name_has_one_service_and_what_a_killed_one_left_is_cleaned_up() {
    let Some(scene) = Scene::new("again") else { return };
    let file = scene.medium();
    scene.attach(&file).done();
    terrace(&scene.line("serve", &file)).refused(3, "another service has this name");
    let words =
        format!("boost attach other --backing {} --cache /c", scene.volume.path().display());
    terrace(&words).refused(3, "is read through the cache terrace-test-again");
    let device = scene.device();
    let point = scene.directory.join("point");
    let mount = Mount::existing(FileSystem::Ext4, &device, point).unwrap();
    let process = scene.status()["process"].as_u64().unwrap();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let keeper = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap();
    let killed = Command::new("kill").args(["-KILL", keeper, &process.to_string()]).status();
    assert!(killed.unwrap().success());
    let in_use = scene.attach(&file);
    assert_eq!(in_use.code, Some(3), "{in_use:?}");
    drop(mount);
    // The dead device may still be writing its errors.
    wait_until("it is attached again", || scene.attach(&file).code == Some(0));
    // The dead device has no file any more, whose mount has gone.
    let name = device.file_name().unwrap().to_str().unwrap();
    let backing = format!("/sys/block/{name}/loop/backing_file");
    assert_ne!(fs::read_to_string(backing).unwrap_or_default(), "/\n");
    let before = scene.status();
    assert_eq!((&before["cold"], &before["off"]), (&Value::Null, &Value::Null), "{before}");
    // A signal to the process that serves ends it, as nothing uses the device.
    let process = before["process"].as_u64().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    let directory = Path::new("/run/terrace/boost").join(&scene.name);
    wait_until("it ends", || !directory.exists());
}

#[test]
fn what_cannot_be_attached_is_refused_and_left_as_it_is() {
    let Some(scene) = Scene::new("refuse") else { return };
    let file = scene.medium();
    let point = scene.directory.join("point");
    let mount = Mount::existing(FileSystem::Ext4, scene.volume.path(), point).unwrap();
    scene.attach(&file).refused(3, "is mounted at");
    drop(mount);
    fs::write(&file, "a letter to a friend").unwrap();
    scene.attach(&file).refused(3, "it is not a cache");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a letter to a friend");
    scene.attach(Path::new("/dev/shm/terrace-test-cache")).refused(3, "no disk is known");
    terrace("boost attach ../x --backing /dev/null --cache /c").refused(2, "a name has letters");
    let small =
        format!("boost attach x --backing {} --cache /c --size 1k", scene.volume.path().display());
    terrace(&small).refused(2, "a cache has 4 to 65535 segments");
    terrace("boost detach no-such").refused(2, "no cache no-such is attached");
    terrace("boost explain no-such 0").refused(2, "no cache no-such is attached");
    let words = "boost attach x --backing /dev/null --cache /c";
    terrace(words).refused(2, "not a block device");
    if let Some(command) = as_ordinary_user("boost attach x --backing /dev/null --cache /c") {
        support::run(command).refused(3, "only root can use a cache");
    }
    for made in ["/run/terrace/boost/x", "/var/lib/terrace/boost/x"] {
        assert!(!Path::new(made).exists(), "{made}");
    }
}

/// A directory that is seen at a second place.
struct Bound<'p>(&'p Path);

impl<'p> Bound<'p> {
    fn at(place: &'p Path, from: &Path) -> Self {
        let mount = with_default_signals("mount").arg("--bind").arg(from).arg(place).status();
        assert!(mount.unwrap().success());
        Self(place)
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        let _ = with_default_signals("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn an_unplugged_flash_costs_no_read_and_serves_again_when_it_is_back() {
    let Some(scene) = Scene::new("unplug") else { return };
    let disk = match FaultyDisk::new(64 * MIB, FaultPlan::new()) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let mounted = match disk.mount(FileSystem::Ext4) {
        Ok(mounted) => mounted,
        Err(need) => return testkit::skip(need),
    };
    // The same path for each mount, as a desktop has it.
    let place = scene.directory.join("stick");
    fs::create_dir(&place).unwrap();
    let bound = Bound::at(&place, mounted.path());
    scene.attach(&place.join("cache")).done();
    let device = scene.device();
    let first = read_blocks(&device, 1000);
    assert!(read_blocks(&device, 1000) == first);
    wait_until("it is filled", || scene.status()["cached_bytes"].as_u64().unwrap() > MIB);
    disk.unplug();
    wait_until("it is noticed", || {
        assert!(read_blocks(&device, 1000) == first);
        scene.status()["off"].is_string()
    });
    let page = terrace(&format!("boost status {}", scene.name)).done();
    assert!(page.contains("all reads of"), "{page}");
    drop(bound);
    drop(mounted);
    disk.plug();
    let mounted = disk.mount_again(FileSystem::Ext4).unwrap();
    let bound = Bound::at(&place, mounted.path());
    wait_until("it serves again", || scene.status()["off"].is_null());
    let hits = || scene.status()["hits"].as_u64().unwrap();
    let before = hits();
    assert!(read_blocks(&device, 1000) == first);
    assert!(read_blocks(&device, 1000) == first);
    wait_until("reads come from it", || {
        assert!(read_blocks(&device, 1000) == first);
        hits() > before
    });
    scene.detach().done();
    drop(bound);
}
