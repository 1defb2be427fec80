//! The machine that a record was made on, as far as its figures depend on it.
//!
//! Read from the files of the kernel below a given root, so that tests feed a fake tree; what is
//! absent is `None`. The host's name is left out on purpose: records are public.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What is recorded about a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The processor's own name, from `/proc/cpuinfo`.
    pub cpu_model: Option<String>,
    /// Logical processors online, from `/proc/cpuinfo`.
    pub cpus: Option<usize>,
    /// `MemTotal` of `/proc/meminfo`, in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release, as `uname -r`.
    pub kernel: Option<String>,
    /// `guest` with the product's name if known, or `none seen`.
    pub virtualization: Option<String>,
    /// The load averages over 1, 5 and 15 minutes when this was read.
    pub load_average: Option<[f64; 3]>,
}

impl Facts {
    /// Reads the facts below `root` (`/` on a real machine).
    pub fn read(root: &Path) -> Self {
        let cpuinfo = text(root, "proc/cpuinfo");
        let meminfo = text(root, "proc/meminfo");
        Self {
            cpu_model: cpuinfo.as_deref().and_then(|text| field(text, "model name")),
            cpus: cpuinfo.as_deref().map(processors).filter(|count| *count > 0),
            memory_bytes: meminfo.as_deref().and_then(|text| kibibytes(text, "MemTotal")),
            kernel: text(root, "proc/sys/kernel/osrelease"),
            virtualization: virtualization(root, cpuinfo.as_deref()),
            load_average: load_average(root),
        }
    }

    /// A short name for machines like this one, for file names: processor and kernel, never the
    /// host.
    pub fn slug(&self) -> String {
        let model = self.cpu_model.as_deref().unwrap_or("unknown cpu");
        // A release ends in whatever its builder chose, which may be a name; the numbers are
        // enough.
        let release = self.kernel.as_deref().unwrap_or_default();
        let digits = release.split(|c: char| !(c.is_ascii_digit() || c == '.')).next();
        slug(&format!("{model} linux {}", digits.unwrap_or_default()))
    }

    /// As JSON; what is absent is `null`.
    pub fn json(&self) -> Value {
        json!({
            "cpu_model": self.cpu_model,
            "cpus": self.cpus,
            "memory_bytes": self.memory_bytes,
            "kernel": self.kernel,
            "virtualization": self.virtualization,
            "load_average": self.load_average,
        })
    }
}

/// The load averages below `root` over 1, 5 and 15 minutes.
pub fn load_average(root: &Path) -> Option<[f64; 3]> {
    let text = text(root, "proc/loadavg")?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// `MemAvailable` below `root`, in bytes: what programs can have without swapping.
pub fn available_bytes(root: &Path) -> Option<u64> {
    kibibytes(&text(root, "proc/meminfo")?, "MemAvailable")
}

/// The file system that holds `path`, by the mounts below `root`: `ext4 on vda`, without its
/// directory.
pub fn file_system(root: &Path, path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let table = text(root, "proc/self/mounts")?;
    let mounts = table.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, Path::new(words.next()?), words.next()?))
    });
    // Of equally long ones the last was mounted over the others.
    let (source, _, kind) = mounts
        .filter(|(_, directory, _)| path.starts_with(directory))
        .max_by_key(|(_, directory, _)| directory.as_os_str().len())?;
    match source.strip_prefix("/dev/") {
        Some(device) => Some(format!("{kind} on {device}")),
        None => Some(kind.to_owned()),
    }
}

/// The day of `time` in UTC, as `2001-07-15`.
///
/// A time before 1970 gives the first day of 1970: no clock of a machine that runs this is that
/// wrong.
pub fn date(time: SystemTime) -> String {
    const DAY_S: u64 = 86_400;
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Years that begin in March put the leap day last, so month lengths follow one formula
    // (Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days).
    let days = seconds / DAY_S + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// `text` in lower case with one `-` for each run of other characters than letters, digits and
/// dots.
pub fn slug(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words = lower.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn text(root: &Path, path: &str) -> Option<String> {
    let content = fs::read_to_string(root.join(path)).ok()?;
    let text = content.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn processors(cpuinfo: &str) -> usize {
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count()
}

/// The value of `name` in the text of meminfo, in bytes.
fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let value = field(meminfo, name)?;
    let kibibytes: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The processor marks a guest by the `hypervisor` flag (x86); firmware may name the product.
fn virtualization(root: &Path, cpuinfo: Option<&str>) -> Option<String> {
    let flags = field(cpuinfo?, "flags")?;
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return Some("none seen".to_owned());
    }
    Some(match text(root, "sys/class/dmi/id/product_name") {
        Some(product) => format!("guest ({product})"),
        None => "guest".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use testkit::FakeRoot;

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 86_399));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(11_017), "2000-03-01");
        assert_eq!(day(11_518), "2001-07-15");
        assert_eq!(day(20_818), "2026-12-31");
    }

    #[test]
    fn a_fake_tree_is_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC (TM) 9\nflags\t: fpu hypervisor\n\n\
                       processor\t: 1\n";
        let root = FakeRoot::new()
            .file("/proc/cpuinfo", cpuinfo)
            .file("/proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n")
            .file("/proc/sys/kernel/osrelease", "6.18.4-jane-laptop\n")
            .file("/proc/loadavg", "0.50 1.25 2.00 1/80 900\n");
        let facts = Facts::read(root.path());
        assert_eq!(facts.cpu_model.as_deref(), Some("AMD EPYC (TM) 9"));
        assert_eq!((facts.cpus, facts.memory_bytes), (Some(2), Some(1 << 20)));
        assert_eq!(facts.virtualization.as_deref(), Some("guest"));
        assert_eq!(facts.load_average, Some([0.5, 1.25, 2.0]));
        assert_eq!(available_bytes(root.path()), None);
        assert_eq!(facts.slug(), "amd-epyc-tm-9-linux-6.18.4");
    }

    #[test]
    fn the_file_system_of_a_path_is_the_innermost_mount() {
        let empty = FakeRoot::new();
        let here = fs::canonicalize(empty.path()).unwrap();
        let inner = format!("tmpfs {} tmpfs rw 0 0", here.display());
        let root = empty.file("/proc/self/mounts", format!("/dev/vda / ext4 rw 0 0\n{inner}\n"));
        let of = |path: &Path| file_system(root.path(), path);
        assert_eq!(of(root.path()).as_deref(), Some("tmpfs"));
        assert_eq!(of(Path::new("/")).as_deref(), Some("ext4 on vda"));
        assert_eq!(of(&root.path().join("nowhere")), None);
    }

    #[test]
    fn what_is_absent_is_none() {
        let root = FakeRoot::new();
        let facts = Facts::read(root.path());
        assert_eq!((&facts.cpu_model, facts.cpus, facts.load_average), (&None, None, None));
        assert!(facts.json()["memory_bytes"].is_null());
        assert_eq!(facts.slug(), "unknown-cpu-linux");
    }

    #[test]
    fn this_machine_has_facts() {
        let facts = Facts::read(Path::new("/"));
        assert!(facts.memory_bytes.is_some() && facts.kernel.is_some());
        assert!(available_bytes(Path::new("/")) < facts.memory_bytes);
    }
}
