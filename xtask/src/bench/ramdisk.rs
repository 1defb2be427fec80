//! `terrace ramdisk save` and `restore` against `rsync -a --delete`, `tar -x` and `cp -a`: from and
//! to a tmpfs, the disk is a new ext4 on a loop device. The sync of the disk is in all times.
//!
//! - `unchanged`, `changed`: 100,000 files of 4 KiB, nothing changed, or 1 % of them.
//! - `little`: what is written for 4 KiB at the end of 64 MiB, and for seven logs that are rotated.
//! - `restore`: 100,000 files brought back, the disk mounted anew.
//! - `large`: 1 GiB in large files, saved and restored, beside the rates of `measure seqio`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{Random, Tmpfs};

use super::copy::image::MountedImage;
use super::copy::{durable_seconds, run, shell};
use super::peer::{Peer, Version};
use super::record::{Series, Target};
use super::report;
use super::turns::{self, Turn};
use super::{Measure, Session};
use crate::error::Error;

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] = &[
    ("unchanged", unchanged),
    ("changed", changed),
    ("little", little),
    ("restore", restore),
    ("large", large),
];

const DIRECTORIES: usize = 1000;
const FILES_IN_EACH: usize = 100;
const FILE_BYTES: usize = 4096;
/// Files that change between two saves: 1 %.
const CHANGED_FILES: usize = 1000;
const MEMORY_BYTES: u64 = 3 << 30;
const DISK_BYTES: u64 = 4 << 30;
const INODES: u64 = 400_000;
const LARGE_FILES: u64 = 8;
const LARGE_BYTES: u64 = 128 << 20;
/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A RAM disk, a disk, and the programs.
struct Scene {
    memory: Tmpfs,
    disk: MountedImage,
    terrace: Peer,
    rsync: Option<Peer>,
}

impl Scene {
    fn new(session: &mut Session) -> Result<Self, Error> {
        let memory = Tmpfs::mount(MEMORY_BYTES).map_err(Error::Failed)?;
        let disk = MountedImage::new(session.directory.name(), "disk", DISK_BYTES, INODES)?;
        let rsync = Peer::find_if_any(&session.request, "rsync", Version::Option("--version"))?;
        for peer in [Some(&session.terrace), rsync.as_ref()].into_iter().flatten() {
            session.record.program(peer.clone());
        }
        Ok(Self { memory, disk, terrace: session.terrace.clone(), rsync })
    }

    fn in_memory(&self, name: &str) -> String {
        self.memory.path().join(name).display().to_string()
    }

    fn on_disk(&self, name: &str) -> String {
        format!("{}/{name}", self.disk.point)
    }

    /// Seconds of a save of `tree`, and bytes that it wrote.
    fn save(&self, tree: &str) -> Result<(f64, f64), Error> {
        let store = self.on_disk("store");
        let started = Instant::now();
        let line = ["ramdisk", "save", tree, "--persist", &store];
        let saved = report::run(&self.terrace, &line, LIMIT)?;
        shell(&format!("sync -f '{}'", self.disk.point))?;
        let seconds = started.elapsed().as_secs_f64();
        let bytes = |name: &str| report::number(&saved, &format!("/result/saved/{name}"));
        Ok((seconds, bytes("data_bytes")? + bytes("manifest_bytes")?))
    }

    fn rsync(&self, peer: &Peer, tree: &str) -> Result<f64, Error> {
        let mut command = Command::new(&peer.program);
        command.args(["-a", "--delete", &format!("{tree}/"), &self.on_disk("rsync")]);
        durable_seconds(command, &self.disk.point)
    }

    /// Both programs in turn, each with a tree of its own; seconds of both, bytes of ours.
    fn compare(
        &self,
        session: &mut Session,
        what: &str,
        change: &dyn Fn(&str) -> Result<(), Error>,
        targets: (Target, Target),
    ) -> Result<(), Error> {
        let trees = [self.in_memory("one"), self.in_memory("other")];
        for tree in &trees {
            make_tree(tree)?;
        }
        std::thread::sleep(Duration::from_millis(100));
        self.save(&trees[0])?;
        let mut programs: Vec<Turn<'_>> = vec![Box::new(|| {
            change(&trees[0])?;
            let (seconds, bytes) = self.save(&trees[0])?;
            Ok(vec![seconds, bytes])
        })];
        if let Some(peer) = &self.rsync {
            self.rsync(peer, &trees[1])?;
            let tree = &trees[1];
            programs.push(Box::new(move || {
                change(tree)?;
                Ok(vec![self.rsync(peer, tree)?, 0.0])
            }));
        }
        let all = turns::rotate(what, session.request.alternations, &mut programs)?;
        drop(programs);
        if let Some(theirs) = all.get(1) {
            let pair = (Series::new("terrace", &all[0][0]), Series::new("rsync", &theirs[0]));
            session.record.add_against(&format!("{what}: time"), "s", pair, Some(targets.0))?;
        }
        let worst = all[0][1].iter().copied().fold(0.0, f64::max);
        let series = Series::new("terrace", &[worst]);
        session.record.add_alone(&format!("{what}: written"), "B", series, Some(targets.1))
    }
}

fn unchanged(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let targets = (Target::AtMost(0.5), Target::AtMost(0.0));
    scene.compare(session, "100,000 files, nothing changed", &|_| Ok(()), targets)
}

fn changed(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let seed = std::cell::Cell::new(1);
    let change = |tree: &str| {
        seed.set(seed.get() + 1);
        let mut random = Random(seed.get());
        let mut content = vec![0; FILE_BYTES];
        for at in 0..CHANGED_FILES {
            random.fill(&mut content);
            let file = format!("{tree}/d{}/f{}", at, seed.get() as usize % FILES_IN_EACH);
            fs::write(&file, &content).map_err(Error::io("write", Path::new(&file)))?;
        }
        Ok(())
    };
    let bytes = 1.2 * (CHANGED_FILES * FILE_BYTES) as f64 + f64::from(1 << 20);
    let targets = (Target::AtMost(1.0 / 1.3), Target::AtMost(bytes));
    scene.compare(session, "100,000 files, 1 % changed", &change, targets)
}

fn little(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("logs");
    fs::create_dir(&tree).map_err(Error::io("create", Path::new(&tree)))?;
    shell(&format!("head -c 64M /dev/urandom > '{tree}/log'"))?;
    for at in 0..8 {
        shell(&format!("head -c 1M /dev/urandom > '{tree}/log.{at}'"))?;
    }
    scene.save(&tree)?;
    let rotation: String =
        (0..7).rev().map(|at| format!("mv '{tree}/log.{at}' '{tree}/log.{}'; ", at + 1)).collect();
    let cases = [
        ("4 KiB appended to 64 MiB", format!("head -c 4096 /dev/urandom >> '{tree}/log'")),
        ("seven logs rotated", rotation),
    ];
    for (what, line) in cases {
        let mut written = Vec::new();
        for _ in 0..session.request.alternations {
            shell(&format!("head -c 1M /dev/urandom > '{tree}/log.0'"))?;
            scene.save(&tree)?;
            shell(&line)?;
            written.push(scene.save(&tree)?.1);
        }
        let worst = written.iter().copied().fold(0.0, f64::max);
        let target = Some(Target::AtMost(65_536.0));
        session.record.add_alone(
            &format!("{what}: written"),
            "B",
            Series::new("terrace", &[worst]),
            target,
        )?;
    }
    Ok(())
}

fn restore(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("one");
    make_tree(&tree)?;
    scene.save(&tree)?;
    let (archive, copy) = (scene.on_disk("tree.tar"), scene.on_disk("copy"));
    shell(&format!(
        "tar -cf '{archive}' -C '{tree}' . && cp -a '{tree}' '{copy}' && rm -r '{tree}'"
    ))?;
    let target = scene.in_memory("restored");
    let (store, program) = (scene.on_disk("store"), scene.terrace.program.display().to_string());
    let lines = [
        ("terrace", format!("'{program}' ramdisk restore '{target}' --persist '{store}'")),
        ("tar -x", format!("mkdir '{target}' && tar -xf '{archive}' -C '{target}'")),
        ("cp -a", format!("cp -a '{copy}' '{target}'")),
    ];
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for (_, line) in &lines {
        let (scene, target) = (&scene, &target);
        programs.push(Box::new(move || {
            scene.disk.remount()?;
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            let started = Instant::now();
            run(command)?;
            let seconds = started.elapsed().as_secs_f64();
            shell(&format!("rm -r '{target}'"))?;
            Ok(vec![seconds])
        }));
    }
    let what = "100,000 files restored";
    let all = turns::rotate(what, session.request.alternations, &mut programs)?;
    drop(programs);
    for (at, (name, _)) in lines.iter().enumerate().skip(1) {
        let pair = (Series::new("terrace", &all[0][0]), Series::new(name, &all[at][0]));
        let row = format!("{what}: time beside {name}");
        session.record.add_against(&row, "s", pair, Some(Target::AtMost(1.0)))?;
    }
    Ok(())
}

fn large(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("large");
    fs::create_dir(&tree).map_err(Error::io("create", Path::new(&tree)))?;
    for at in 0..LARGE_FILES {
        shell(&format!("head -c {LARGE_BYTES} /dev/urandom > '{tree}/file{at}'"))?;
    }
    let bytes = (LARGE_FILES * LARGE_BYTES) as f64;
    let restored = scene.in_memory("restored");
    let mut ours: [Vec<f64>; 2] = Default::default();
    let mut device: [Vec<f64>; 2] = Default::default();
    for round in 0..session.request.alternations {
        eprintln!("1 GiB in large files: {} of {}", round + 1, session.request.alternations);
        shell(&format!("rm -rf '{}' '{restored}'", scene.on_disk("store")))?;
        ours[0].push(bytes / scene.save(&tree)?.0);
        scene.disk.remount()?;
        let store = scene.on_disk("store");
        let line = ["ramdisk", "restore", &restored, "--persist", &store];
        let started = Instant::now();
        report::run(&scene.terrace, &line, LIMIT)?;
        ours[1].push(bytes / started.elapsed().as_secs_f64());
        let line = ["measure", "seqio", &scene.disk.point, "--over", "0"];
        let probed = report::run(&scene.terrace, &line, LIMIT)?;
        device[0].push(report::number(&probed, "/result/durable_bytes_per_s")?);
        let phases = report::list(&probed, "/result/phases")?;
        let read = phases.iter().find(|phase| phase["name"] == "cold_read");
        let cold = read.ok_or_else(|| report::malformed("no phase `cold_read`".to_owned()))?;
        device[1].push(report::number(cold, "/bytes_per_s")?);
    }
    for (at, what) in ["saved", "restored"].into_iter().enumerate() {
        let pair = (Series::new("terrace", &ours[at]), Series::new("measure seqio", &device[at]));
        let row = format!("1 GiB in large files {what}: rate");
        session.record.add_against(&row, "B/s", pair, Some(Target::AtLeast(0.9)))?;
    }
    Ok(())
}

fn make_tree(tree: &str) -> Result<(), Error> {
    let mut content = vec![0; FILE_BYTES];
    let mut random = Random(7);
    for directory in 0..DIRECTORIES {
        let path = format!("{tree}/d{directory}");
        fs::create_dir_all(&path).map_err(Error::io("create", Path::new(&path)))?;
        for file in 0..FILES_IN_EACH {
            random.fill(&mut content);
            let name = format!("{path}/f{file}");
            fs::write(&name, &content).map_err(Error::io("write", Path::new(&name)))?;
        }
    }
    Ok(())
}
