//! `terrace boost qualify` on a disk that fails just when its first block is written: what a fake
//! replaced is put back as far as the disk lets it be, only what follows the block a second time is
//! called a fake, and what was not seen is said.
//!
//! The disk waits with each write to the file's place until the test has said what comes next.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, command, run, wait_for};
use testkit::disk_model::DiskRequest;
use testkit::disk_model::RequestKind::{self, Read, Write};
use testkit::{Beyond, DiskMount, FaultPlan, FaultyDisk, FileFault, FileSystem, Trigger};

const MIB: u64 = 1 << 20;
const CLAIMED: u64 = 1024 * MIB;
/// What it really has.
const REAL: u64 = 128 * MIB;
const BLOCK: u64 = 4096;
/// A wait for the program that is longer hangs.
const LONGEST: Duration = Duration::from_secs(30);

fn wraps() -> FaultPlan {
    FaultPlan::new().true_size(REAL, Beyond::Wraps)
}

fn block(at: u64) -> Range<u64> {
    at..at + BLOCK
}

/// The other places of the block at `high` that are the same bytes of what the disk has.
fn others(high: u64) -> impl Iterator<Item = u64> {
    let powers = std::iter::successors(Some(REAL), |power| Some(power * 2));
    powers
        .take_while(|power| *power < CLAIMED)
        .map(move |power| high % power)
        .filter(move |it| *it < high)
}

/// A fake that wraps, and fails where the block at `high` would be put back.
fn wraps_and_fails(kind: RequestKind, high: u64) -> FaultPlan {
    others(high).fold(wraps(), |plan, place| plan.bad_range(kind, block(place)))
}

fn photo(number: u64) -> Vec<u8> {
    (number + 1).to_le_bytes().repeat(BLOCK as usize / 8)
}

fn disk() -> Option<FaultyDisk> {
    FaultyDisk::new(CLAIMED, wraps()).map_err(testkit::skip).ok()
}

/// Photos on all that it has, then ext4 among them, where the next file begins far beyond that.
fn filled(disk: &FaultyDisk) -> DiskMount<'_> {
    let device = File::options().write(true).open(disk.device()).unwrap();
    let mut photos = Vec::with_capacity(REAL as usize);
    (0..REAL / BLOCK).for_each(|number| photos.extend_from_slice(&photo(number)));
    device.write_all_at(&photos, 0).unwrap();
    device.sync_all().unwrap();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-b", "4096", "-O", "^has_journal,^resize_inode,sparse_super2"])
        .args(["-E", "num_backup_sb=0,nodiscard"])
        .arg(disk.device())
        .status();
    assert!(made.unwrap().success());
    let mount = disk.mount_again(FileSystem::Ext4).unwrap();
    let reserved = mount.path().join("reserved");
    let status = Command::new("fallocate").args(["-l", "600m"]).arg(reserved).status();
    assert!(status.unwrap().success());
    mount
}

fn qualify(path: &Path) -> Command {
    let mut command = command("boost qualify --for /dev/null --size 16m --budget 2s --json");
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run whose first block waits to be written.
struct Running<'d> {
    disk: &'d FaultyDisk,
    child: Child,
    /// Where it will be, as the disk claims.
    high: u64,
}

/// What one run said.
struct Said {
    ran: Ran,
    result: Value,
}

impl<'d> Running<'d> {
    fn start(disk: &'d FaultyDisk, path: &Path) -> Self {
        let waits = Trigger::Touches(Write, REAL..CLAIMED);
        disk.set_plan(wraps().with(waits, FileFault::Hang));
        let child = qualify(path).spawn().unwrap();
        assert!(disk.wait_for_hang(LONGEST), "nothing was written beyond what it has");
        let requests = disk.requests();
        let is_beyond = |request: &&DiskRequest| request.kind == Write && request.offset >= REAL;
        let high = requests.iter().find(is_beyond).unwrap().offset;
        Self { disk, child, high }
    }

    /// The place that the block has on a disk that wraps.
    fn low(&self) -> u64 {
        self.high % REAL
    }

    /// Serves the write that waits; it and all after it are served by `plan`.
    fn goes_on(&self, plan: FaultPlan) {
        self.disk.set_plan(plan);
        self.disk.release();
    }

    /// As [`Self::goes_on`], until the block waits to be written once more.
    fn waits_again(&self, plan: FaultPlan) {
        self.goes_on(plan.with(Trigger::Touches(Write, block(self.high)), FileFault::Hang));
        let start = Instant::now();
        while !touched(self.disk, Write, self.high) {
            assert!(start.elapsed() < LONGEST, "the block was not written again");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn ended(self) -> Said {
        let ran = wait_for(self.child);
        let printed: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        Said { result: printed["result"].clone(), ran }
    }
}

impl Said {
    /// The disk was refused; whether what was there before is said to be there again.
    #[track_caller]
    fn refused(&self, low: u64, is_restored: bool) {
        let capacity = &self.result["capacity"];
        assert_eq!(self.ran.code, Some(0), "{:?}", self.ran);
        assert_eq!(self.result["verdict"]["answer"], "no", "{capacity}");
        assert_eq!(capacity["outcome"], "refused", "{capacity}");
        let damaged = capacity["damaged_place"].as_u64().unwrap();
        assert_eq!(damaged % REAL, low, "{capacity}");
        assert_eq!(capacity["is_restored"], is_restored, "{capacity}");
    }
}

/// Whether such a request for the block at `place` came since the plan was set.
fn touched(disk: &FaultyDisk, kind: RequestKind, place: u64) -> bool {
    let block = block(place);
    disk.requests().iter().any(|request| {
        let end = request.offset + request.len;
        request.kind == kind && request.offset < block.end && end > block.start
    })
}

/// Whether the photo is there that was, as the disk gives it, past all caches.
fn is_whole(disk: &FaultyDisk, place: u64) -> bool {
    disk.set_plan(wraps());
    let place = format!("skip={}", place / BLOCK);
    let mut dd = Command::new("dd");
    dd.args(["bs=4096", "count=1", "iflag=direct", "status=none", &place]);
    let read = dd.arg(format!("if={}", disk.device().display())).output().unwrap();
    assert!(read.status.success(), "{read:?}");
    let number = place["skip=".len()..].parse().unwrap();
    read.stdout == photo(number)
}

fn put_back(disk: &FaultyDisk, place: u64) {
    let device = File::options().write(true).open(disk.device()).unwrap();
    device.write_all_at(&photo(place / BLOCK), place).unwrap();
    device.sync_all().unwrap();
}

fn left_nothing(path: &Path) {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lost+found", "reserved"]);
}

/// The other place follows, whatever fails on the way to know it.
#[test]
fn a_fake_is_refused_and_its_photo_put_back_though_a_request_fails() {
    let Some(disk) = disk() else { return };
    let mount = filled(&disk);
    let start = || Running::start(&disk, mount.path());

    // The second write fails: the other place holds the first one.
    let running = start();
    let low = running.low();
    running.goes_on(wraps().bad_range(Write, block(running.high)));
    let said = running.ended();
    said.refused(low, true);
    assert_eq!(said.result["written_bytes"], BLOCK, "{}", said.result);
    assert!(is_whole(&disk, low));

    // The other place cannot be read after the second write, but then it can.
    let running = start();
    let low = running.low();
    running.waits_again(wraps());
    running.goes_on(wraps().failing(Read, 0));
    let said = running.ended();
    said.refused(low, true);
    assert_eq!(said.result["written_bytes"], 2 * BLOCK, "{}", said.result);
    assert!(is_whole(&disk, low));
    left_nothing(mount.path());
}

/// What cannot be put back is not said to be there.
#[test]
fn a_photo_that_cannot_be_put_back_is_said_to_be_lost() {
    let Some(disk) = disk() else { return };
    let mount = filled(&disk);
    let start = || Running::start(&disk, mount.path());

    // The other place takes no write.
    let running = start();
    let low = running.low();
    running.goes_on(wraps_and_fails(Write, running.high));
    running.ended().refused(low, false);
    assert!(!is_whole(&disk, low));
    put_back(&disk, low);

    // After the second write the other place cannot be read.
    let running = start();
    let low = running.low();
    running.waits_again(wraps());
    running.goes_on(wraps_and_fails(Read, running.high));
    running.ended().refused(low, false);
    assert!(!is_whole(&disk, low));
    put_back(&disk, low);
    left_nothing(mount.path());
}

/// A file system may have made a second copy once: only a place that follows is a fake's.
#[test]
fn a_place_that_held_the_block_once_and_does_not_follow_is_left_alone() {
    let Some(disk) = disk() else { return };
    let mount = filled(&disk);
    let running = Running::start(&disk, mount.path());
    let high = running.high;
    running.waits_again(wraps());
    // From here on the disk has all that it claims.
    running.goes_on(FaultPlan::new());
    let said = running.ended();
    assert_eq!(said.ran.code, Some(0), "{:?}", said.ran);
    let capacity = &said.result["capacity"];
    assert_eq!(capacity["outcome"], "proved", "{capacity}");
    let unseen = capacity["aliases_unseen"].as_str().unwrap();
    assert!(unseen.contains("held this block once and did not follow it"), "{unseen}");
    assert_eq!(capacity["damaged_place"], Value::Null, "{capacity}");
    assert!(others(high).any(|place| touched(&disk, Read, place)));
    assert!(!others(high).any(|place| touched(&disk, Write, place)));
    left_nothing(mount.path());
}

#[test]
fn a_block_that_is_not_there_afterwards_or_is_not_known_ends_the_run() {
    let Some(disk) = disk() else { return };
    let mount = filled(&disk);

    // It is dropped.
    let running = Running::start(&disk, mount.path());
    let low = running.low();
    running.goes_on(FaultPlan::new().true_size(REAL, Beyond::Dropped));
    let said = running.ended();
    assert_eq!(said.ran.code, Some(0), "{:?}", said.ran);
    let capacity = &said.result["capacity"];
    assert_eq!(capacity["outcome"], "refused", "{capacity}");
    let reason = capacity["reason"].as_str().unwrap();
    assert!(reason.contains("the first block that was written is not there"), "{capacity}");
    assert_eq!(capacity["damaged_place"], Value::Null, "{capacity}");
    assert!(is_whole(&disk, low));

    // It cannot be read back.
    let running = Running::start(&disk, mount.path());
    running.goes_on(FaultPlan::new().bad_range(Read, block(running.high)));
    let high = running.high;
    let said = running.ended();
    ended_early(&said, "error");
    assert!(touched(&disk, Read, high));

    // Another place was read before it was written and cannot be read after it.
    let running = Running::start(&disk, mount.path());
    let low = running.low();
    let high = running.high;
    running.goes_on(wraps_and_fails(Read, high));
    ended_early(&running.ended(), "cannot be read after it");
    let is_written = others(high).any(|place| touched(&disk, Write, place));
    assert!(!is_written, "what may have changed was written to");
    put_back(&disk, low);

    // It cannot be written.
    disk.set_plan(wraps().bad_range(Write, REAL..CLAIMED));
    let ran = run(qualify(mount.path()));
    ran.refused(1, "write");
    assert!(is_whole(&disk, low));
    left_nothing(mount.path());
}

/// What was known until then is printed, with one line of complaint.
#[track_caller]
fn ended_early(said: &Said, words: &str) {
    assert_eq!(said.ran.code, Some(1), "{:?}", said.ran);
    assert_eq!(said.ran.err.lines().count(), 1, "{:?}", said.ran);
    assert!(said.ran.err.contains(words), "{:?}", said.ran);
    assert_eq!(said.result["verdict"]["answer"], "unproven", "{}", said.result);
    assert_eq!(said.result["capacity"]["outcome"], "not_tried", "{}", said.result);
    assert_eq!(said.result["written_bytes"], BLOCK, "{}", said.result);
}
