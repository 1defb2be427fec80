//! The guest's system: Debian packages of this machine's own sources, unpacked into a file system
//! image.
//!
//! Made once per processor and list of packages and kept in the cache: built in a folder with
//! another name and renamed when whole, so that two builds at once both end well. Packages are
//! unpacked, not installed: their scripts do not run, and no right is needed but to read the lists.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::arch::Arch;
use super::files::{self, WorkFolder, make_folder, write};
use super::kernel;
use crate::error::Error;
use crate::process;
use crate::test::needs::{self, Need, need};

/// To be raised when an image of before would no longer do.
const FORMAT: u32 = 2;

/// What tests of disks and memory call, and what the guest's own scripts need.
const PACKAGES: &[&str] = &[
    "bash",
    "busybox-static",
    "coreutils",
    "dash",
    "e2fsprogs",
    "findutils",
    "fio",
    "grep",
    "kmod",
    "libc-bin",
    "mawk",
    "mount",
    "nbd-client",
    "procps",
    "sed",
    "sqlite3",
    "tar",
    "util-linux",
];

const NEEDS: &[Need] = &[
    need("apt-get", "apt", "the guest's packages"),
    need("bash", "bash", "the guest's packages"),
    need("depmod", "kmod", "the guest's modules"),
    need("dpkg-deb", "dpkg", "the guest's packages"),
    need("ldconfig", "libc-bin", "the guest's libraries"),
    need("mke2fs", "e2fsprogs", "the guest's file systems"),
    need("setpriv", "util-linux", "an end of QEMU with this program"),
    need("xz", "xz-utils", "the modules that the guest boots with"),
];

const NEEDS_X86: &[Need] = &[need("qemu-system-x86_64", "qemu-system-x86", "the machine itself")];
const NEEDS_AARCH64: &[Need] =
    &[need("qemu-system-aarch64", "qemu-system-arm", "the machine itself")];

pub(super) const INIT: &str = include_str!("guest/init.sh");
const VM_CTL: &str = include_str!("guest/vm-ctl.sh");
const DISKS: &str = include_str!("guest/disks.sh");

/// Documentation, and drivers of what QEMU does not show: half of the image.
const UNUSED: &[&str] = &["usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man"];
const UNUSED_MODULES: &[&str] = &["sound", "drivers/gpu", "drivers/media", "drivers/net"];

/// What the packages' scripts would have written.
const SETTINGS: &[(&str, &str)] = &[
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost terrace-vm\n"),
    ("etc/fstab", ""),
];

/// Folders that the guest mounts something on or works in.
const FOLDERS: &[&str] = &[
    "bench",
    "dev",
    "etc/terrace-vm",
    "mnt",
    "out",
    "proc",
    "root",
    "run",
    "sys",
    "tests",
    "tmp",
    "usr/lib/terrace-vm",
    "usr/local/bin",
    "usr/local/sbin",
    "var/tmp",
];

/// About 150 MB over a slow line.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(900);

/// A step takes some seconds on a machine that is not overloaded.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// A guest image.
#[derive(Debug)]
pub(super) struct Image(PathBuf);

impl Image {
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The unpacked kernel.
    pub(super) fn kernel(&self) -> PathBuf {
        self.0.join("vmlinux")
    }

    /// What the kernel starts first.
    pub(super) fn initramfs(&self) -> PathBuf {
        self.0.join("initramfs")
    }

    /// The file system with the packages, read only.
    pub(super) fn root(&self) -> PathBuf {
        self.0.join("root.img")
    }

    /// The folder that holds all three.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// The image with the usual packages and `more`, made if it is not there.
///
/// # Errors
/// What is missing on this machine, or what failed.
pub(super) fn obtain(arch: Arch, more: &[String]) -> Result<Image, Error> {
    let emulator = match arch {
        Arch::X86 => NEEDS_X86,
        Arch::Aarch64 | Arch::Aarch64Pages16K => NEEDS_AARCH64,
    };
    for needs in [NEEDS, emulator] {
        needs::obtain(needs).map_err(Error::Failed)?;
    }
    let cache = files::cache()?;
    let target = cache.join(name(arch, more));
    if !target.exists() {
        let folder = cache.display();
        eprintln!("xtask: vm: making the guest image, once, in {folder}");
        let work = WorkFolder::new(&cache)?;
        build(work.path(), arch, more)?;
        let made = fs::rename(work.path().join("image"), &target);
        // Another process may have been faster; its image is as good.
        if let Err(error) = made
            && !target.exists()
        {
            return Err(Error::io("make", &target)(error));
        }
    }
    Ok(Image(target))
}

/// Whether the image with the usual packages and `more` is there.
pub(super) fn is_there(arch: Arch, more: &[String]) -> bool {
    files::cache().is_ok_and(|cache| cache.join(name(arch, more)).exists())
}

/// Removes all images.
///
/// # Errors
/// When one cannot be removed.
pub(super) fn clean() -> Result<(), Error> {
    remove(&files::cache()?)
}

/// Makes an ext4 file system that holds a copy of `source`, in `target`; `size` as mke2fs reads it.
///
/// # Errors
/// When mke2fs fails.
pub(super) fn make_file_system(source: &Path, target: &Path, size: &str) -> Result<(), Error> {
    let mut command = system_command("mke2fs");
    // No journal: nothing survives this guest. No checksums: they cost time under emulation.
    command
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0"])
        .args(["-O", "^has_journal,^metadata_csum"])
        .args(["-E", "root_owner=0:0,lazy_itable_init=1,nodiscard", "-d"])
        .args([source, target])
        .arg(size);
    step(command).map(drop)
}

/// Runs `command` for at most [`STEP_LIMIT`]; gives its output.
pub(super) fn step(command: Command) -> Result<String, Error> {
    Ok(process::run(command, STEP_LIMIT)?.success()?.stdout)
}

/// The folder's name: the same for the same packages and scripts.
fn name(arch: Arch, more: &[String]) -> String {
    let mut packages = more.to_vec();
    packages.sort();
    let mut hasher = DefaultHasher::new();
    (FORMAT, arch.kernel_package(), PACKAGES, INIT, VM_CTL, DISKS, kernel::INITRAMFS)
        .hash(&mut hasher);
    (packages, UNUSED, UNUSED_MODULES, SETTINGS, FOLDERS).hash(&mut hasher);
    format!("image-{:016x}", hasher.finish())
}

/// Makes the image in the folder `image` below `work`.
fn build(work: &Path, arch: Arch, more: &[String]) -> Result<(), Error> {
    let (debs, root, image) = (work.join("debs"), work.join("root"), work.join("image"));
    for folder in [&debs.join("partial"), &root, &image] {
        make_folder(folder)?;
    }
    download(work, arch, &debs, more)?;
    unpack(&debs, &root)?;
    for unused in UNUSED {
        remove(&root.join(unused))?;
    }
    let version = kernel_version(&root)?;
    let modules = root.join("usr/lib/modules").join(&version);
    for unused in UNUSED_MODULES {
        remove(&modules.join("kernel").join(unused))?;
    }
    let mut depmod = system_command("depmod");
    depmod.arg("-b").arg(&root).arg(&version);
    step(depmod)?;
    let initramfs = kernel::initramfs(&root, &modules)?;
    write(&image.join("initramfs"), &initramfs)?;
    let compressed = root.join(format!("boot/vmlinuz-{version}"));
    kernel::unpack(arch, &compressed, &image.join("vmlinux"))?;
    remove(&root.join("boot"))?;
    complete(&root)?;
    // Without it each start of a program looks for its libraries in a dozen folders first. It reads
    // libraries of its own processor only.
    if arch == Arch::NATIVE {
        let mut ldconfig = system_command("ldconfig");
        ldconfig.arg("-r").arg(&root);
        step(ldconfig)?;
    }
    let size = format!("{}k", with_room(kib(&root)?));
    make_file_system(&root, &image.join("root.img"), &size)
}

/// Downloads the packages with all that they need, as for an empty machine, and the kernel without.
fn download(work: &Path, arch: Arch, debs: &Path, more: &[String]) -> Result<(), Error> {
    let status = work.join("status");
    write(&status, b"")?;
    let mut settings = vec![
        format!("-oAPT::Architecture={}", arch.debian()),
        format!("-oDir::State::status={}", status.display()),
        format!("-oDir::Cache::archives={}/", debs.display()),
        "-oDebug::NoLocking=1".to_owned(),
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    if arch != Arch::NATIVE {
        // The lists of this machine are of its own processor; neither they nor what apt has made of
        // them is changed.
        make_folder(&work.join("lists/partial"))?;
        let (lists, cache) = (work.join("lists"), work.join("cache"));
        make_folder(&cache)?;
        settings.push(format!("-oDir::State::lists={}", lists.display()));
        settings.push(format!("-oDir::Cache={}", cache.display()));
        settings.push(format!("-oAPT::Architectures={}", arch.debian()));
        let mut update = Command::new("apt-get");
        update.args(["-qq", "update"]).args(&settings);
        process::run(update, DOWNLOAD_LIMIT)?.success()?;
    }
    let apt = || {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-y", "--no-install-recommends"]).args(&settings).current_dir(debs);
        command
    };
    let mut packages = apt();
    packages.args(["--download-only", "install"]);
    packages.args(PACKAGES).args(more);
    process::run(packages, DOWNLOAD_LIMIT)?.success()?;
    let mut kernel = apt();
    kernel.args(["download", &kernel_package(arch, &settings)?]);
    process::run(kernel, DOWNLOAD_LIMIT)?.success()?;
    Ok(())
}

/// The package that holds the kernel, which [`Arch::kernel_package`] only points to.
fn kernel_package(arch: Arch, settings: &[String]) -> Result<String, Error> {
    let named = arch.kernel_package();
    let mut command = Command::new("apt-cache");
    command.args(settings).args(["depends", "--important", named]);
    let known = process::run(command, STEP_LIMIT)?;
    let depends = known.stdout.lines().find_map(|line| {
        let package = line.trim().strip_prefix("Depends: ")?;
        package.starts_with("linux-image-").then(|| package.to_owned())
    });
    depends.ok_or_else(|| {
        let what = format!("no package {named}: Debian 12 has it, after apt-get update");
        Error::Failed(what)
    })
}

/// Unpacks every package in `debs` into `root`, where /bin and the like are links into /usr.
fn unpack(debs: &Path, root: &Path) -> Result<(), Error> {
    for folder in ["bin", "sbin", "lib", "lib64"] {
        make_folder(&root.join("usr").join(folder))?;
        link(&format!("usr/{folder}"), &root.join(folder))?;
    }
    for entry in fs::read_dir(debs).map_err(Error::io("list", debs))? {
        let path = entry.map_err(Error::io("list", debs))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            unpack_one(&path, root)?;
        }
    }
    Ok(())
}

fn unpack_one(package: &Path, root: &Path) -> Result<(), Error> {
    // A package that still ships /bin must not replace the link by a folder.
    let script = "dpkg-deb --fsys-tarfile \"$0\" | tar -x --keep-directory-symlink -C \"$1\"";
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", script]).args([package, root]);
    step(command).map(drop)
}

/// The only folder of modules.
fn kernel_version(root: &Path) -> Result<String, Error> {
    let modules = root.join("usr/lib/modules");
    let mut entries = fs::read_dir(&modules).map_err(Error::io("list", &modules))?;
    let version = entries.next().and_then(Result::ok);
    version
        .and_then(|entry| entry.file_name().into_string().ok())
        .ok_or_else(|| Error::Failed("the kernel's package has no modules".to_owned()))
}

/// Adds what the packages' scripts would have made, and the guest's own programs.
fn complete(root: &Path) -> Result<(), Error> {
    for folder in FOLDERS {
        make_folder(&root.join(folder))?;
    }
    for (path, text) in SETTINGS {
        write(&root.join(path), text.as_bytes())?;
    }
    let own = [
        ("usr/sbin/terrace-init", INIT),
        ("usr/sbin/vm-ctl", VM_CTL),
        ("usr/lib/terrace-vm/disks.sh", DISKS),
    ];
    for (path, text) in own {
        let path = root.join(path);
        write(&path, text.as_bytes())?;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(Error::io("make executable", &path))?;
    }
    for (path, target) in
        [("usr/bin/sh", "dash"), ("usr/bin/awk", "mawk"), ("etc/mtab", "/proc/self/mounts")]
    {
        let path = root.join(path);
        if path.symlink_metadata().is_err() {
            link(target, &path)?;
        }
    }
    Ok(())
}

/// What the files below `folder` hold, in KiB.
fn kib(folder: &Path) -> Result<u64, Error> {
    let mut command = Command::new("du");
    command.args(["-sk", "--apparent-size"]).arg(folder);
    let text = step(command)?;
    let number = text.split_whitespace().next().unwrap_or_default();
    number.parse().map_err(|_| Error::Malformed { what: "du", why: text.clone() })
}

/// KiB of a file system for so many KiB of files: ext4's own tables, and blocks that are not full.
fn with_room(kib: u64) -> u64 {
    kib + kib / 4 + (64 << 10)
}

/// A program in a directory where perhaps only root's `PATH` leads.
fn system_command(program: &str) -> Command {
    Command::new(process::find(program).unwrap_or_else(|| program.into()))
}

fn link(target: &str, path: &Path) -> Result<(), Error> {
    symlink(target, path).map_err(Error::io("link", path))
}

/// Removes a folder that may be absent.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_packages_in_any_order() {
        let named = |packages: &[&str]| {
            let packages: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
            name(Arch::X86, &packages)
        };
        assert_eq!(named(&["a", "b"]), named(&["b", "a"]));
        assert_ne!(named(&["a"]), named(&[]));
        assert_ne!(named(&[]), name(Arch::Aarch64, &[]));
    }

    #[test]
    fn a_folder_that_is_absent_is_removed_already() {
        let folder = testkit::TempDir::new();
        remove(&folder.join("absent")).unwrap();
        write(&folder.join("file"), b"").unwrap();
        assert!(remove(&folder.join("file")).is_err());
    }

    #[test]
    fn a_file_system_is_made_of_a_folder() {
        if process::find("mke2fs").is_none() {
            return testkit::skip("mke2fs");
        }
        let folder = testkit::TempDir::new();
        let image = folder.join("image");
        write(&folder.join("file"), b"x").unwrap();
        make_file_system(Path::new("/proc/self/fdinfo"), &image, "x").unwrap_err();
        make_file_system(folder.path(), &image, "8M").unwrap();
        let bytes = fs::read(&image).unwrap();
        assert_eq!(bytes[0x438..0x43a], [0x53, 0xef], "ext4's magic number");
    }
}
