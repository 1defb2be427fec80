//! 100,000 files of 4 KiB, a hundred in a directory, to a file system that is new each time: an old
//! one makes creation several times slower from run to run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::image::MountedImage;
use super::{copiers, durable_seconds, shell, take_turns};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

const DIRECTORIES: usize = 1000;
const FILES_IN_EACH: usize = 100;
const FILE_BYTES: usize = 4096;
const IMAGE_BYTES: u64 = 1 << 30;
const INODES: u64 = 131_072;

/// Measures the part with a cold source.
///
/// # Errors
/// When a program is missing or fails, or no loop device can be had.
pub(super) fn cold(session: &mut Session) -> Result<(), Error> {
    measure(session, true)
}

/// Measures the part with a cached source.
///
/// # Errors
/// As [`cold`].
pub(super) fn cached(session: &mut Session) -> Result<(), Error> {
    measure(session, false)
}

fn measure(session: &mut Session, is_cold: bool) -> Result<(), Error> {
    let copiers = copiers(session)?;
    let directory = session.directory.name().to_owned();
    let source = MountedImage::new(&directory, "source-disk", IMAGE_BYTES, INODES)?;
    let tree = format!("{}/tree", source.point);
    make_tree(&tree)?;
    let (what, target) = if is_cold {
        ("100,000 files of 4 KiB, source cold", 0.7)
    } else {
        ("100,000 files of 4 KiB, source cached", 1.1)
    };
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for copier in &copiers {
        copier.note(session);
        let (source, tree, directory) = (&source, &tree, &directory);
        programs.push(Box::new(move || {
            let image = MountedImage::new(directory, "target-disk", IMAGE_BYTES, INODES)?;
            shell("sync")?;
            if is_cold {
                source.remount()?;
            } else {
                // Their names are more than one command line holds.
                shell(&format!("find '{tree}' -type f -exec cat {{}} + > /dev/null"))?;
            }
            let mut command = Command::new(&copier.peer.program);
            let target = format!("{}/copy", image.point);
            command.args(copier.arguments(tree, &target));
            Ok(vec![durable_seconds(command, &image.point)?])
        }));
    }
    let part = if is_cold { "small-cold" } else { "small-cached" };
    let all = take_turns(session, part, (what, 1), programs)?;
    let Some((ours, theirs)) = all.split_first() else { return Ok(()) };
    for (copier, other) in copiers.iter().skip(1).zip(theirs) {
        let name = copier.name.as_str();
        let target = match name {
            "cp" => Some(Target::AtMost(target)),
            "rsync" => Some(Target::AtMost(1.0)),
            _ => None,
        };
        let pair = (Series::new("terrace", &ours[0]), Series::new(name, &other[0]));
        session.record.add_against(&format!("{what}: beside {name}"), "s", pair, target)?;
    }
    Ok(())
}

fn make_tree(tree: &str) -> Result<(), Error> {
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 7 % 251) as u8).collect();
    for directory in 0..DIRECTORIES {
        let path = format!("{tree}/d{directory}");
        fs::create_dir_all(&path).map_err(Error::io("create", Path::new(&path)))?;
        for file in 0..FILES_IN_EACH {
            let name = format!("{path}/f{file}");
            fs::write(&name, &content).map_err(Error::io("write", Path::new(&name)))?;
        }
    }
    shell("sync")
}
