//! Many small files and small changes: what a save takes and writes beside `rsync -a --delete` and
//! the scripts that call it, and what a restore takes beside `tar -x` and `cp -a`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::scripts::SyncScript;
use super::{CHANGED_FILES, FILE_BYTES, Scene, change_some, make_tree};
use crate::bench::Session;
use crate::bench::copy::{run, shell};
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;

/// What changes a tree before it is saved.
type Change<'c> = &'c dyn Fn(&str) -> Result<(), Error>;

pub(super) fn unchanged(session: &mut Session) -> Result<(), Error> {
    let targets = (Target::AtMost(0.5), Target::AtMost(0.0));
    compare(session, "100,000 files, nothing changed", &|_| Ok(()), targets)
}

pub(super) fn changed(session: &mut Session) -> Result<(), Error> {
    let seed = std::cell::Cell::new(1);
    let change = |tree: &str| {
        seed.set(seed.get() + 1);
        change_some(tree, seed.get())
    };
    let bytes = 1.2 * (CHANGED_FILES * FILE_BYTES) as f64 + f64::from(1 << 20);
    let targets = (Target::AtMost(1.0 / 1.3), Target::AtMost(bytes));
    compare(session, "100,000 files, 1 % changed", &change, targets)
}

/// All programs in turn, each with a tree of its own; their seconds, bytes of ours.
fn compare(
    session: &mut Session,
    what: &str,
    change: Change<'_>,
    targets: (Target, Target),
) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let trees = [scene.in_memory("one"), scene.in_memory("other")];
    for tree in &trees {
        make_tree(tree)?;
    }
    let scripts = SyncScript::all(session, &scene)?;
    std::thread::sleep(Duration::from_millis(100));
    scene.save(&trees[0])?;
    let mut programs: Vec<Turn<'_>> = vec![Box::new(|| {
        change(&trees[0])?;
        let (seconds, bytes) = scene.save(&trees[0])?;
        Ok(vec![seconds, bytes])
    })];
    let mut names = Vec::new();
    if let Some(peer) = &scene.rsync {
        scene.rsync(peer, &trees[1])?;
        let (scene, tree) = (&scene, &trees[1]);
        programs.push(Box::new(move || {
            change(tree)?;
            Ok(vec![scene.rsync(peer, tree)?, 0.0])
        }));
        names.push(("rsync", Some(targets.0)));
    }
    for script in &scripts {
        let point = &scene.disk.point;
        programs.push(Box::new(move || {
            change(script.tree())?;
            Ok(vec![script.save(point)?, 0.0])
        }));
        names.push((script.name(), None));
    }
    let all = turns::rotate(what, session.request.alternations, &mut programs)?;
    drop(programs);
    for ((name, target), theirs) in names.into_iter().zip(all.iter().skip(1)) {
        let pair = (Series::new("terrace", &all[0][0]), Series::new(name, &theirs[0]));
        session.record.add_against(&format!("{what}: time beside {name}"), "s", pair, target)?;
    }
    let worst = all[0][1].iter().copied().fold(0.0, f64::max);
    let series = Series::new("terrace", &[worst]);
    session.record.add_alone(&format!("{what}: written"), "B", series, Some(targets.1))
}

pub(super) fn little(session: &mut Session) -> Result<(), Error> {
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

pub(super) fn restore(session: &mut Session) -> Result<(), Error> {
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
