//! How a stick or a card is attached: the USB device above a disk with the hubs above that, or the
//! memory card that it is. From /sys alone, without any right.
//!
//! In sysfs a USB device is a directory with `idVendor`; the devices above it are its hubs, and the
//! topmost is the machine's own (`usb1`). What a device could do on a faster port is in its binary
//! object store (`bos_descriptors`, since Linux 6.9), which lists the speeds that it supports.

use crate::block;
use crate::root::Root;
use model::link::{DeviceLink, MmcCard, SpareBlocks, UsbHub, UsbLink};
use std::path::{Path, PathBuf};

/// What the disk with this name (`sda1`, `/dev/sda`, `mmcblk0`) is attached by; `None` if it is not
/// on a USB device nor a memory card, as stacked, virtual and built-in disks.
///
/// [`DeviceLink::sentence`] is the line for a page, [`DeviceLink::to_stick_link`] the part of a
/// qualification.
#[must_use]
pub fn link_of(root: &Root, disk: &str) -> Option<DeviceLink> {
    let directory = block::directory_of(root, disk)?;
    let whole = block::whole_of(root, &directory)?;
    // The nearest device above decides: of a card in a USB reader that shows it as a disk, only the
    // reader is seen.
    whole.ancestors().skip(1).find_map(|above| {
        if root.has(above.join("idVendor")) {
            return Some(DeviceLink::Usb(usb_device(root, above, whole)));
        }
        let is_card = root.has(above.join("preferred_erase_size"));
        is_card.then(|| DeviceLink::Mmc(card(root, above)))
    })
}

/// `device` is the directory of the USB device, `disk` that of the disk below it.
fn usb_device(root: &Root, device: &Path, disk: &Path) -> UsbLink {
    let word = |name: &str| root.word(device.join(name));
    let bits_per_s = speed(root, device);
    let version = word("version");
    let above: Vec<PathBuf> = device
        .ancestors()
        .skip(1)
        .filter(|above| root.has(above.join("idVendor")))
        .map(Path::to_owned)
        .collect();
    let (own, hubs): (Vec<_>, Vec<_>) = above.iter().partition(|above| is_own_hub(above));
    let interface = disk.ancestors().find(|above| above.parent() == Some(device));
    UsbLink {
        vendor_id: word("idVendor"),
        product_id: word("idProduct"),
        vendor: word("manufacturer"),
        product: word("product"),
        bits_per_s,
        device_bits_per_s: device_speed(root, device, version.as_deref(), bits_per_s),
        version,
        hubs: hubs
            .into_iter()
            .rev()
            .map(|hub| UsbHub {
                name: root.word(hub.join("product")),
                bits_per_s: speed(root, hub),
            })
            .collect(),
        port_bits_per_s: own.first().and_then(|hub| speed(root, hub)),
        fastest_port_bits_per_s: fastest_port(root),
        driver: interface.and_then(|interface| {
            let driver = root.resolve(interface.join("driver"))?;
            Some(driver.file_name()?.to_str()?.to_owned())
        }),
    }
}

/// Whether it is a hub of the machine's own controllers, as `usb1`.
fn is_own_hub(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("usb").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The negotiated speed in bits a second; the kernel says it in Mbit/s, as `1.5` or `5000`.
fn speed(root: &Root, device: &Path) -> Option<u64> {
    let megabits: f64 = root.number(device.join("speed"))?;
    (megabits.is_finite() && megabits > 0.0).then_some((megabits * 1e6) as u64)
}

/// The fastest of the machine's own hubs.
fn fastest_port(root: &Root) -> Option<u64> {
    let devices = Path::new("/sys/bus/usb/devices");
    let names = root.names(devices).into_iter();
    let own = names.map(|name| devices.join(name)).filter(|device| is_own_hub(device));
    own.filter_map(|hub| speed(root, &hub)).max()
}

/// The fastest speed that the device supports, as far as its descriptors say.
fn device_speed(
    root: &Root,
    device: &Path,
    version: Option<&str>,
    negotiated: Option<u64>,
) -> Option<u64> {
    let store = root.read_bytes(device.join("bos_descriptors")).ok();
    let listed =
        store.as_deref().and_then(listed_speed).or_else(|| version.and_then(version_speed));
    listed.max(listed.and(negotiated))
}

/// What the version says where the list of speeds cannot be read. 2.10 is what devices of USB 3 say
/// on a slow port, but others too. From 3.0 on 5 Gbit/s are there, and more may be.
fn version_speed(version: &str) -> Option<u64> {
    let (major, minor) = version.split_once('.')?;
    match (major, minor) {
        ("1", _) => Some(12_000_000),
        ("2", "00") => Some(480_000_000),
        ("3", _) => Some(5_000_000_000),
        _ => None,
    }
}

const DEVICE_CAPABILITY: u8 = 0x10;
const SUPER_SPEED: u8 = 0x03;
const SUPER_SPEED_PLUS: u8 = 0x0a;

/// The fastest speed in a binary object store (USB 3.2, section 9.6.2); `None` if it lists none.
fn listed_speed(store: &[u8]) -> Option<u64> {
    let mut fastest = None;
    let mut rest = store;
    while let [len, kind, ..] = *rest {
        let len = usize::from(len);
        if len < 3 || len > rest.len() {
            break;
        }
        let (descriptor, behind) = rest.split_at(len);
        rest = behind;
        if kind != DEVICE_CAPABILITY {
            continue;
        }
        let found = match descriptor[2] {
            SUPER_SPEED => supported_speed(descriptor),
            SUPER_SPEED_PLUS => sublink_speed(descriptor),
            _ => None,
        };
        fastest = fastest.max(found);
    }
    fastest
}

/// Of the capability of a SuperSpeed device: a bit for each of low, full, high speed and 5 Gbit/s.
fn supported_speed(descriptor: &[u8]) -> Option<u64> {
    let speeds = u16::from_le_bytes([*descriptor.get(4)?, *descriptor.get(5)?]);
    let known = [(3, 5_000_000_000), (2, 480_000_000), (1, 12_000_000), (0, 1_500_000)];
    known.into_iter().find(|(bit, _)| speeds & (1 << bit) != 0).map(|(_, speed)| speed)
}

/// Of the capability of a SuperSpeedPlus device: speeds as mantissa and exponent, four bytes each.
fn sublink_speed(descriptor: &[u8]) -> Option<u64> {
    let (attributes, _) = descriptor.get(12..)?.as_chunks::<4>();
    let speed = |attribute: &[u8; 4]| {
        let bits = u32::from_le_bytes(*attribute);
        u64::from(bits >> 16) * 1000_u64.pow((bits >> 4) & 3)
    };
    attributes.iter().map(speed).max().filter(|speed| *speed > 0)
}

/// `card` is the directory of the card.
fn card(root: &Root, card: &Path) -> MmcCard {
    let word = |name: &str| root.word(card.join(name));
    MmcCard {
        name: word("name"),
        kind: word("type"),
        preferred_erase_bytes: root
            .number(card.join("preferred_erase_size"))
            .filter(|size| *size > 0),
        life_used_percent: word("life_time").and_then(|text| life_used(&text)),
        spare_blocks: word("pre_eol_info").and_then(|text| match hexadecimal(&text)? {
            1 => Some(SpareBlocks::Normal),
            2 => Some(SpareBlocks::Warning),
            3 => Some(SpareBlocks::Urgent),
            _ => None,
        }),
    }
}

/// "0x01 0x03": the tenths of life that two kinds of flash are in, 0 if not reported, 11 beyond the
/// end.
fn life_used(text: &str) -> Option<u8> {
    let tenths = text.split_whitespace().filter_map(hexadecimal).max()?;
    (1..=11).contains(&tenths).then(|| tenths.min(10) * 10)
}

fn hexadecimal(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an emulated stick of 5 Gbit/s reports.
    const STORE: [u8; 22] =
        [5, 0x0f, 22, 0, 2, 7, 0x10, 2, 2, 0, 0, 0, 10, 0x10, 3, 0, 0x0e, 0, 1, 10, 0x20, 0];

    #[test]
    fn the_object_store_lists_the_speeds() {
        assert_eq!(listed_speed(&STORE), Some(5_000_000_000));
        for cut in 0..STORE.len() {
            assert!(listed_speed(&STORE[..cut]).is_none(), "{cut}");
        }
        let mut endless = STORE;
        endless[5] = 0;
        assert_eq!(listed_speed(&endless), None);
        // Two speeds of a device of the second generation, 5 and 10 Gbit/s.
        let plus =
            [16 + 4, 0x10, 10, 0, 1, 0, 0, 0, 0, 0x11, 0, 0, 0x30, 0, 5, 0, 0x31, 0x40, 10, 0];
        assert_eq!(listed_speed(&[STORE.as_slice(), &plus].concat()), Some(10_000_000_000));
    }

    #[test]
    fn a_version_says_no_more_than_it_does() {
        assert_eq!(version_speed("1.10"), Some(12_000_000));
        assert_eq!(version_speed("2.00"), Some(480_000_000));
        assert_eq!(version_speed("2.10"), None);
        assert_eq!(version_speed("3.20"), Some(5_000_000_000));
        assert_eq!(version_speed("x"), None);
    }

    #[test]
    fn life_is_the_worse_of_both_kinds() {
        assert_eq!(life_used("0x01 0x03"), Some(30));
        assert_eq!(life_used("0x0b 0x01"), Some(100));
        assert_eq!(life_used("0x00 0x00"), None);
        assert_eq!(life_used("0xff 0x01"), None);
        assert_eq!(life_used(""), None);
    }
}
