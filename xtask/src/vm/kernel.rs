//! From Debian's kernel package to what QEMU starts: the kernel unpacked, and a first file system
//! for it.
//!
//! An unpacked kernel starts two seconds sooner under emulation; that of arm64 is not packed. The
//! first file system (initramfs) holds busybox, one script, and the modules without which no disk
//! is seen.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use super::arch::Arch;
use crate::error::Error;

/// The script that the kernel starts.
pub(super) const INITRAMFS: &str = include_str!("guest/initramfs.sh");

/// What the script needs to find its disks, and the system its ports: each with all that it needs
/// itself.
const MODULES: &[&str] =
    &["virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "overlay"];

const FOLDERS: &[&str] = &["bin", "dev", "modules", "new", "proc", "root", "scratch", "sys"];

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// Unpacks the kernel within a bzImage (boot protocol 2.08, `Documentation/arch/x86/boot.rst`);
/// that of arm64 is copied, as QEMU unpacks what may be packed.
///
/// # Errors
/// When it is no bzImage, or not packed with zstd.
pub(super) fn unpack(arch: Arch, compressed: &Path, target: &Path) -> Result<(), Error> {
    if arch != Arch::X86 {
        return fs::copy(compressed, target).map(drop).map_err(Error::io("copy", compressed));
    }
    let bytes = fs::read(compressed).map_err(Error::io("read", compressed))?;
    let payload = payload(&bytes)
        .ok_or_else(|| Error::Malformed { what: "kernel", why: "not a bzImage".to_owned() })?;
    let output = File::create(target).map_err(Error::io("make", target))?;
    zstd::stream::copy_decode(payload, output).map_err(Error::io("unpack", compressed))
}

/// The compressed kernel within a bzImage, without the size that follows it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let setup_sectors = usize::from(*image.get(0x1f1)?);
    let start = (setup_sectors + 1) * 512 + number(0x248)?;
    let len = number(0x24c)?.checked_sub(4)?;
    image.get(start..start.checked_add(len)?)
}

/// The first file system: a cpio archive in the `newc` format.
///
/// # Errors
/// When a module or busybox is not in the packages.
pub(super) fn initramfs(root: &Path, modules: &Path) -> Result<Vec<u8>, Error> {
    let list = modules.join("modules.dep");
    let text = fs::read_to_string(&list).map_err(Error::io("read", &list))?;
    let order = load_order(&text, MODULES)?;
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.add(folder, FOLDER, &[]);
    }
    let program = root.join("usr/bin/busybox");
    let busybox = fs::read(&program).map_err(Error::io("read", &program))?;
    archive.add("bin/busybox", PROGRAM, &busybox);
    archive.add("init", PROGRAM, INITRAMFS.as_bytes());
    let mut names = String::new();
    for path in order {
        let name = module_name(path);
        archive.add(&format!("modules/{name}"), PROGRAM, &without_xz(&modules.join(path))?);
        names = format!("{names}{name}\n");
    }
    archive.add("modules/order", PROGRAM, names.as_bytes());
    Ok(archive.end())
}

/// The files of `modules.dep` to load for `wanted`, each after those that it needs.
fn load_order<'a>(dependencies: &'a str, wanted: &[&str]) -> Result<Vec<&'a str>, Error> {
    let needed: BTreeMap<&str, (&str, &str)> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needed)| (module_name(path), (path, needed)))
        .collect();
    let mut order: Vec<&str> = Vec::new();
    for &module in wanted {
        // Compiled in, in another kernel: the guest says so if not.
        let Some((path, before)) = needed.get(module.replace('-', "_").as_str()) else {
            continue;
        };
        // depmod lists what is needed with the most basic last.
        for path in before.split_whitespace().rev().chain([*path]) {
            if !order.contains(&path) {
                order.push(path);
            }
        }
    }
    if order.is_empty() {
        return Err(Error::Malformed {
            what: "modules.dep",
            why: format!("none of {}", wanted.join(", ")),
        });
    }
    Ok(order)
}

/// `ext4` of `kernel/fs/ext4/ext4.ko.xz`.
fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}

/// What a file packed by `xz` holds.
fn without_xz(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |what: String| Error::Program {
        program: "xz".to_owned(),
        what: format!("{}: {what}", path.display()),
    };
    let mut command = Command::new("xz");
    command.args(["-d", "-c", "-q"]).arg(path).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(output.status.to_string())) }
}

/// A cpio archive in the `newc` format
/// (`Documentation/driver-api/early-userspace/buffer-format.rst`).
#[derive(Debug, Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entries += 1;
        let len = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let fields =
            [self.entries, mode, 0, 0, 1, 0, len(data.len()), 0, 0, 0, 0, len(name.len() + 1), 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
    }

    fn end(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_loaded_after_what_it_needs_and_once() {
        let list = "fs/ext4.ko.xz: fs/jbd2.ko.xz lib/crc16.ko.xz\nfs/jbd2.ko.xz:\n\
                    lib/crc16.ko.xz:\nfs/overlay.ko.xz: lib/crc16.ko.xz\n";
        let order = load_order(list, &["ext4", "built_in", "overlay"]).unwrap();
        let expected = ["lib/crc16.ko.xz", "fs/jbd2.ko.xz", "fs/ext4.ko.xz", "fs/overlay.ko.xz"];
        assert_eq!(order, expected);
        assert!(load_order("", MODULES).is_err());
    }

    #[test]
    fn the_payload_lies_where_the_header_says() {
        let mut image = vec![0; 4096];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x1f1] = 3;
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&9u32.to_le_bytes());
        image[2064..2069].copy_from_slice(b"hello");
        assert_eq!(payload(&image), Some(&b"hello"[..]));
        for end in [0x10, 0x204, 0x24d, 2066] {
            assert_eq!(payload(&image[..end]), None, "{end}");
        }
        image[0x202] = b'X';
        assert_eq!(payload(&image), None);
    }

    #[test]
    fn an_archive_is_one_that_the_kernel_reads() {
        let mut archive = Archive::default();
        archive.add("ab", PROGRAM, b"xyz");
        let bytes = archive.end();
        let head = b"070701000000010000\
            81ED000000000000000000000001000000000000000300000000000000000000000000000000000000030000\
            0000ab\0";
        let text = String::from_utf8_lossy(&bytes[..113]);
        assert_eq!(text, String::from_utf8_lossy(head));
        assert_eq!(&bytes[116..120], b"xyz\0");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }
}
