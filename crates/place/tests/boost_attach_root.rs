//! The parts of a flash cache on real devices: what is refused, with what words, and that what is
//! not the cache's is left as it is. Needs root and loop devices.

#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::Root;
use model::device::BlockDevice;
use model::engine::ChangeProof;
use model::frame::FileHeader;
use place::boost::host::HostPart;
use place::boost::medium::{MediumPlace, MediumState, OwnMedium};
use place::boost::plan::{self, AttachPlan, ExportMethod};
use place::boost::volume::Volume;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{LoopDevice, Mounted, TempDir};

const MIB: u64 = 1 << 20;
const MEDIUM_BYTES: u64 = 32 * MIB;
const JOURNAL_BYTES: u64 = 2 * MIB;

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let ended = Command::new(program).args(arguments).output();
    let output = ended.map_err(|error| format!("the program {program} ({error})"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or(format!("`{program}` to work: {}", words.trim()))
}

fn host_part(state: &Path, name: &str) -> place::Result<HostPart> {
    HostPart::directory(state, name).and_then(HostPart::open)
}

/// A block device of a test's own.
struct Disk {
    device: LoopDevice,
    directory: TempDir,
}

impl Disk {
    fn of(bytes: u64) -> Result<Self, String> {
        let directory = TempDir::new();
        let image = directory.join("image");
        File::create(&image).unwrap().set_len(bytes).unwrap();
        Ok(Self { device: LoopDevice::over(&image)?, directory })
    }

    fn path(&self) -> &Path {
        self.device.path()
    }
}

/// Runs a command when it is dropped.
struct Undo(&'static str, Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        let arguments: Vec<&str> = self.1.iter().map(String::as_str).collect();
        let _ = run(self.0, &arguments);
    }
}

fn claim(path: &Path) -> Result<Volume, String> {
    Volume::claim(path, &Root::system()).map_err(|error| model::error_chain(&error))
}

fn refusal(path: &Path) -> String {
    claim(path).map(|volume| volume.name).unwrap_err()
}

#[test]
fn a_volume_is_claimed_by_one_and_cannot_be_mounted_meanwhile() {
    let disk = match Disk::of(64 * MIB) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let path = disk.path().to_string_lossy().into_owned();
    run("mkfs.ext4", &["-q", "-F", &path]).unwrap();
    let volume = claim(disk.path()).unwrap();
    assert_eq!((volume.bytes, volume.content.proof), (64 * MIB, ChangeProof::Always));
    assert_eq!(volume.disks, std::slice::from_ref(&volume.name));
    let id = volume.id;
    assert!(refusal(disk.path()).contains("something else uses it"));
    let point = disk.directory.join("point");
    fs::create_dir(&point).unwrap();
    let mounted = run("mount", &[&path, &point.to_string_lossy()]);
    assert!(mounted.is_err(), "it is claimed");
    drop(volume);
    assert_eq!(claim(disk.path()).unwrap().id, id);
    assert!(refusal(&point).contains("not a block device"));
}

#[test]
fn what_is_in_use_is_refused_by_the_name_of_its_use() {
    let mounted = match Mounted::ext4(32 * MIB) {
        Ok(mounted) => mounted,
        Err(need) => return testkit::skip(need),
    };
    let words = refusal(&Path::new("/dev").join(mounted.device_name()));
    assert!(words.contains("is mounted at"), "{words}");
    let disk = Disk::of(64 * MIB).unwrap();
    let path = disk.path().to_string_lossy().into_owned();
    if run("mkswap", &[&path]).and_then(|()| run("swapon", &[&path])).is_ok() {
        let _undo = Undo("swapoff", vec![path.clone()]);
        let words = refusal(disk.path());
        assert!(words.contains("is swap"), "{words}");
    }
    let table = "0 65536 linear ";
    let name = format!("terrace-test-{}", std::process::id());
    let line = format!("{table}{path} 0");
    if run("dmsetup", &["create", &name, "--table", &line]).is_ok() {
        let _undo = Undo("dmsetup", vec!["remove".to_owned(), name]);
        let words = refusal(disk.path());
        assert!(words.contains("is a part of dm-"), "{words}");
    }
}

/// A disk with two partitions of 40 MiB; their nodes go with it.
fn partitioned() -> Result<(Disk, [PathBuf; 2], Undo), String> {
    let disk = Disk::of(100 * MIB)?;
    let path = disk.path().to_string_lossy().into_owned();
    let script = "start=1MiB, size=40MiB\\nstart=41MiB, size=40MiB\\n";
    run("sh", &["-c", &format!("printf 'label: gpt\\n{script}' | sfdisk -q {path}")])?;
    run("partx", &["--add", &path])?;
    let undo = Undo("partx", vec!["--delete".to_owned(), path.clone()]);
    let parts = [1, 2].map(|number| PathBuf::from(format!("{path}p{number}")));
    Ok((disk, parts, undo))
}

#[test]
fn a_disk_is_refused_for_its_partition_and_a_cache_beside_its_volume() {
    let (disk, [first, second], _undo) = match partitioned() {
        Ok(made) => made,
        Err(need) => return testkit::skip(need),
    };
    run("mkfs.ext4", &["-q", "-F", &second.to_string_lossy()]).unwrap();
    let point = disk.directory.join("point");
    fs::create_dir(&point).unwrap();
    run("mount", &[&second.to_string_lossy(), &point.to_string_lossy()]).unwrap();
    let _unmount = Undo("umount", vec![point.to_string_lossy().into_owned()]);
    let words = refusal(disk.path());
    assert!(words.contains("is mounted at"), "{words}");
    let volume = claim(&first).unwrap();
    let root = Root::system();
    let medium = MediumPlace::find(&point.join("cache"), &root).unwrap();
    assert_eq!(medium.disks, volume.disks);
    let state = TempDir::new();
    let host = host_part(state.path(), "photos").unwrap();
    let error = plan::check_disks(&root, &volume, &medium, &host).unwrap_err();
    assert!(model::error_chain(&error).contains("as the volume is"), "{error}");
    let export = ExportMethod::Nbd { resend_after_s: 90 };
    let plan = AttachPlan::of(&volume, &medium, MEDIUM_BYTES, Some("the cache is new"), export);
    let lines = plan.lines.join("\n");
    for words in ["cold: the cache is new", "a kill", "NBD", "a pull", "a cut"] {
        assert!(lines.contains(words), "{words}: {lines}");
    }
}

#[test]
fn a_link_that_another_user_planted_is_not_followed() {
    let disk = match Disk::of(8 * MIB) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let link = disk.directory.join("link");
    std::os::unix::fs::symlink(disk.path(), &link).unwrap();
    assert!(claim(&link).is_ok(), "a link of this user");
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    assert!(claim(&link).is_err());
    assert!(MediumPlace::find(&link, &Root::system()).is_err());
}

#[test]
fn a_journal_has_all_of_its_blocks_and_none_of_its_bytes_changes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let state = TempDir::new();
    let path = host_part(state.path(), "photos").unwrap().path().join("journal");
    // As an older version left it: with a hole.
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(JOURNAL_BYTES / 2).unwrap();
    file.write_all_at(b"a record", 8192).unwrap();
    let sparse = fs::read(&path).unwrap();
    let host = host_part(state.path(), "photos").unwrap();
    host.prepare_journal(JOURNAL_BYTES).unwrap();
    let about = fs::metadata(&path).unwrap();
    assert_eq!(about.len(), JOURNAL_BYTES);
    assert!(about.blocks() * 512 >= JOURNAL_BYTES, "{}", about.blocks());
    let is_direct = sys::file::is_direct(host.journal()).unwrap();
    // A file system that has none, as an older tmpfs, goes without.
    let can_be = sys::file::open_read(&path, true).is_ok();
    assert_eq!(is_direct, can_be);
    let now = fs::read(&path).unwrap();
    assert!(now[..sparse.len()] == sparse[..] && now[sparse.len()..].iter().all(|it| *it == 0));
}

#[test]
fn key_and_journal_are_this_users_alone_and_used_by_one() {
    let state = TempDir::new();
    let host = host_part(state.path(), "photos").unwrap();
    let (key, path) = (host.key(), host.path());
    assert!(host.is_key_new && host.read_journal(JOURNAL_BYTES, newer_version).unwrap().is_empty());
    host.prepare_journal(JOURNAL_BYTES).unwrap();
    assert_eq!(fs::metadata(path.join("journal")).unwrap().len(), JOURNAL_BYTES);
    let second = host_part(state.path(), "photos").unwrap_err();
    assert!(model::error_chain(&second).contains("another process"), "{second}");
    drop(host);
    let again = host_part(state.path(), "photos").unwrap();
    assert!(!again.is_key_new && again.key() == key);
    drop(again);
    for name in ["key", "journal"] {
        let mode = fs::metadata(path.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let file = path.join("key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(host_part(state.path(), "photos").is_err(), "others can read it");
    fs::remove_file(&file).unwrap();
    let host = host_part(state.path(), "photos").unwrap();
    assert!(host.is_key_new && host.key() != key, "it was lost");
    let newer = FileHeader { magic: *b"TERCJRNL", major: 9, minor: 0 }.to_bytes();
    fs::write(path.join("journal"), newer).unwrap();
    let error = host.read_journal(JOURNAL_BYTES, newer_version).unwrap_err();
    assert!(model::error_chain(&error).contains("version 9"), "{error}");
    assert_eq!(fs::read(path.join("journal")).unwrap(), newer);
    host.revoke().unwrap();
    assert!(!path.join("journal").exists());
    for name in ["", "..", "a/b", ".hidden", &"x".repeat(65)] {
        assert!(host_part(state.path(), name).is_err(), "{name:?}");
    }
}

/// The first block of a medium of the cache with this number.
fn header(cache: u8) -> Vec<u8> {
    let mut block = FileHeader { magic: *b"TERCACHE", major: 1, minor: 0 }.to_bytes().to_vec();
    block.resize(4096, cache);
    block
}

/// What the engine says, for headers of [`header`].
fn newer_version(bytes: &[u8]) -> Option<u16> {
    let is_one = bytes
        .get(..8)
        .is_some_and(|magic| [*b"TERCACHE", *b"TERCJRNL"].contains(&magic.try_into().unwrap()));
    (is_one && bytes.len() >= 16 && bytes[8] > 1).then(|| u16::from(bytes[8]))
}

fn own(bytes: u64) -> OwnMedium<'static> {
    fn is_own(block: &[u8]) -> Option<bool> {
        let is_one = block.len() == 4096 && block[..16] == header(1)[..16];
        is_one.then(|| block == header(1))
    }
    OwnMedium { header: header(1), bytes, is_own: &is_own, newer: newer_version }
}

#[test]
fn a_file_on_a_stick_is_made_with_its_header_and_grows() {
    let stick = match Mounted::made("vfat", &["-F32"], 64 * MIB) {
        Ok(stick) => stick,
        Err(need) => return testkit::skip(need),
    };
    let (root, path) = (Root::system(), stick.path().join("cache"));
    let own = self::own(MEDIUM_BYTES);
    let find = || MediumPlace::find(&path, &root).unwrap();
    assert_eq!((find().file_system.as_str(), find().disks.len()), ("vfat", 1));
    assert_eq!(find().state(&own).unwrap(), MediumState::Absent);
    let medium = find().open(&own, false).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 4096, "its header alone");
    assert_eq!(medium.size_bytes().unwrap(), MEDIUM_BYTES);
    let mut block = sys::memory::AlignedBuffer::new(4096).unwrap();
    block.fill(9);
    assert_eq!(medium.read_at(&mut block, 20 * MIB).unwrap(), 4096);
    assert_eq!(*block, [0; 4096], "never written");
    block.fill(7);
    medium.write_at(&block, 2 * MIB).unwrap();
    medium.flush().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 2 * MIB + 4096);
    assert_eq!(find().state(&own).unwrap(), MediumState::Own);
    let error = find().open(&own, true).unwrap_err();
    assert!(model::error_chain(&error).contains("another process has it"), "{error}");
    drop(medium);
    find().open(&own, false).unwrap();
}

#[test]
fn what_is_not_this_caches_is_refused_and_left_as_it_is() {
    let stick = match Mounted::made("vfat", &["-F32"], 64 * MIB) {
        Ok(stick) => stick,
        Err(need) => return testkit::skip(need),
    };
    let root = Root::system();
    let own = self::own(MEDIUM_BYTES);
    let newer = FileHeader { magic: *b"TERCACHE", major: 3, minor: 0 }.to_bytes();
    for (name, content, expected) in [
        ("photo", b"not a cache".to_vec(), MediumState::Foreign),
        ("zeros", vec![0; 8192], MediumState::Foreign),
        ("cut", header(1)[..40].to_vec(), MediumState::Foreign),
        ("other", header(2), MediumState::OfAnother),
        ("newer", newer.to_vec(), MediumState::Newer(3)),
    ] {
        let path = stick.path().join(name);
        fs::write(&path, &content).unwrap();
        let find = || MediumPlace::find(&path, &root).unwrap();
        assert_eq!(find().state(&own).unwrap(), expected, "{name}");
        let error = find().open(&own, false).unwrap_err();
        assert!(model::error_chain(&error).contains("left as it is"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content, "{name}");
        find().open(&own, true).unwrap();
        assert_eq!(find().state(&own).unwrap(), MediumState::Own, "a person said so");
        fs::remove_file(&path).unwrap();
    }
    let large = self::own(640 * MIB);
    let path = stick.path().join("large");
    let error = MediumPlace::find(&path, &root).unwrap().open(&large, false).unwrap_err();
    assert!(model::error_chain(&error).contains("can be had there"), "{error}");
    assert!(!path.exists());
}

#[test]
fn memory_is_no_medium() {
    let shared = Path::new("/dev/shm");
    if !shared.exists() {
        return testkit::skip("/dev/shm");
    }
    let directory = TempDir::in_dir(shared);
    assert!(MediumPlace::find(&directory.join("cache"), &Root::system()).is_err());
}
