//! 100,000 files of 4 KiB, a hundred in a directory, to a file system that is new each time: an old
//! one makes creation several times slower from run to run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{copiers, durable_seconds, shell, source_for};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;

const DIRECTORIES: usize = 1000;
const FILES_IN_EACH: usize = 100;
const FILE_BYTES: usize = 4096;
const IMAGE_BYTES: u64 = 1 << 30;

/// A file system in a file, mounted; unmounted on drop.
struct Image {
    file: String,
    point: String,
}

impl Image {
    /// Makes a new ext4 and mounts it.
    fn new(directory: &str, name: &str) -> Result<Self, Error> {
        let image = Self {
            file: format!("{directory}/{name}.image"),
            point: format!("{directory}/{name}"),
        };
        let Self { file, point } = &image;
        shell(&format!(
            "truncate -s {IMAGE_BYTES} '{file}' && mkfs.ext4 -q -F -N 131072 '{file}' && \
             mkdir -p '{point}' && mount -o loop '{file}' '{point}'"
        ))?;
        Ok(image)
    }

    /// Nothing of it is cached afterwards, but for its file.
    fn remount(&self) -> Result<(), Error> {
        let Self { file, point } = self;
        shell(&format!("umount '{point}' && mount -o loop '{file}' '{point}'"))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let Self { file, point } = self;
        // What stays is removed with the directory of the bench.
        let _ = shell(&format!("umount '{point}'; rm -f '{file}'"));
    }
}

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails, or no loop device can be had.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let copiers = copiers(session)?;
    let directory = session.directory.name().to_owned();
    let source = Image::new(&directory, "source-disk")?;
    let tree = format!("{}/tree", source.point);
    make_tree(&tree)?;
    for is_cold in [true, false] {
        let (what, target) = if is_cold {
            ("100,000 files of 4 KiB, source cold", 0.7)
        } else {
            ("100,000 files of 4 KiB, source cached", 1.1)
        };
        let mut programs: Vec<Turn<'_>> = Vec::new();
        for (peer, words) in &copiers {
            let (source, tree, directory) = (&source, &tree, &directory);
            programs.push(Box::new(move || {
                let image = Image::new(directory, "target-disk")?;
                shell("sync")?;
                if is_cold {
                    source.remount()?;
                } else {
                    shell(&format!("cat '{tree}'/*/* > /dev/null"))?;
                }
                let mut command = Command::new(&peer.program);
                let target = format!("{}/copy", image.point);
                command.args(*words).args([&source_for(peer, tree), &target]);
                Ok(vec![durable_seconds(command, &image.point)?])
            }));
        }
        let all = turns::rotate(what, session.request.alternations, &mut programs)?;
        drop(programs);
        let Some((ours, theirs)) = all.split_first() else { return Ok(()) };
        for (place, other) in theirs.iter().enumerate() {
            let name = copiers[place + 1].0.name.as_str();
            let target = match name {
                "cp" => Some(Target::AtMost(target)),
                "rsync" => Some(Target::AtMost(1.0)),
                _ => None,
            };
            let pair = (Series::new("terrace", &ours[0]), Series::new(name, &other[0]));
            session.record.add_against(&format!("{what}: beside {name}"), "s", pair, target)?;
        }
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
