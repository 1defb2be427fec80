//! The kernel's own description of its tracepoints: their numbers and their fields.
//!
//! The idea: tracefs need not be mounted. A mount of it that is attached nowhere is made for this
//! process and goes away with its descriptor, so nothing is left behind and no other process sees
//! it. Files are only read; no tracepoint is switched on here ([`crate::perf`] does that).

use crate::error::{Error, Result, failed};
use crate::shared_memory::mount_detached;
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

/// Where tracefs is mounted, if it is.
const MOUNT_POINT: &str = "/sys/kernel/tracing";
/// No description is longer: the largest seen has 12 KiB.
const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// tracefs, open.
#[derive(Debug)]
pub struct Tracefs {
    directory: OwnedFd,
}

/// What the kernel says of one tracepoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its number, for [`crate::perf`].
    pub id: u64,
    /// Its fields, in the order of the kernel.
    pub fields: Vec<Field>,
}

/// The position of one field of a tracepoint in its raw data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name without array bounds: `prev_comm`.
    pub name: String,
    /// Its first byte.
    pub offset: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

impl Tracefs {
    /// Opens tracefs where it is mounted, else mounts it for this value alone.
    ///
    /// # Errors
    /// `Denied` for those who may not mount; `Unsupported` or `NotFound` where the kernel has
    /// no tracefs, or is older than 5.2 and has not mounted it.
    pub fn open() -> Result<Self> {
        match open_directory(MOUNT_POINT) {
            Ok(directory) if is_tracefs(&directory) => Ok(Self { directory }),
            _ => mount_detached("tracefs", &[])
                .map(|directory| Self { directory })
                .map_err(|errno| failed("mount tracefs")(errno).at("tracefs")),
        }
    }

    /// Describes the tracepoint `name` of `system`: `sched`, `sched_switch`.
    ///
    /// # Errors
    /// `NotFound` if this kernel does not have it.
    pub fn tracepoint(&self, system: &str, name: &str) -> Result<Tracepoint> {
        let path = |file: &str| format!("events/{system}/{name}/{file}");
        let number = self.read(&path("id"))?;
        let id = number.trim().parse().map_err(|_| {
            Error::invalid("read the number of a tracepoint", "not a number").at(path("id"))
        })?;
        let fields = parse_format(&self.read(&path("format"))?);
        Ok(Tracepoint { id, fields })
    }

    fn read(&self, path: &str) -> Result<String> {
        const OPERATION: &str = "read the description of a tracepoint";
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = openat(&self.directory, path, flags, Mode::empty())
            .map_err(|errno| failed(OPERATION)(errno).at(path))?;
        let mut text = String::new();
        File::from(opened)
            .take(DESCRIPTION_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|source| Error::new(OPERATION, source).at(path))?;
        Ok(text)
    }
}

impl Tracepoint {
    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// The field as a number of at most 64 bits; `None` where `raw` is too short.
    #[must_use]
    pub fn number(&self, raw: &[u8]) -> Option<u64> {
        let bytes = self.data(raw)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_ne_bytes(word))
    }

    /// The bytes of the field; `None` where `raw` is too short.
    #[must_use]
    pub fn data<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        raw.get(self.offset..self.offset.checked_add(self.bytes)?)
    }
}

/// Reads the lines `field:int pid;  offset:24;  size:4;  signed:1;`.
fn parse_format(text: &str) -> Vec<Field> {
    text.lines().filter_map(parse_field).collect()
}

fn parse_field(line: &str) -> Option<Field> {
    let mut field = Field::default();
    for part in line.trim().split(';') {
        let (key, value) = part.trim().split_once(':').unwrap_or_default();
        match key {
            "field" => {
                let name = value.split('[').next()?.split_whitespace().last()?;
                name.trim_start_matches('*').clone_into(&mut field.name);
            }
            "offset" => field.offset = value.parse().ok()?,
            "size" => field.bytes = value.parse().ok()?,
            _ => {}
        }
    }
    (!field.name.is_empty()).then_some(field)
}

fn open_directory(path: &str) -> Result<OwnedFd> {
    let file = File::open(path)
        .map_err(|source| Error::new("open the directory of tracepoints", source).at(path))?;
    Ok(file.into())
}

/// Whether something is mounted there: an unmounted mount point has no events.
fn is_tracefs(directory: &OwnedFd) -> bool {
    accessat(directory, "events", Access::READ_OK, AtFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn fields_are_read_from_a_format() {
        let text = "name: x\nID: 7\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"a: %s; b\", REC->prev_comm\n";
        let fields = parse_format(text);
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names[..3], ["common_type", "prev_comm", "prev_pid"]);
        let pid = &fields[2];
        assert_eq!((pid.offset, pid.bytes), (24, 4));
        let mut raw = [0u8; 28];
        raw[24..].copy_from_slice(&(-5i32).to_ne_bytes());
        assert_eq!(pid.number(&raw), Some(u64::from((-5i32).cast_unsigned())));
        assert_eq!(pid.number(&raw[..27]), None, "cut data is no number");
    }

    #[test]
    fn the_switch_tracepoint_is_described_without_a_visible_mount() {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(error) => return testkit::skip(format!("tracefs: {error}")),
        };
        let switch = tracefs.tracepoint("sched", "sched_switch").unwrap();
        assert!(switch.id > 0);
        assert_eq!(switch.field("prev_pid").map(|field| field.bytes), Some(4));
        assert_eq!(tracefs.tracepoint("sched", "no_such").unwrap_err().kind, ErrorKind::NotFound);
        let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
        let count = |text: &str| text.matches(" tracefs ").count();
        // Others may mount it at the same moment: once in a hundred must be undisturbed.
        let unseen = (0..100).any(|_| {
            let before = count(&mounts());
            let another = mount_detached("tracefs", &[]);
            another.is_ok() && count(&mounts()) == before
        });
        assert!(unseen, "the mount is visible");
    }
}
