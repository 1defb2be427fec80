//! Power cuts during `terrace copy`: a copy to a disk whose writes are kept, then many states that
//! a cut leaves, each mounted and judged. The kernel is this machine's, the disk is `testkit`'s.
//!
//! After each cut what has its final name is whole, a new tree is there as a whole or not at all,
//! the file system needs no more than its journal, and the same command ends with all of it. After
//! the end of the command nothing is missing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{CutDisk, FaultPlan, FaultyDisk, FileSystem, LoopDevice, Mount, Random, TempDir};

/// Sizes of files, from empty to some that go to the ring.
const SIZES: [usize; 6] = [0, 700, 4096, 70_000, 300_000, 1_200_000];
const FILES: usize = 48;
const DISK_BYTES: u64 = 64 << 20;
/// Of so many cuts the last one comes after the end of the command.
const AFTER_THE_END: usize = 5;
const HIDDEN: &str = ".terrace-copy";

/// Where the copies go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutTarget {
    /// A tree that does not exist: it appears by one rename.
    NewTree,
    /// A directory that exists: each file gets its name by a rename of its own.
    Existing,
}

/// What is copied, and by which program.
#[derive(Debug)]
pub struct CutCopy {
    program: PathBuf,
    directory: TempDir,
    target: CutTarget,
    disk_bytes: u64,
}

/// What was found after the cuts.
#[derive(Clone, Debug, Default)]
pub struct CutReport {
    /// Cuts.
    pub cuts: usize,
    /// Of them with something in the cache of the disk.
    pub with_cached: usize,
    /// Of them with nothing under a final name, with some files, and with all.
    pub with_none: usize,
    /// Some files.
    pub with_some: usize,
    /// All files.
    pub with_all: usize,
    /// Where the second run found something of the first.
    pub resumed: usize,
    /// What must not be, with the moment and the seed.
    pub faults: Vec<String>,
}

impl CutCopy {
    /// A tree of small files, or with `large_bytes` one large file beside them.
    ///
    /// # Errors
    /// When the files cannot be made.
    pub fn new(program: &Path, target: CutTarget, large_bytes: u64) -> std::io::Result<Self> {
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let tree = directory.join("tree");
        let mut random = Random(20);
        for at in 0..FILES {
            let below = tree.join(format!("d{}", at % 5));
            std::fs::create_dir_all(&below)?;
            let seed = random.below(251) as usize;
            std::fs::write(below.join(format!("file{at}")), bytes(seed, SIZES[at % SIZES.len()]))?;
        }
        if large_bytes > 0 {
            std::fs::write(tree.join("large"), bytes(3, large_bytes as usize))?;
        }
        let disk_bytes = DISK_BYTES + 2 * large_bytes;
        Ok(Self { program: program.to_owned(), directory, target, disk_bytes })
    }

    /// Copies once, and judges `cuts` cuts. `ignores_flushes` for a disk that does not do what it
    /// says.
    ///
    /// # Errors
    /// The words for `testkit::skip`, or what failed.
    pub fn run(&self, cuts: usize, seed: u64, ignores_flushes: bool) -> Result<CutReport, String> {
        let (disk, end) = self.recorded_copy()?;
        let mut disk = if ignores_flushes { disk.ignoring_flushes() } else { disk };
        let mut random = Random(seed);
        let before_end = cuts - cuts.div_ceil(AFTER_THE_END);
        let mut moments: Vec<usize> =
            (0..before_end).map(|_| random.below(end as u64) as usize + 1).collect();
        moments.sort_unstable();
        moments.resize(cuts, end);
        let mut report = CutReport::default();
        for (number, moment) in moments.into_iter().enumerate() {
            let own_seed = random.below(u64::MAX);
            let is_over = number >= before_end;
            let faults = self.judge(&mut disk, (moment, own_seed), is_over, &mut report)?;
            let place = format!("cut {number}, after {moment} of {end} changes, seed {own_seed}");
            report.faults.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
        }
        Ok(report)
    }

    /// The disk with all that the copy did to it, and how many changes there were when the command
    /// had ended.
    fn recorded_copy(&self) -> Result<(CutDisk, usize), String> {
        let disk = FaultyDisk::new(self.disk_bytes, FaultPlan::new())?;
        let mount = disk.mount(FileSystem::Ext4)?;
        std::fs::create_dir(mount.path().join("into")).map_err(|error| error.to_string())?;
        run("sync", &["-f".as_ref(), mount.path().as_os_str()])?;
        let mut kept = disk.record().map_err(|error| error.to_string())?;
        self.copy_to(mount.path())?;
        let end = disk.recorded_changes();
        disk.end_record(&mut kept);
        Ok((kept, end))
    }

    fn copy_to(&self, disk: &Path) -> Result<String, String> {
        let tree = self.directory.join("tree");
        let source = if self.target == CutTarget::NewTree { tree } else { tree.join(".") };
        let into = disk.join("into");
        let words = ["copy".as_ref(), "--now".as_ref(), source.as_os_str(), into.as_os_str()];
        run(&self.program.to_string_lossy(), &words)
    }

    /// Makes the state after one cut, and says what is wrong with it.
    fn judge(
        &self,
        disk: &mut CutDisk,
        (moment, seed): (usize, u64),
        is_over: bool,
        report: &mut CutReport,
    ) -> Result<Vec<String>, String> {
        let work = TempDir::in_dir(Path::new("/dev/shm"));
        let image = work.join("image");
        let failed = |error: std::io::Error| error.to_string();
        let file = File::create(&image).map_err(failed)?;
        let cached = disk.cut_into(moment, seed, &file).map_err(failed)?;
        drop(file);
        let device = LoopDevice::over(&image)?;
        let mut faults = Vec::new();
        report.cuts += 1;
        report.with_cached += usize::from(cached > 0);
        match Mount::existing(FileSystem::Ext4, device.path(), work.join("point")) {
            Ok(mount) => faults.extend(self.judge_mounted(mount.path(), is_over, report)),
            Err(error) => faults.push(format!("cannot be mounted: {error}")),
        }
        // The mount has replayed the journal, if there was anything in it.
        let checked = run("e2fsck", &["-fn".as_ref(), device.path().as_os_str()]);
        faults.extend(checked.err().map(|error| format!("e2fsck: {error}")));
        Ok(faults)
    }

    fn judge_mounted(&self, point: &Path, is_over: bool, report: &mut CutReport) -> Vec<String> {
        let mut faults = Vec::new();
        let into = point.join("into");
        let top = if self.target == CutTarget::NewTree { into.join("tree") } else { into.clone() };
        let expected = files(&self.directory.join("tree"));
        let named = files(&top);
        let broken = named.iter().filter(|&(name, data)| expected.get(name) != Some(data));
        faults.extend(broken.map(|(name, _)| format!("{} is not whole", name.display())));
        match named.len() {
            0 => report.with_none += 1,
            number if number == expected.len() => report.with_all += 1,
            _ => report.with_some += 1,
        }
        let is_whole = named.len() == expected.len();
        if self.target == CutTarget::NewTree && !named.is_empty() && !is_whole {
            faults.push(format!("{} of {} files of a new tree", named.len(), expected.len()));
        }
        if is_over && !is_whole {
            faults.push(format!("done, and {} of {} files", named.len(), expected.len()));
        }
        match self.copy_to(point) {
            Ok(said) => report.resumed += usize::from(said.contains("from an earlier run")),
            Err(error) => faults.push(format!("the same command: {error}")),
        }
        if files(&top) != expected {
            faults.push("not equal after the same command".to_owned());
        }
        let names = std::fs::read_dir(&into).into_iter().flatten().flatten();
        let is_hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(HIDDEN);
        if names.map(|entry| entry.file_name()).any(|name| is_hidden(&name)) {
            faults.push("a hidden directory is left".to_owned());
        }
        faults
    }
}

fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|byte| ((byte / 3 + byte / 65_537 + seed) % 251) as u8).collect()
}

/// All files below a directory, by their paths there; not those of a copy that grows.
fn files(top: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && !entry.file_name().to_string_lossy().starts_with(HIDDEN) {
                directories.push(path);
            } else if !is_directory && let Ok(below) = path.strip_prefix(top) {
                let data = std::fs::read(&path).unwrap_or_else(|error| error.to_string().into());
                found.insert(below.to_owned(), data);
            }
        }
    }
    found
}

/// What a program says; an error if it fails.
fn run(program: &str, words: &[&std::ffi::OsStr]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(words).env("LC_ALL", "C");
    let ended = command.output().map_err(|error| format!("{program}: {error}"))?;
    let [out, err] =
        [ended.stdout, ended.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    if ended.status.success() {
        return Ok(out);
    }
    Err(format!("{program} {}: {out}{err}", ended.status))
}
