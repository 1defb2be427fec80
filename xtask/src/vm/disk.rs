//! What one `--disk` asks for, and the options of QEMU for it.
//!
//! `NAME:SIZE[,key=value...]` or `NAME:file=PATH[,key=value...]`. Every disk is served by this
//! process ([`super::server`]); QEMU only attaches it to a bus.

use std::path::PathBuf;

use model::bytes::Bytes;
use serde_json::{Map, Value, json};
use testkit::disk_model::Timing;
use testkit::{Beyond, TrueSize};

/// Serial numbers of virtio disks end after 20 characters; the guest knows a disk by that number.
const NAME_LEN_MAX: usize = 16;

/// Room for a wrong power of two, not for a wrong thought: the disks are sparse files.
const LEN_MAX: u64 = 16 << 40;

/// The unit that disks are made of: a page of the guest.
const BLOCK: u64 = 4096;

/// How a disk is attached to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bus {
    Virtio,
    Usb,
    Scsi,
    Nvme,
}

impl Bus {
    /// What the guest's kernel must load to see disks on this bus.
    pub(super) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Virtio => &[],
            Self::Usb => &["xhci_pci", "usb_storage", "sd_mod"],
            Self::Scsi => &["virtio_scsi", "sd_mod"],
            Self::Nvme => &["nvme"],
        }
    }

    /// The controller that disks on this bus share.
    pub(super) fn controller(self) -> Option<&'static str> {
        match self {
            Self::Virtio | Self::Nvme => None,
            Self::Usb => Some("qemu-xhci,id=usb"),
            Self::Scsi => Some("virtio-scsi-pci,id=scsi"),
        }
    }
}

/// One disk of the guest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DiskSpec {
    /// In the guest `/dev/vm/NAME`.
    pub(super) name: String,
    /// Its size; `None` when that of `file` counts.
    pub(super) len_bytes: Option<u64>,
    /// What it is kept in; without it, in a file without a name that ends with the guest.
    pub(super) file: Option<PathBuf>,
    /// How long it takes; without it, as fast as this machine allows.
    pub(super) timing: Option<Timing>,
    /// What it has, if that is less than it claims.
    pub(super) true_size: Option<TrueSize>,
    pub(super) bus: Bus,
    /// What the guest's kernel believes (`queue/rotational`).
    pub(super) is_rotational: bool,
    /// What was not flushed is in memory, and a power cut loses part of it.
    pub(super) has_write_cache: bool,
}

impl DiskSpec {
    /// What `text` asks for; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("disk {text:?}: {what}");
        let (name, rest) =
            text.split_once(':').ok_or_else(|| wrong("write NAME:SIZE[,key=value...]"))?;
        if !is_name(name) {
            return Err(wrong("a name has 1 to 16 of a-z, 0-9 and _"));
        }
        let mut parts = rest.split(',');
        let place = parts.next().unwrap_or_default();
        let (file, len_bytes) = match place.strip_prefix("file=") {
            Some(path) => (Some(PathBuf::from(path)), None),
            None => (None, Some(len(place).map_err(|what| wrong(&what))?)),
        };
        let (mut bus, mut rotational) = (Bus::Virtio, None);
        let (mut model, mut changes, mut has_write_cache) = (None, String::new(), false);
        let (mut real_bytes, mut beyond) = (None, None);
        for part in parts {
            match part.split_once('=').unwrap_or((part, "")) {
                ("bus", value) => bus = parse_bus(value).map_err(|what| wrong(&what))?,
                ("rot", "0") => rotational = Some(false),
                ("rot", "1") => rotational = Some(true),
                ("model", value) => model = Some(value),
                ("cache", "volatile") => has_write_cache = true,
                ("real_bytes", value) => {
                    real_bytes = Some(len(value).map_err(|what| wrong(&what))?)
                }
                ("beyond", "forgets") => beyond = Some(Beyond::Dropped),
                ("beyond", "wraps") => beyond = Some(Beyond::Wraps),
                ("beyond", _) => return Err(wrong("there are beyond=forgets and beyond=wraps")),
                ("cache", _) => return Err(wrong("there is only cache=volatile")),
                _ => changes = format!("{changes},{part}"),
            }
        }
        let timing = match model {
            Some(model) => Some(format!("{model}{changes}").parse::<Timing>()),
            None if changes.is_empty() => None,
            None => Some(Err(format!("{} needs model=", &changes[1..]))),
        };
        let timing = timing.transpose().map_err(|what| wrong(&what))?;
        if beyond.is_some() && real_bytes.is_none() {
            return Err(wrong("beyond= needs real_bytes="));
        }
        let beyond = beyond.unwrap_or(Beyond::Dropped);
        Ok(Self {
            name: name.to_owned(),
            len_bytes,
            file,
            timing,
            true_size: real_bytes.map(|bytes| TrueSize { bytes, beyond }),
            bus,
            is_rotational: rotational
                .unwrap_or_else(|| timing.is_some_and(|timing| timing.head.is_some())),
            has_write_cache,
        })
    }

    /// QEMU's device, over the block node of the same name, as an option.
    pub(super) fn device(&self) -> String {
        let shown = |value: &Value| match value {
            Value::Bool(true) => "on".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let (driver, properties) = self.properties();
        let parts = properties.iter().map(|(key, value)| format!(",{key}={}", shown(value)));
        [driver.to_owned()].into_iter().chain(parts).collect()
    }

    /// The same as arguments of QEMU's monitor.
    pub(super) fn device_arguments(&self) -> Value {
        let (driver, properties) = self.properties();
        let own = properties.into_iter().map(|(key, value)| (key.to_owned(), value));
        Value::Object(own.chain([("driver".to_owned(), json!(driver))]).collect::<Map<_, _>>())
    }

    fn properties(&self) -> (&'static str, Vec<(&'static str, Value)>) {
        let (driver, mut properties) = match self.bus {
            Bus::Virtio => ("virtio-blk-pci", vec![("num-queues", json!(1))]),
            Bus::Usb => ("usb-storage", vec![("bus", json!("usb.0")), ("removable", json!(true))]),
            Bus::Scsi => ("scsi-hd", vec![("bus", json!("scsi.0"))]),
            Bus::Nvme => ("nvme", Vec::new()),
        };
        let name = &self.name;
        properties.extend([
            ("drive", json!(format!("node-{name}"))),
            ("id", json!(device_id(name))),
            ("serial", json!(name)),
        ]);
        (driver, properties)
    }
}

/// What QEMU calls the device of the disk `name`; its controllers and sockets have names too.
pub(super) fn device_id(name: &str) -> String {
    format!("disk-{name}")
}

/// A number of bytes: `4096`, `512M`, `4G` (powers of 1024).
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let is_usual = text.chars().all(|c| c.is_ascii_digit() || "KMGT".contains(c));
    let number = text.parse::<Bytes>().ok().filter(|_| is_usual);
    number.map(|bytes| bytes.0).ok_or_else(|| format!("bad size {text:?}; write 512M or 4G"))
}

fn len(text: &str) -> Result<u64, String> {
    let len = bytes(text)?.next_multiple_of(BLOCK);
    if (BLOCK..=LEN_MAX).contains(&len) {
        Ok(len)
    } else {
        Err(format!("a disk has 4K to 16T, not {text}"))
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=NAME_LEN_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_allowed)
}

fn parse_bus(text: &str) -> Result<Bus, String> {
    match text {
        "virtio" => Ok(Bus::Virtio),
        "usb" => Ok(Bus::Usb),
        "scsi" => Ok(Bus::Scsi),
        "nvme" => Ok(Bus::Nvme),
        _ => Err(format!("no bus {text:?}; there are virtio, usb, scsi, nvme")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_read_with_all_its_keys() {
        let disk = DiskSpec::parse("hdd:4G,model=hdd,turn_ms=5,bus=usb,rot=0").unwrap();
        assert_eq!(disk.name, "hdd");
        assert_eq!(disk.len_bytes, Some(4 << 30));
        assert_eq!(disk.timing, Some("hdd,turn_ms=5".parse().unwrap()));
        assert_eq!((disk.bus, disk.is_rotational), (Bus::Usb, false));
        let device = "usb-storage,bus=usb.0,removable=on,drive=node-hdd,id=disk-hdd,serial=hdd";
        assert_eq!(disk.device(), device);
    }

    #[test]
    fn a_disk_with_a_head_is_rotational_unless_the_option_says_otherwise() {
        let is_rotational = |text| DiskSpec::parse(text).unwrap().is_rotational;
        assert!(is_rotational("a:1M,model=hdd"));
        assert!(is_rotational("a:1M,rot=1"));
        assert!(!is_rotational("a:1M,model=usb"));
        assert!(!is_rotational("a:1M"));
    }

    #[test]
    fn the_monitor_is_given_the_same_device_as_the_command_line() {
        let disk = DiskSpec::parse("a:1M,bus=usb").unwrap();
        assert_eq!(
            disk.device_arguments(),
            json!({"driver": "usb-storage", "bus": "usb.0", "removable": true,
                "drive": "node-a", "id": "disk-a", "serial": "a"})
        );
    }

    #[test]
    fn a_write_cache_is_asked_for() {
        assert!(DiskSpec::parse("a:1M,model=hdd,cache=volatile").unwrap().has_write_cache);
        assert!(!DiskSpec::parse("a:1M,model=hdd").unwrap().has_write_cache);
    }

    #[test]
    fn a_fake_has_less_than_it_claims() {
        let true_size = |text| DiskSpec::parse(text).unwrap().true_size;
        let dropped = TrueSize { bytes: 4 << 20, beyond: Beyond::Dropped };
        assert_eq!(true_size("a:64M,real_bytes=4M,model=usb"), Some(dropped));
        assert_eq!(true_size("a:64M,real_bytes=4M,beyond=forgets"), Some(dropped));
        let wraps = TrueSize { bytes: 4 << 20, beyond: Beyond::Wraps };
        assert_eq!(true_size("a:64M,beyond=wraps,real_bytes=4M"), Some(wraps));
        assert_eq!(true_size("a:64M"), None);
    }

    #[test]
    fn a_file_gives_its_own_size() {
        let disk = DiskSpec::parse("a:file=x.img,bus=nvme").unwrap();
        assert_eq!(disk.file, Some(PathBuf::from("x.img")));
        assert_eq!(disk.len_bytes, None);
    }

    #[test]
    fn sizes_are_powers_of_1024_and_whole_blocks() {
        assert_eq!(bytes("512M"), Ok(512 << 20));
        assert_eq!(bytes("7"), Ok(7));
        assert_eq!(DiskSpec::parse("a:5000").unwrap().len_bytes, Some(8192));
        for wrong in ["", "M", "-1M", "1.5G", "99999999999999T", "1m"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_disk_is_refused_with_its_reason() {
        for (text, reason) in [
            ("hdd", "write NAME:SIZE"),
            ("Hdd:1M", "a name has"),
            ("9:1M", "a name has"),
            ("aaaaaaaaaaaaaaaaa:1M", "a name has"),
            ("a:0", "4K to 16T"),
            ("a:17T", "4K to 16T"),
            ("a:1M,bus=ide", "no bus \"ide\""),
            ("a:1M,rot=2", "rot=2 needs model="),
            ("a:1M,cache=none", "only cache=volatile"),
            ("a:1M,read_ms=2", "read_ms=2 needs model="),
            ("a:1M,beyond=wraps", "beyond= needs real_bytes="),
            ("a:1M,real_bytes=4K,beyond=lost", "beyond=forgets and beyond=wraps"),
            ("a:1M,real_bytes=0", "4K to 16T"),
            ("a:1M,model=usb,burst_bytes=1M", "go together"),
            ("a:1M,model=tape", "no model \"tape\""),
            ("a:1M,model=usb,turn_ms=2", "no key \"turn_ms\""),
        ] {
            let error = DiskSpec::parse(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
