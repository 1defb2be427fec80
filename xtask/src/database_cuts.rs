//! Power cuts while two databases on a RAM disk are saved under load: SQLite with its log (WAL) and
//! PostgreSQL. The store is on a disk whose writes are kept, so one load gives as many cuts as
//! wanted; each is mounted, restored to a new RAM disk and opened by both databases.
//!
//! 1. A client of each database commits one transaction after the other, and notes the
//!    acknowledged ones outside of the RAM disk. All processes of the databases are frozen while a
//!    save reads, by one control group.
//! 2. A cut at any moment may cost what was acknowledged after the beginning of the last save that
//!    had ended: the loss window. The database must hold exactly the state after some transaction,
//!    not before the window and not after the last one (`ledger`).

mod database;
mod ledger;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{
    Cgroup, CutDisk, FaultPlan, FaultyDisk, FileSystem, LoopDevice, Mount, Random, TempDir,
};

use crate::process;
use database::{Database, Load};

const DISK_BYTES: u64 = 192 << 20;
const RAM_SIZE: &str = "256m";
/// Commits of each database from one save to the next, at least.
const COMMITS_BETWEEN: u64 = 150;
/// Nothing here takes as long.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// What is done to databases, and how often.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseCuts<'a> {
    /// The program that saves and restores.
    pub program: &'a Path,
    /// Saves under load, with one more before.
    pub saves: usize,
    /// Power cuts.
    pub cuts: usize,
    /// Draws their moments, and what each leaves.
    pub seed: u64,
    /// Whether the disk answers a flush and does nothing.
    pub ignores_flushes: bool,
    /// Whether the databases are frozen while they are saved.
    pub freezes: bool,
}

/// What was found after the cuts.
#[derive(Clone, Debug, Default)]
pub struct DatabaseReport {
    /// Which databases there were.
    pub databases: Vec<&'static str>,
    /// Cuts.
    pub cuts: usize,
    /// Of them with something in the cache of the disk.
    pub with_cached: usize,
    /// Of them in the midst of a save.
    pub within_a_save: usize,
    /// Which generations were restored.
    pub restored: BTreeSet<u64>,
    /// Of each database the transactions that were acknowledged altogether.
    pub acknowledged: Vec<u64>,
    /// The longest time for which the databases were frozen, seconds.
    pub frozen_max_s: f64,
    /// Cuts after which something must not be.
    pub faulty_cuts: usize,
    /// What must not be, with the moment and the seed.
    pub faults: Vec<String>,
}

/// A save that has ended.
#[derive(Debug)]
struct Save {
    generation: u64,
    /// How many changes of the disk there were at its beginning and its end.
    changes: [usize; 2],
    /// Of each database the acknowledged transactions before it and after it.
    acknowledged: Vec<[u64; 2]>,
    frozen_s: f64,
}

/// A moment of the disk, and the seed of what a cut leaves then.
#[derive(Clone, Copy, Debug)]
struct Moment {
    change: usize,
    seed: u64,
}

impl DatabaseCuts<'_> {
    /// Saves both databases under load, and judges what the cuts leave.
    ///
    /// # Errors
    /// The words for `testkit::skip`, or what failed.
    pub fn run(&self) -> Result<DatabaseReport, String> {
        let databases = Database::all()?;
        let (mut disk, saves) = self.saved(&databases)?;
        let end = saves.last().map_or(0, |save| save.changes[1]);
        let mut random = Random(self.seed);
        let mut moments: Vec<Moment> = (0..self.cuts)
            .map(|_| Moment {
                change: random.below(end as u64 + 1) as usize,
                seed: random.below(u64::MAX),
            })
            .collect();
        moments.sort_unstable_by_key(|moment| moment.change);
        // After the end nothing of the last save may be missing.
        if let Some(last) = moments.last_mut() {
            last.change = end;
        }
        let last = saves.iter().flat_map(|save| &save.acknowledged);
        let mut report = DatabaseReport {
            databases: databases.iter().map(Database::name).collect(),
            acknowledged: last.skip((saves.len() - 1) * databases.len()).map(|it| it[1]).collect(),
            frozen_max_s: saves.iter().map(|save| save.frozen_s).fold(0.0, f64::max),
            ..DatabaseReport::default()
        };
        for (number, moment) in moments.into_iter().enumerate() {
            let faults = self.judge(&mut disk, &databases, (moment, &saves), &mut report)?;
            report.faulty_cuts += usize::from(!faults.is_empty());
            let Moment { change, seed } = moment;
            let place = format!("cut {number}, after {change} of {end} changes, seed {seed}");
            report.faults.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
        }
        Ok(report)
    }

    /// The disk with all that the saves did to it, and the saves.
    fn saved(&self, databases: &[Database]) -> Result<(CutDisk, Vec<Save>), String> {
        // The guards go in the other order: the programs first, the disk last.
        let disk = FaultyDisk::new(DISK_BYTES, FaultPlan::new())?;
        let mount = disk.mount(FileSystem::Ext4)?;
        let store = mount.path().join("store");
        let side = Side::make()?;
        let ram = RamDisk::create(self.program, &side.own.join("ram"), &store)?;
        let group = Cgroup::v2()?;
        let start = |database: &Database| database.start(&ram.point, &side.open, &group);
        let loads = databases.iter().map(start).collect::<Result<Vec<Load>, String>>()?;
        let scene = Scene { ram: &ram, store: &store, group: &group, disk: &disk };
        let mut saves = vec![self.save(&scene, &loads)?];
        database::run("sync", &["-f", &mount.path().to_string_lossy()])?;
        let mut kept = disk.record().map_err(|error| error.to_string())?;
        saves[0].changes = [0, 0];
        for _ in 0..self.saves {
            saves.push(self.save(&scene, &loads)?);
        }
        loads.into_iter().try_for_each(Load::end)?;
        disk.end_record(&mut kept);
        let kept = if self.ignores_flushes { kept.ignoring_flushes() } else { kept };
        Ok((kept, saves))
    }

    /// One save under load.
    fn save(&self, scene: &Scene<'_>, loads: &[Load]) -> Result<Save, String> {
        let wanted: Vec<u64> = loads.iter().map(|load| load.count() + COMMITS_BETWEEN).collect();
        let began = Instant::now();
        while loads.iter().zip(&wanted).any(|(load, wanted)| load.count() < *wanted) {
            loads.iter().try_for_each(Load::check)?;
            if began.elapsed() > LIMIT {
                return Err("the databases do not go on".to_owned());
            }
            std::thread::sleep(POLL);
        }
        let group = scene.group.path().display();
        let mut command = Command::new(self.program);
        command.args(["ramdisk", "save", "--json"]).arg(&scene.ram.point);
        command.arg("--persist").arg(scene.store);
        if self.freezes {
            let freeze = format!(
                "echo 1 >'{group}/cgroup.freeze'
                 until grep -qx 'frozen 1' '{group}/cgroup.events'; do sleep 0.002; done"
            );
            let thaw = format!("echo 0 >'{group}/cgroup.freeze'");
            command.args(["--freeze-cmd", &freeze, "--thaw-cmd", &thaw]);
        }
        let before: Vec<u64> = loads.iter().map(Load::count).collect();
        let first = scene.disk.recorded_changes();
        let finished = process::run(command, LIMIT).map_err(|error| error.to_string())?;
        let changes = [first, scene.disk.recorded_changes()];
        let after = loads.iter().map(Load::count);
        // Without a freeze files change while they are read.
        let done = if self.freezes {
            finished.success().map_err(|error| error.to_string())?
        } else {
            finished
        };
        let said: serde_json::Value = serde_json::from_str(&done.stdout)
            .map_err(|error| format!("{error}: {}", done.stderr))?;
        let saved = &said["result"]["saved"];
        Ok(Save {
            generation: saved["generation"].as_u64().unwrap_or_default(),
            changes,
            acknowledged: before.into_iter().zip(after).map(|(it, after)| [it, after]).collect(),
            frozen_s: saved["frozen_seconds"].as_f64().unwrap_or_default(),
        })
    }

    /// Makes the state after one cut, and says what is wrong with it.
    fn judge(
        &self,
        disk: &mut CutDisk,
        databases: &[Database],
        (moment, saves): (Moment, &[Save]),
        report: &mut DatabaseReport,
    ) -> Result<Vec<String>, String> {
        let side = Side::make()?;
        let image = side.own.join("image");
        let failed = |error: std::io::Error| error.to_string();
        let file = File::create(&image).map_err(failed)?;
        let cached = disk.cut_into(moment.change, moment.seed, &file).map_err(failed)?;
        drop(file);
        let device = LoopDevice::over(&image)?;
        report.cuts += 1;
        report.with_cached += usize::from(cached > 0);
        let mount = match Mount::existing(FileSystem::Ext4, device.path(), side.own.join("disk")) {
            Ok(mount) => mount,
            Err(error) => return Ok(vec![format!("cannot be mounted: {error}")]),
        };
        let store = mount.path().join("store");
        let ram = match RamDisk::create(self.program, &side.own.join("ram"), &store) {
            Ok(ram) => ram,
            Err(error) => return Ok(vec![format!("cannot be restored: {error}")]),
        };
        let ended = saves.partition_point(|save| save.changes[1] <= moment.change);
        let window = &saves[ended - 1..saves.len().min(ended + 1)];
        let is_within = window.get(1).is_some_and(|next| next.changes[0] < moment.change);
        report.within_a_save += usize::from(is_within);
        report.restored.insert(ram.generation);
        let mut faults = Vec::new();
        if !window.iter().any(|save| save.generation == ram.generation) {
            faults.push(format!("generation {}", ram.generation));
        }
        for (at, database) in databases.iter().enumerate() {
            let least = window[0].acknowledged[at][0];
            // One more may be committed and not acknowledged.
            let most = window[window.len() - 1].acknowledged[at][1] + 1;
            let read = database.read(&ram.point, &side.open);
            let wrong = read.and_then(|text| ledger::transactions(&text, least, most)).err();
            faults.extend(wrong.map(|why| format!("{}: {why}", database.name())));
        }
        Ok(faults)
    }
}

/// What a save is from and to.
struct Scene<'a> {
    ram: &'a RamDisk,
    store: &'a Path,
    group: &'a Cgroup,
    disk: &'a FaultyDisk,
}

/// A RAM disk as users have it; removed with what is on it.
struct RamDisk {
    program: PathBuf,
    point: PathBuf,
    /// What it was filled from; 0 if there was none.
    generation: u64,
}

impl RamDisk {
    fn create(program: &Path, point: &Path, store: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(["ramdisk", "create", "--json", "--size", RAM_SIZE]);
        command.arg(point).arg("--persist").arg(store);
        let ran = process::run(command, LIMIT).and_then(process::Finished::success);
        let mut ram = Self { program: program.to_owned(), point: point.to_owned(), generation: 0 };
        let said: serde_json::Value =
            serde_json::from_str(&ran.map_err(|it| it.to_string())?.stdout)
                .map_err(|error| error.to_string())?;
        ram.generation = said["result"]["restored"]["generation"].as_u64().unwrap_or_default();
        Ok(ram)
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(["ramdisk", "remove", "--discard"]).arg(&self.point);
        // Of one that could not be made nothing is there.
        let _ = process::run(command, LIMIT);
    }
}

/// Directories beside the RAM disk.
struct Side {
    /// Only for us, as a store demands it.
    own: TempDir,
    /// In it, for sockets and logs of any account.
    open: PathBuf,
}

impl Side {
    fn make() -> Result<Self, String> {
        use std::os::unix::fs::PermissionsExt;
        let own = TempDir::in_dir(Path::new("/dev/shm"));
        let open = own.join("open");
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::create_dir(&open)
            .and_then(|()| std::fs::set_permissions(&open, everybody))
            .map_err(|error| error.to_string())?;
        Ok(Self { own, open })
    }
}
