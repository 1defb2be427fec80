//! How a removable disk is attached: a USB device with the hubs above it, or a memory card.
//!
//! The facts are what the kernel reports below /sys (`machine::usb` reads them); a file that is
//! absent or says nothing is `None`. What a device could do is known from its own descriptors only:
//! it is never guessed from the medium.

use crate::qualification::StickLink;
use serde::{Deserialize, Serialize};

/// A USB device or a memory card, with the way to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceLink {
    /// The disk is on a USB device.
    Usb(UsbLink),
    /// The disk is a card or chip on a host for MMC and SD.
    Mmc(MmcCard),
}

impl DeviceLink {
    /// The line for a page: what is attached how, and what would make it faster if anything would.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Usb(usb) => usb.sentence(),
            Self::Mmc(card) => card.sentence(),
        }
    }

    /// What would make it faster, as the end of a sentence; `None` if nothing is known that would.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Usb(usb) => usb.advice(),
            Self::Mmc(_) => None,
        }
    }

    /// Its part in the result of `boost qualify`.
    #[must_use]
    pub fn to_stick_link(&self) -> StickLink {
        let advice = self.advice();
        match self {
            Self::Usb(usb) => StickLink {
                bus: "usb".to_owned(),
                bits_per_s: usb.bits_per_s,
                device_bits_per_s: usb.device_bits_per_s,
                hubs: u32::try_from(usb.hubs.len()).ok(),
                driver: usb.driver.clone(),
                life_used_percent: None,
                advice,
            },
            Self::Mmc(card) => StickLink {
                bus: "mmc".to_owned(),
                life_used_percent: card.life_used_percent.map(u32::from),
                advice,
                ..StickLink::default()
            },
        }
    }
}

/// A USB device with a disk. Speeds are those of the wire, in bits a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbLink {
    /// Who made it, four hexadecimal digits (`idVendor`).
    pub vendor_id: Option<String>,
    /// What it is, four hexadecimal digits (`idProduct`).
    pub product_id: Option<String>,
    /// The maker's name (`manufacturer`).
    pub vendor: Option<String>,
    /// Its own name (`product`).
    pub product: Option<String>,
    /// The version of USB that it speaks on this port, as `2.10` (`version`, the field bcdUSB). On
    /// a slow port a device reports a lower one.
    pub version: Option<String>,
    /// The speed that was negotiated (`speed`).
    pub bits_per_s: Option<u64>,
    /// The fastest speed that it supports, by its own descriptors (`bos_descriptors`, else
    /// `version`), at least `bits_per_s`; `None` if these leave it open.
    pub device_bits_per_s: Option<u64>,
    /// The hubs between the machine's own port and it, in this order.
    pub hubs: Vec<UsbHub>,
    /// The speed of the bus that the port is on.
    pub port_bits_per_s: Option<u64>,
    /// The speed of the fastest bus of this machine.
    pub fastest_port_bits_per_s: Option<u64>,
    /// The kernel's driver of its interface: `usb-storage`, or `uas`, which has several requests
    /// under way.
    pub driver: Option<String>,
}

/// A hub on the way to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbHub {
    /// Its name (`product`).
    pub name: Option<String>,
    /// The speed that it has negotiated upwards.
    pub bits_per_s: Option<u64>,
}

impl UsbLink {
    /// The speed of the slowest hub on the way; `None` without a hub.
    #[must_use]
    pub fn slowest_hub_bits_per_s(&self) -> Option<u64> {
        self.hubs.iter().filter_map(|hub| hub.bits_per_s).min()
    }

    fn advice(&self) -> Option<String> {
        let (is, could) = (self.bits_per_s?, self.device_bits_per_s?);
        if is >= could {
            return None;
        }
        let fastest = self.fastest_port_bits_per_s.unwrap_or(could);
        if fastest <= is {
            return Some("no port of this machine is faster".to_owned());
        }
        let is_slowed_by_hub = self.slowest_hub_bits_per_s().is_some_and(|slowest| slowest <= is);
        let advice = if is_slowed_by_hub {
            "plug it in directly, or with another cable"
        } else {
            "try another port or cable"
        };
        Some(advice.to_owned())
    }

    fn sentence(&self) -> String {
        let place = match self.hubs.len() {
            0 => "directly in a port".to_owned(),
            1 => "on a hub".to_owned(),
            several => format!("behind {several} hubs"),
        };
        let Some(is) = self.bits_per_s else {
            return format!("{place}, at a speed that cannot be seen");
        };
        let mut text = format!("{place} at {}", speed(is));
        match self.device_bits_per_s {
            Some(could) if could > is => {
                text += &format!(" though the stick can do {}", speed(could));
            }
            Some(_) => text += ", which is all that the stick can do",
            None => text += "; what the stick can do cannot be seen",
        }
        if let Some(advice) = self.advice() {
            text += &format!(": {advice}");
        }
        text
    }
}

/// An SD card, an MMC or an eMMC chip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MmcCard {
    /// Its name (`name`).
    pub name: Option<String>,
    /// `SD`, `MMC` (`type`).
    pub kind: Option<String>,
    /// The size in bytes by which it is best erased (`preferred_erase_size`), which is a hint about
    /// its erase block.
    pub preferred_erase_bytes: Option<u64>,
    /// How much of its life is used, in percent: the end of the tenth that it is in, of the worse
    /// of its two kinds of flash (`life_time`); 100 beyond its end. eMMC reports it, cards do not.
    pub life_used_percent: Option<u8>,
    /// What it reports about its spare blocks (`pre_eol_info`).
    pub spare_blocks: Option<SpareBlocks>,
}

/// The spare blocks of an eMMC chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpareBlocks {
    /// Fewer than 80 % are used.
    Normal,
    /// 80 % are used.
    Warning,
    /// 90 % are used.
    Urgent,
}

impl MmcCard {
    fn sentence(&self) -> String {
        let mut text = format!("{} on its own host", self.kind.as_deref().unwrap_or("a card"));
        if let Some(percent) = self.life_used_percent {
            text += &format!(", up to {percent} % of its life used");
        }
        match self.spare_blocks {
            Some(SpareBlocks::Warning) => text += ", 80 % of its spare blocks used",
            Some(SpareBlocks::Urgent) => text += ", 90 % of its spare blocks used",
            Some(SpareBlocks::Normal) | None => {}
        }
        text
    }
}

/// `480 Mbit/s`, `5 Gbit/s`, `1.5 Mbit/s`.
fn speed(bits_per_s: u64) -> String {
    match bits_per_s {
        0..1_000_000_000 => format!("{} Mbit/s", bits_per_s as f64 / 1e6),
        _ => format!("{} Gbit/s", bits_per_s as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usb(is: u64, could: Option<u64>, hubs: &[u64], fastest: u64) -> DeviceLink {
        let hub = |mbit: &u64| UsbHub { name: None, bits_per_s: Some(mbit * 1_000_000) };
        DeviceLink::Usb(UsbLink {
            bits_per_s: Some(is * 1_000_000),
            device_bits_per_s: could.map(|mbit| mbit * 1_000_000),
            hubs: hubs.iter().map(hub).collect(),
            fastest_port_bits_per_s: Some(fastest * 1_000_000),
            driver: Some("uas".to_owned()),
            ..UsbLink::default()
        })
    }

    #[test]
    fn a_stick_that_could_do_more_gets_advice() {
        for (link, sentence) in [
            (
                usb(480, Some(5000), &[480], 10_000),
                "on a hub at 480 Mbit/s though the stick can do 5 Gbit/s: plug it in directly, \
                 or with another cable",
            ),
            (
                usb(480, Some(10_000), &[5000, 480], 10_000),
                "behind 2 hubs at 480 Mbit/s though the stick can do 10 Gbit/s: plug it in \
                 directly, or with another cable",
            ),
            (
                usb(480, Some(5000), &[], 10_000),
                "directly in a port at 480 Mbit/s though the stick can do 5 Gbit/s: try another \
                 port or cable",
            ),
            (
                usb(480, Some(5000), &[5000], 10_000),
                "on a hub at 480 Mbit/s though the stick can do 5 Gbit/s: try another port or cable",
            ),
            (
                usb(12, Some(480), &[], 12),
                "directly in a port at 12 Mbit/s though the stick can do 480 Mbit/s: no port of \
                 this machine is faster",
            ),
        ] {
            assert_eq!(link.sentence(), sentence);
            assert!(link.advice().is_some_and(|advice| sentence.ends_with(&advice)));
        }
    }

    #[test]
    fn a_stick_at_its_own_speed_or_of_unknown_speed_gets_no_advice() {
        for (link, sentence) in [
            (
                usb(5000, Some(5000), &[5000], 10_000),
                "on a hub at 5 Gbit/s, which is all that the stick can do",
            ),
            (
                usb(480, None, &[], 5000),
                "directly in a port at 480 Mbit/s; what the stick can do cannot be seen",
            ),
            (
                DeviceLink::Usb(UsbLink::default()),
                "directly in a port, at a speed that cannot be seen",
            ),
        ] {
            assert_eq!((link.sentence().as_str(), link.advice()), (sentence, None));
        }
    }

    #[test]
    fn the_slowest_hub_bounds_the_way() {
        let DeviceLink::Usb(link) = usb(480, None, &[5000, 480, 5000], 5000) else { return };
        assert_eq!(link.slowest_hub_bits_per_s(), Some(480_000_000));
        assert_eq!(UsbLink::default().slowest_hub_bits_per_s(), None);
    }

    #[test]
    fn the_result_of_qualify_has_the_same_figures() {
        let link = usb(480, Some(5000), &[480], 5000).to_stick_link();
        assert_eq!((link.bits_per_s, link.hubs), (Some(480_000_000), Some(1)));
        assert_eq!(link.advice.as_deref(), Some("plug it in directly, or with another cable"));
        let card = MmcCard {
            kind: Some("MMC".to_owned()),
            life_used_percent: Some(30),
            spare_blocks: Some(SpareBlocks::Urgent),
            ..MmcCard::default()
        };
        let link = DeviceLink::Mmc(card);
        assert_eq!(link.to_stick_link().life_used_percent, Some(30));
        let sentence =
            "MMC on its own host, up to 30 % of its life used, 90 % of its spare blocks used";
        assert_eq!(link.sentence(), sentence);
    }
}
