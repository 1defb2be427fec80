//! What `cargo xtask dist` packs, as far as it can be tried without a build: `install.sh` with a
//! small archive of its own, the units of the packages, and those that `ramdisk install` and `boost
//! install` write, as systemd reads them. The rest is `cargo xtask dist --check`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::TempDir;
use xtask::dist::archive::{FileTree, TreeFile, gzip, tar};
use xtask::dist::units;

/// Below the workspace.
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging");

/// An archive for this machine, whose program is a script, with its checksum.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new(version: &str) -> Self {
        let scene = Self { folder: TempDir::new() };
        fs::create_dir(scene.folder.join("out")).unwrap();
        fs::create_dir_all(scene.prefix().join("bin")).unwrap();
        fs::write(scene.prefix().join("bin/other"), "of another program").unwrap();
        scene.put(version);
        scene
    }

    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    fn archive(&self) -> PathBuf {
        let name = format!("terrace-0.1.0-{}-unknown-linux-gnu.tar.gz", std::env::consts::ARCH);
        self.folder.join("out").join(name)
    }

    /// The archive of a version.
    fn put(&self, version: &str) {
        let program = format!("#!/bin/sh\necho terrace {version}\n");
        let file = |is_program, text: &str| TreeFile { is_program, bytes: text.into() };
        let unit = fs::read_to_string(format!("{PACKAGING}/terrace-recorder.service")).unwrap();
        let tree = FileTree::from([
            ("bin/terrace".to_owned(), file(true, &program)),
            ("share/man/man1/terrace.1".to_owned(), file(false, "a page")),
            (format!("share/doc/terrace/{version}"), file(false, "of this version alone")),
            ("lib/systemd/system/terrace-recorder.service".to_owned(), file(false, &unit)),
        ]);
        let archive = self.archive();
        let name = archive.file_name().unwrap().to_str().unwrap();
        let top = name.strip_suffix(".tar.gz").unwrap();
        fs::write(&archive, gzip(&tar(top, &tree, 1_700_000_000).unwrap()).unwrap()).unwrap();
        let mut sum = Command::new("sh");
        sum.current_dir(self.folder.join("out")).args(["-c", "sha256sum *.gz >SHA256SUMS"]);
        assert!(sum.status().unwrap().success());
    }

    /// The status of `install.sh` and all that it says.
    fn install(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new("sh");
        command.arg(format!("{PACKAGING}/install.sh")).args(words);
        command.arg("--prefix").arg(self.prefix());
        let ended = command.output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        (ended.status.code(), String::from_utf8(said).unwrap())
    }

    fn install_out(&self) -> (Option<i32>, String) {
        self.install(&[self.folder.join("out").to_str().unwrap()])
    }

    /// What the installed program says.
    fn version(&self) -> String {
        let said = Command::new(self.prefix().join("bin/terrace")).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    /// All files and directories of the prefix.
    fn entries(&self) -> Vec<String> {
        let mut find = Command::new("find");
        let found = find.current_dir(self.prefix()).output().unwrap();
        let text = String::from_utf8(found.stdout).unwrap();
        let mut entries: Vec<String> = text.lines().map(str::to_owned).collect();
        entries.sort();
        entries
    }
}

#[test]
fn the_installer_is_short_enough_to_be_read() {
    let text = fs::read_to_string(format!("{PACKAGING}/install.sh")).unwrap();
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn what_is_installed_is_updated_and_removed_and_nothing_else_is() {
    let scene = Scene::new("1");
    let before = scene.entries();
    let (status, said) = scene.install_out();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(scene.version(), "terrace 1\n");
    scene.put("2");
    let (status, said) = scene.install_out();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(scene.version(), "terrace 2\n");
    let documents = scene.prefix().join("share/doc/terrace");
    assert!(!documents.join("1").exists() && documents.join("2").exists());
    let (status, said) = scene.install(&["--uninstall"]);
    assert_eq!((status, scene.entries()), (Some(0), before), "{said}");
    let (status, said) = scene.install(&["--uninstall"]);
    assert!(status == Some(1) && said.contains("nothing is installed"), "{said}");
}

#[test]
fn a_damaged_archive_is_refused_by_its_checksum() {
    let scene = Scene::new("1");
    let before = scene.entries();
    let mut bytes = fs::read(scene.archive()).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(scene.archive(), bytes).unwrap();
    let (status, said) = scene.install_out();
    assert!(status == Some(1) && said.contains("is damaged"), "{said}");
    assert_eq!(scene.entries(), before);
}

#[test]
fn a_program_that_does_not_run_here_is_not_installed() {
    let scene = Scene::new("1; exit 1");
    let before = scene.entries();
    let (status, said) = scene.install_out();
    assert!(status == Some(1) && said.contains("does not run here"), "{said}");
    assert_eq!(scene.entries(), before);
}

#[test]
fn files_of_others_and_changed_ones_stay() {
    let scene = Scene::new("1");
    let program = scene.prefix().join("bin/terrace");
    fs::write(&program, "built by cargo install").unwrap();
    let (status, said) = scene.install_out();
    assert!(status == Some(1) && said.contains("is not from here"), "{said}");
    assert_eq!(fs::read_to_string(&program).unwrap(), "built by cargo install");
    fs::remove_file(&program).unwrap();
    assert_eq!(scene.install_out().0, Some(0));
    let page = scene.prefix().join("share/man/man1/terrace.1");
    fs::write(&page, "a page with notes").unwrap();
    let (status, said) = scene.install_out();
    assert!(status == Some(1) && said.contains("changed since it was installed"), "{said}");
    let (status, said) = scene.install(&["--uninstall"]);
    assert!(status == Some(0) && said.contains("kept, as changed"), "{said}");
    assert!(page.exists() && !program.exists() && scene.prefix().join("bin/other").exists());
}

#[test]
fn nothing_to_install_from_is_said() {
    let scene = Scene::new("1");
    for (words, what) in [
        (&[][..], "say from where"),
        (&["/nonexistent"], "cannot get /nonexistent/SHA256SUMS"),
        (&["--frobnicate"], "unknown option"),
    ] {
        let (status, said) = scene.install(words);
        assert!(status == Some(1) && said.contains(what), "{said}");
    }
}

/// A file with this mode, as `systemd-analyze verify` looks for what a unit starts.
fn program_at(path: &Path) {
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn has_systemd_analyze() -> bool {
    Command::new("systemd-analyze").arg("--version").output().is_ok()
}

#[test]
fn systemd_reads_the_units_of_the_packages_and_finds_little_exposed() {
    if !has_systemd_analyze() {
        return testkit::skip("systemd-analyze (systemd)");
    }
    let folder = TempDir::new();
    let program = folder.join("terrace");
    program_at(&program);
    let examined = units::examine(Path::new(PACKAGING), &program).unwrap();
    assert_eq!(examined.len(), 3, "{examined:?}");
    // A word that systemd does not know is a complaint.
    let unit = "terrace-recorder.service";
    let packed = fs::read_to_string(Path::new(PACKAGING).join(unit)).unwrap();
    let text = packed.replace("/usr/bin/terrace", program.to_str().unwrap());
    let path = folder.join(unit);
    fs::write(&path, text.replace("WatchdogSec", "WatchdogTime")).unwrap();
    assert!(units::verify(unit, &path).is_err());
    // Without its fences it is exposed.
    let is_fence =
        |line: &&str| ["Capability", "Protect", "Restrict"].iter().any(|it| line.starts_with(it));
    let open: Vec<&str> = text.lines().filter(|line| !is_fence(line)).collect();
    fs::write(&path, open.join("\n")).unwrap();
    assert!(units::exposure(&path).unwrap() > 4.0);
}

#[test]
fn systemd_reads_the_units_of_a_ram_disk() {
    if !has_systemd_analyze() {
        return testkit::skip("systemd-analyze (systemd)");
    }
    let folder = TempDir::new();
    let Ok(mount) = testkit::Tmpfs::mount(8 << 20) else {
        return testkit::skip("root that may mount");
    };
    let mut install = Command::new(support::program());
    install.args(["ramdisk", "install"]).arg(mount.path());
    install.arg("--persist").arg(folder.join("store")).arg("--to").arg(folder.join("units"));
    let installed = install.output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let mut verified = 0;
    for entry in fs::read_dir(folder.join("units")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".service") || name.ends_with(".mount") {
            units::verify(&name, &entry.path()).unwrap();
            verified += 1;
        }
    }
    assert_eq!(verified, 3);
}
