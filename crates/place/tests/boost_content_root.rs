//! What shows that a volume was written elsewhere, on real file systems: mounted and written there,
//! mounted alone, cut in the middle, its log replayed. Needs root and loop devices.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::engine::ChangeProof;
use place::boost::content::{self, Content};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::device::FileDevice;
use testkit::{LoopDevice, Random, TempDir};

const MIB: u64 = 1 << 20;

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let ended = Command::new(program).args(arguments).output();
    let output = ended.map_err(|error| format!("the program {program} ({error})"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or(format!("`{program}` to work: {}", words.trim()))
}

/// A file system in a file.
struct Image {
    directory: TempDir,
    path: PathBuf,
}

impl Image {
    fn empty(bytes: u64) -> Self {
        let directory = TempDir::new();
        let path = directory.join("image");
        File::create(&path).unwrap().set_len(bytes).unwrap();
        Self { directory, path }
    }

    /// One that was mounted before, as a volume that is in use.
    fn made(make: &[&str]) -> Result<Self, String> {
        if !testkit::is_root() {
            return Err("root".to_owned());
        }
        let image = Self::empty(320 * MIB);
        let path = image.path.to_string_lossy();
        run(make[0], &[&make[1..], [&*path].as_slice()].concat())?;
        image.mounted("rw", |point| fs::write(point.join("old"), b"old").unwrap())?;
        Ok(image)
    }

    /// Does something while it is mounted.
    fn mounted(&self, options: &str, act: impl FnOnce(&Path)) -> Result<(), String> {
        struct Unmount(PathBuf);
        impl Drop for Unmount {
            fn drop(&mut self) {
                let _ = run("umount", &[&self.0.to_string_lossy()]);
            }
        }
        let point = self.directory.join("point");
        fs::create_dir_all(&point).unwrap();
        // Mounted for reading, a loop device of `mount` itself could not be written either.
        let own = if options.contains("loop") { None } else { Some(LoopDevice::over(&self.path)?) };
        let source = own.as_ref().map_or(&*self.path, LoopDevice::path).to_string_lossy();
        run("mount", &["-o", options, &source, &point.to_string_lossy()])?;
        let _unmount = Unmount(point.clone());
        act(&point);
        Ok(())
    }

    /// What it holds at this moment, as after a cut.
    fn cut(&self) -> Self {
        let directory = TempDir::new();
        let path = directory.join("image");
        run("cp", &["--sparse=always", &self.path.to_string_lossy(), &path.to_string_lossy()])
            .unwrap();
        Self { directory, path }
    }

    fn patch(&self, offset: u64, bytes: &[u8]) {
        File::options().write(true).open(&self.path).unwrap().write_all_at(bytes, offset).unwrap();
    }

    fn content(&self) -> Content {
        content::read(&FileDevice::new(File::open(&self.path).unwrap()).unwrap()).unwrap()
    }
}

const EXT4: &[&str] = &["mkfs.ext4", "-q", "-F"];
const EXT2: &[&str] = &["mkfs.ext4", "-q", "-F", "-O", "^has_journal"];
const EXT2_OLD: &[&str] = &["mkfs.ext2", "-q", "-F", "-O", "^metadata_csum"];
const EXT3: &[&str] = &["mkfs.ext3", "-q", "-F"];
const XFS: &[&str] = &["mkfs.xfs", "-q", "-f"];
const BTRFS: &[&str] = &["mkfs.btrfs", "-q", "-f"];

fn write_durably(point: &Path) {
    fs::write(point.join("new"), vec![7; 5000]).unwrap();
    File::open(point.join("new")).unwrap().sync_all().unwrap();
}

#[test]
fn what_was_mounted_and_written_elsewhere_differs() {
    for (make, kind, proof) in [
        (EXT4, "ext4", ChangeProof::Always),
        (EXT3, "ext4", ChangeProof::Always),
        (EXT2, "ext2", ChangeProof::Always),
        (BTRFS, "btrfs", ChangeProof::Always),
        (XFS, "XFS", ChangeProof::AfterDetach),
    ] {
        let image = match Image::made(make) {
            Ok(image) => image,
            Err(need) => return testkit::skip(need),
        };
        let before = image.content();
        assert_eq!((before.kinds.as_slice(), before.proof), ([kind].as_slice(), proof));
        assert_eq!(image.content(), before, "{kind}: nothing was written");
        let mut cut = None;
        image
            .mounted("rw", |point| {
                write_durably(point);
                cut = Some(image.cut());
            })
            .unwrap();
        assert_ne!(image.content(), before, "{kind}: written and unmounted");
        assert_ne!(cut.unwrap().content(), before, "{kind}: written, then cut");
    }
}

#[test]
fn a_mount_of_ext4_differs_before_anything_is_written() {
    let image = match Image::made(EXT4) {
        Ok(image) => image,
        Err(need) => return testkit::skip(need),
    };
    let before = image.content();
    let mut cut = None;
    image.mounted("rw", |_| cut = Some(image.cut())).unwrap();
    assert_ne!(cut.unwrap().content(), before);
}

#[test]
fn a_log_that_is_replayed_elsewhere_differs() {
    for make in [EXT4, BTRFS, XFS] {
        let image = match Image::made(make) {
            Ok(image) => image,
            Err(need) => return testkit::skip(need),
        };
        let mut cut = None;
        image
            .mounted("rw", |point| {
                write_durably(point);
                cut = Some(image.cut());
            })
            .unwrap();
        let cut = cut.unwrap();
        let before = cut.content();
        cut.mounted("ro", |_| {}).unwrap();
        assert_ne!(cut.content(), before, "{make:?}");
    }
}

#[test]
fn what_is_not_known_proves_nothing() {
    let mut random = vec![0; 8 << 20];
    Random(4).fill(&mut random);
    let image = Image::empty(64 * MIB);
    let is_unknown = |image: &Image| image.content().proof == ChangeProof::Never;
    assert!(is_unknown(&image), "zeros");
    for make in [
        ["mkfs.vfat", "-F32"].as_slice(),
        &["mkswap"],
        &["mkfs.ext4", "-q", "-F", "-O", "journal_dev"],
    ] {
        let image = Image::empty(64 * MIB);
        match run(make[0], &[&make[1..], [&*image.path.to_string_lossy()].as_slice()].concat()) {
            Ok(()) => assert!(is_unknown(&image), "{make:?}"),
            Err(need) => testkit::skip(need),
        }
    }
    fs::write(&image.path, &random).unwrap();
    assert!(is_unknown(&image), "random");
    let Ok(two) = Image::made(EXT4) else { return };
    two.patch((64 << 10) + 64, b"_BHRfS_M");
    assert!(is_unknown(&two), "the remains of another one");
}

/// By the bytes alone by which each is known: the programs that make them need not be there.
#[test]
fn members_of_other_devices_are_known_by_name_and_prove_nothing() {
    let image = Image::empty(64 * MIB);
    let end = 64 * MIB;
    let words = |words: &[u32]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let zfs = 0x00ba_b10c_u64;
    for (kind, offset, bytes) in [
        ("LUKS", 0, b"LUKS\xba\xbe\0\x02".to_vec()),
        ("LVM", 512, b"LABELONE".to_vec()),
        ("md", 0, words(&[0xa92b_4efc, 1])),
        ("md", 4096, words(&[0xa92b_4efc, 1])),
        ("md", end - 8192, words(&[0xa92b_4efc, 1])),
        ("md", end - (64 << 10), words(&[0xa92b_4efc, 0, 90])),
        ("ZFS", 128 << 10, zfs.to_le_bytes().to_vec()),
        ("ZFS", (384 << 10) + 5 * 1024, zfs.to_be_bytes().to_vec()),
        ("ZFS", end - (128 << 10), zfs.to_le_bytes().to_vec()),
        (
            "bcachefs",
            4120,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef".to_vec(),
        ),
        (
            "bcache",
            4120,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81".to_vec(),
        ),
    ] {
        image.patch(offset, &bytes);
        let content = image.content();
        assert_eq!(
            (content.kinds.as_slice(), content.proof),
            ([kind].as_slice(), ChangeProof::Never)
        );
        image.patch(offset, &vec![0; bytes.len()]);
    }
    assert_eq!(image.content().kinds, ["unknown"]);
    // A mirror with its metadata at the end looks like the file system that it holds.
    let Ok(ext4) = Image::made(EXT4) else { return testkit::skip("root") };
    ext4.patch(320 * MIB - 8192, &words(&[0xa92b_4efc, 1]));
    let content = ext4.content();
    assert_eq!(content.kinds, ["ext4", "md"]);
    assert_eq!((content.proof, content.witnesses.len()), (ChangeProof::Never, 0));
}

#[test]
fn two_bytes_alone_are_no_ext4() {
    let image = Image::empty(64 * MIB);
    image.patch(1024 + 56, &[0x53, 0xef]);
    assert_eq!(image.content().kinds, ["unknown"]);
    let Ok(image) = Image::made(EXT4) else { return testkit::skip("root") };
    // A label that the checksum does not know.
    image.patch(1024 + 120, b"changed");
    assert_eq!(image.content().kinds, ["unknown"]);
    // Without a checksum by its sizes: one that ends behind the volume is none.
    let Ok(image) = Image::made(EXT2_OLD) else { return testkit::skip("root") };
    assert_eq!(image.content().kinds, ["ext2"]);
    image.patch(1024 + 120, b"changed");
    assert_eq!(image.content().kinds, ["ext2"]);
    image.patch(1024 + 4, &[0xff; 4]);
    assert_eq!(image.content().kinds, ["unknown"]);
}

#[test]
fn a_log_on_another_device_proves_nothing() {
    let Ok(image) = Image::made(EXT4) else { return testkit::skip("root") };
    // The number of the log's inode.
    image.patch(1024 + 0xe0, &[0; 4]);
    assert_eq!(image.content().proof, ChangeProof::Never);
}

/// A volume with these file systems in partitions.
fn partitioned(label: &str, parts: &[&Image]) -> Result<Image, String> {
    let whole = Image::empty((parts.len() as u64 * 320 + 8) * MIB);
    let lines: Vec<String> = (0..parts.len())
        .map(|at| format!("start={}MiB, size=320MiB, type=L", 1 + at as u64 * 320))
        .collect();
    let script = whole.directory.join("script");
    fs::write(&script, format!("label: {label}\n{}\n", lines.join("\n"))).unwrap();
    let command = format!("sfdisk -q {} < {}", whole.path.display(), script.display());
    run("sh", &["-c", &command])?;
    for (at, part) in parts.iter().enumerate() {
        let arguments = [
            format!("if={}", part.path.display()),
            format!("of={}", whole.path.display()),
            "bs=1M".to_owned(),
            format!("seek={}", 1 + at as u64 * 320),
            "conv=notrunc,sparse".to_owned(),
        ];
        run("dd", &arguments.each_ref().map(String::as_str))?;
    }
    Ok(whole)
}

#[test]
fn partitions_prove_as_much_as_the_weakest_of_them() {
    let made = [EXT4, XFS, BTRFS].map(Image::made);
    let [Ok(ext4), Ok(xfs), Ok(btrfs)] = made else { return testkit::skip("root and mkfs") };
    let raw = Image::empty(320 * MIB);
    for (label, parts, proof) in [
        ("gpt", vec![&ext4, &btrfs], ChangeProof::Always),
        ("dos", vec![&ext4, &btrfs], ChangeProof::Always),
        ("gpt", vec![&ext4, &xfs], ChangeProof::AfterDetach),
        ("gpt", vec![&ext4, &raw], ChangeProof::Never),
        ("dos", vec![&raw, &ext4], ChangeProof::Never),
    ] {
        let whole = match partitioned(label, &parts) {
            Ok(whole) => whole,
            Err(need) => return testkit::skip(need),
        };
        let before = whole.content();
        assert_eq!(before.proof, proof, "{label}: {before:?}");
        if proof == ChangeProof::Never {
            continue;
        }
        let offset = format!("loop,offset={},sizelimit={}", 321 * MIB, 320 * MIB);
        whole.mounted(&offset, write_durably).unwrap();
        assert_ne!(whole.content(), before, "{label}: the second partition was written");
    }
}
