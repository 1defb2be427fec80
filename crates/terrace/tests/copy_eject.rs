//! `terrace copy --eject` on loop devices: unmounted when the copy is durable; what holds it is
//! named and the copy is there; refused where it makes no sense; a kill leaves it mounted.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use support::{Ran, Started, command, has_program, terrace};
use testkit::{Mounted, TempDir};

const MIB: usize = 1 << 20;
/// Held alone by the test that makes another mount namespace: that has the disks of all others too,
/// so none of them would be safe to unplug meanwhile.
static NAMESPACES: RwLock<()> = RwLock::new(());

/// No other mount namespace is made while it is held.
fn only_namespace() -> RwLockReadGuard<'static, ()> {
    NAMESPACES.read().unwrap_or_else(PoisonError::into_inner)
}

fn ext4() -> Option<Mounted> {
    Mounted::ext4(64 << 20).map_err(testkit::skip).ok()
}

fn vfat() -> Option<Mounted> {
    Mounted::made("vfat", &[], 64 << 20).map_err(testkit::skip).ok()
}

fn make_tree(top: &Path) {
    fs::create_dir_all(top.join("tree/below")).unwrap();
    fs::write(top.join("tree/large"), vec![3; 3 * MIB + 5]).unwrap();
    fs::write(top.join("tree/below/small"), "small").unwrap();
}

fn copy(source: &Path, target: &Path, options: &str) -> Ran {
    terrace(&format!("copy {}/tree {} {options}", source.display(), target.display()))
}

/// A page without its line ends.
fn one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether anything is mounted at this path.
fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().any(|line| line.split(' ').nth(4) == Some(path.to_str().unwrap()))
}

/// What the disk holds after it was mounted again.
fn assert_holds_tree(disk: &Mounted) {
    assert!(!is_mounted(disk.path()));
    let device = format!("/dev/{}", disk.device_name());
    let mounted = Command::new("mount").arg(&device).arg(disk.path()).status().unwrap();
    assert!(mounted.success());
    assert_eq!(fs::read(disk.path().join("tree/large")).unwrap(), vec![3; 3 * MIB + 5]);
    assert_eq!(fs::read_to_string(disk.path().join("tree/below/small")).unwrap(), "small");
    assert_eq!(fs::read_dir(disk.path()).unwrap().filter(is_hidden).count(), 0);
}

fn is_hidden(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().unwrap().file_name().as_encoded_bytes().starts_with(b".terrace")
}

#[test]
fn the_target_is_unmounted_when_the_copy_is_durable() {
    let _namespace = only_namespace();
    let source = TempDir::new();
    make_tree(source.path());
    for disk in [ext4(), vfat()].into_iter().flatten() {
        let ran = copy(source.path(), disk.path(), "--eject");
        assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
        let words = format!("/dev/{} is safe to unplug", disk.device_name());
        assert!(one_line(&ran.out).contains(&words), "{}", ran.out);
        assert_holds_tree(&disk);
    }
}

/// Read back by a mount of its own after that, with the names that the file system had.
#[test]
fn with_verify_it_is_read_back_by_a_new_mount_and_unmounted_for_good() {
    let _namespace = only_namespace();
    let source = TempDir::new();
    make_tree(source.path());
    fs::write(source.join("tree/below/\u{e4}\u{4e2d}"), vec![7; 70_001]).unwrap();
    fs::hard_link(source.join("tree/large"), source.join("tree/second")).unwrap();
    for disk in [ext4(), vfat()].into_iter().flatten() {
        let into = disk.path().join("sub");
        fs::create_dir(&into).unwrap();
        let ran = copy(source.path(), &into, "--verify --eject");
        let page = one_line(&ran.out);
        assert_eq!(ran.code, Some(0), "{page} {}", ran.err);
        assert!(page.contains("read back by a new mount and equal: "), "{page}");
        assert!(page.contains(&format!("/dev/{} is safe to unplug", disk.device_name())), "{page}");
        assert!(!is_mounted(disk.path()));
        // Into what exists.
        let device = format!("/dev/{}", disk.device_name());
        assert!(Command::new("mount").arg(&device).arg(disk.path()).status().unwrap().success());
        let ran = copy(source.path(), &into, "--verify --eject --json");
        assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let check = &json["result"]["eject"]["verified"];
        // On FAT both names are files.
        let files = check["verified_files"].as_u64().unwrap();
        assert!(check["is_after_mount"] == true && (3..=4).contains(&files), "{json}");
        assert!(check["reason"].is_null() && check["differing_count"] == 0, "{json}");
        assert_eq!(json["result"]["done"]["verified_files"], 0, "{json}");
    }
}

/// Gives the file system of a directory a key, and encrypts the directory with it.
const ENCRYPT: &str = r#"
    my ($top, $directory) = @ARGV;
    opendir my $mount, $top or die;
    # struct fscrypt_add_key_arg: by identifier, which the kernel fills in; 64 bytes.
    my $key = pack "L L x32 L L x32 a64", 2, 0, 64, 0, "k" x 64;
    ioctl $mount, 0xc0506617, $key or die "no key: $!";
    # struct fscrypt_policy_v2: AES-256-XTS, AES-256-CTS, names padded to 32.
    my $policy = pack "C4 x4 a16", 2, 1, 4, 3, substr $key, 8, 16;
    opendir my $empty, $directory or die;
    ioctl $empty, 0x800c6613, $policy or die "no policy: $!";
"#;

/// After a new mount its names and data are ciphers: that is no difference, and nothing is said.
#[test]
fn what_a_new_mount_could_not_decrypt_is_refused_before_anything_is_copied() {
    let _namespace = only_namespace();
    let disk = match Mounted::made("ext4", &["-q", "-F", "-O", "encrypt"], 64 << 20) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let source = TempDir::new();
    make_tree(source.path());
    let into = disk.path().join("secret");
    fs::create_dir(&into).unwrap();
    let encrypted = Command::new("perl").args(["-e", ENCRYPT]).arg(disk.path()).arg(&into).output();
    if !encrypted.as_ref().is_ok_and(|ended| ended.status.success()) {
        return testkit::skip(format!("perl, and a kernel that encrypts files: {encrypted:?}"));
    }
    let ran = copy(source.path(), &into, "--verify --eject");
    assert_eq!(ran.code, Some(3), "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("a new mount has no key"), "{}", ran.err);
    assert!(is_mounted(disk.path()) && fs::read_dir(&into).unwrap().next().is_none());
    // Each alone does it.
    let ran = copy(source.path(), &into, "--verify");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    let ran = copy(source.path(), &into.join("tree"), "--eject");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert!(!is_mounted(disk.path()));
}

/// The working directory of the command itself is not in the way.
#[test]
fn a_target_below_the_working_directory_is_unmounted() {
    let _namespace = only_namespace();
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = ext4() else { return };
    let mut line = command(&format!("copy {}/tree . --eject", source.path().display()));
    let ran = support::run({
        line.current_dir(disk.path());
        line
    });
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_holds_tree(&disk);
}

#[test]
fn a_holder_is_named_and_the_copy_is_there() {
    let _namespace = only_namespace();
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = ext4() else { return };
    let held = disk.path().join("held");
    fs::write(&held, "x").unwrap();
    let by_file = {
        // The command itself must not go on holding the file.
        let mut sleeping = Command::new("sleep");
        sleeping.stdin(File::open(&held).unwrap()).arg("1000");
        Started(sleeping.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut elsewhere = Command::new("sleep");
    elsewhere.current_dir(disk.path());
    let by_directory = Started::sleeping(elsewhere);
    let ran = copy(source.path(), disk.path(), "--eject --json");
    assert_eq!(ran.code, Some(1), "{} {}", ran.out, ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains("the copy is durable") && ran.err.contains("(sleep)"), "{}", ran.err);
    assert!(is_mounted(disk.path()));
    assert_eq!(fs::read(disk.path().join("tree/large")).unwrap(), vec![3; 3 * MIB + 5]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let holders = json["result"]["eject"]["holders"].as_array().unwrap();
    let uses = |pid: u32| {
        let holder = holders.iter().find(|holder| holder["pid"] == pid).unwrap();
        (holder["uses"].as_str().unwrap(), Path::new(holder["path"].as_str().unwrap()))
    };
    assert_eq!(uses(by_file.pid()), ("open_file", held.as_path()));
    assert_eq!(uses(by_directory.pid()), ("working_directory", disk.path()));
    assert_eq!(holders.len(), 2, "{json}");
    drop((by_file, by_directory));
    // The same command again: it is copied anew, and unmounted.
    let ran = copy(source.path(), disk.path(), "--eject");
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_holds_tree(&disk);
}

/// Another mount namespace keeps it: unmounted here, and not safe to unplug.
#[test]
fn what_another_mount_namespace_has_is_not_safe_to_unplug() {
    let _alone = NAMESPACES.write().unwrap_or_else(PoisonError::into_inner);
    let source = TempDir::new();
    make_tree(source.path());
    let Some(disk) = ext4() else { return };
    if !has_program("unshare") {
        return testkit::skip("unshare");
    }
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--propagation", "private", "sleep"]);
    let inside = Started::sleeping(inside);
    std::thread::sleep(Duration::from_millis(300));
    let ran = copy(source.path(), disk.path(), "--eject");
    let page = one_line(&ran.out);
    assert!(page.contains("do not unplug") && page.contains("outside of this mount"), "{page}");
    drop(inside);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_copied() {
    let _namespace = only_namespace();
    let Some(disk) = ext4() else { return };
    let source = TempDir::new();
    make_tree(source.path());
    make_tree(disk.path());
    let to = disk.path().display();
    fs::create_dir(disk.path().join("sub")).unwrap();
    let other = TempDir::new();
    let cases = [
        (format!("{} {}", source.join("tree").display(), other.join("new").display()), ""),
        (format!("{to}/tree {to}/new"), "is on it"),
        (
            format!("{}/tree {to}/new --log {to}/log.trec", source.path().display()),
            "to be written there",
        ),
    ];
    for (words, why) in cases {
        let ran = terrace(&format!("copy {words} --eject"));
        assert_eq!(ran.code, Some(2), "{words}: {} {}", ran.out, ran.err);
        assert!(
            ran.err.starts_with("terrace: copy: cannot eject ") && ran.err.contains(why),
            "{}",
            ran.err
        );
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    let mut bind = Command::new("mount");
    bind.arg("--bind").arg(disk.path().join("sub")).arg(other.path());
    assert!(bind.status().unwrap().success());
    let ran = copy(source.path(), &disk.path().join("new"), "--eject");
    assert!(Command::new("umount").arg(other.path()).status().unwrap().success());
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("also mounted at"), "{}", ran.err);
    assert!(is_mounted(disk.path()) && !disk.path().join("new").exists());
}

/// Killed or interrupted at any moment: mounted as it was, or unmounted; whole or absent.
#[test]
fn after_a_kill_it_is_mounted_as_before_or_unmounted_and_the_copy_whole_or_absent() {
    let _namespace = only_namespace();
    let Some(disk) = ext4() else { return };
    let source = TempDir::new();
    make_tree(source.path());
    let device = format!("/dev/{}", disk.device_name());
    // Other tests mount theirs meanwhile.
    let mounts = || {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.lines().filter(|line| line.contains(&format!(" {device} "))).count()
    };
    assert_eq!(mounts(), 1);
    for round in 0..24u64 {
        let verify = if round % 3 == 0 { "--verify" } else { "" };
        let (from, to) = (source.path().display(), disk.path().display());
        let mut line = command(&format!("copy {from}/tree {to} --eject {verify}"));
        let mut child = line.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 5));
        if round % 2 == 0 {
            child.kill().unwrap();
        } else {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        let ended = child.wait().unwrap();
        if !is_mounted(disk.path()) {
            assert_eq!(mounts(), 0);
            assert!(
                Command::new("mount").arg(&device).arg(disk.path()).status().unwrap().success()
            );
        } else {
            assert!(!ended.success(), "done, and still mounted");
        }
        assert_eq!(mounts(), 1);
        let copied = disk.path().join("tree");
        if copied.exists() {
            assert_eq!(fs::read(copied.join("large")).unwrap(), vec![3; 3 * MIB + 5]);
            fs::remove_dir_all(copied).unwrap();
        }
    }
    assert_eq!(copy(source.path(), disk.path(), "--eject").code, Some(0));
    assert_holds_tree(&disk);
}
