//! Real programs on a file system of which nothing is cached: it is mounted anew before they
//! start, so the cache of everything else stays as it is.

use super::Made;
use super::make::{MIB, finish, slow_disk, text};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};
use testkit::{Cgroup, Mounted};

/// The files of the tree, and how many are in each directory.
const FILES: usize = 20_000;
const FILES_OF_A_DIRECTORY: usize = 100;

/// So many differ; an object store keeps the others once.
const CONTENTS: usize = 64;

/// Older than the index of git, so that their status is known by their inodes alone.
const AGE: Duration = Duration::from_secs(3600);

/// `git status` of a large tree, on a disk that has to move its arm for each directory.
pub fn git_status_cold() -> Result<Made, String> {
    let mounted = Mounted::on_hdd(400 * MIB)?;
    let tree = mounted.path().join("tree");
    write_tree(&tree).map_err(|error| error.to_string())?;
    let tree = text(&tree);
    let git = |words: &[&str]| {
        let argv = [&["git", "-C", &tree, "-c", "core.fsync=none", "-c", "gc.auto=0"], words];
        finish(&argv.concat().into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    git(&[&author[..], &["commit", "--quiet", "--message=all"]].concat())?;
    mounted.remount()?;
    Ok(Made {
        argv: ["git", "-C", &tree, "status", "--short"].map(str::to_owned).to_vec(),
        _mounts: vec![mounted],
        ..Made::default()
    })
}

fn write_tree(tree: &Path) -> std::io::Result<()> {
    let old = SystemTime::now() - AGE;
    for number in 0..FILES {
        let part = number / FILES_OF_A_DIRECTORY;
        let directory = tree.join(format!("module{}/part{part}", part / 20));
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("source{number}.c"));
        fs::write(&path, format!("int version = {};\n", number % CONTENTS))?;
        File::options().write(true).open(&path)?.set_modified(old)?;
    }
    Ok(())
}

/// The first start of a browser after the machine was started: its program is read from a slow
/// disk, fault by fault.
pub fn browser_starts() -> Result<Made, String> {
    let installed = Path::new("/usr/lib/chromium");
    if !installed.join("chromium").exists() {
        return Err("the program chromium".to_owned());
    }
    let (mounted, group) = slow_disk(600, Cgroup::v1_read_rate, 60 * MIB)?;
    let (target, profile) = (text(mounted.path()), text(&mounted.path().join("profile")));
    finish(&["cp", "-r", &text(installed), &target].map(str::to_owned))?;
    mounted.remount()?;
    let browser = text(&mounted.path().join("chromium/chromium"));
    let profile = format!("--user-data-dir={profile}");
    let words = ["--headless", "--no-sandbox", "--disable-gpu", &profile, "--dump-dom"];
    let mut argv = vec![browser];
    argv.extend(words.iter().chain(&["about:blank"]).map(|word| (*word).to_owned()));
    Ok(Made { argv, groups: vec![group], _mounts: vec![mounted], ..Made::default() })
}
