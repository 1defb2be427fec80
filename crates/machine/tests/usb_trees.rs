//! How sticks and cards are attached, read from fake trees: in a port, behind hubs, on USB 2, with
//! each driver, as a card, and not at all.
#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::{Root, usb};
use model::link::{DeviceLink, MmcCard, SpareBlocks, UsbLink};
use testkit::FakeRoot;

/// Low, full, high speed and 5 Gbit/s.
const SUPER_SPEED: [u8; 15] = [5, 0x0f, 15, 0, 1, 10, 0x10, 3, 0, 0x0e, 0, 1, 10, 0x20, 0];

/// A machine with a bus of 480 Mbit/s and one of 10 Gbit/s.
fn two_buses() -> FakeRoot {
    FakeRoot::bare().usb_device("usb1", "480", "2.00").usb_device("usb2", "10000", "3.10")
}

fn link_of(tree: &FakeRoot, disk: &str) -> Option<DeviceLink> {
    usb::link_of(&Root::at(tree.path()), disk)
}

fn usb_link(tree: &FakeRoot) -> UsbLink {
    let Some(DeviceLink::Usb(link)) = link_of(tree, "sda") else { panic!("not on USB") };
    link
}

#[test]
fn a_stick_in_a_port_at_its_own_speed() {
    let path = "usb2/2-1";
    let tree = two_buses()
        .usb_device(path, "5000", "3.20")
        .usb_object_store(path, &SUPER_SPEED)
        .usb_disk("sda", path, "usb-storage");
    let link = usb_link(&tree);
    let expected = UsbLink {
        vendor_id: Some("0781".to_owned()),
        product_id: Some("5581".to_owned()),
        vendor: Some("Example".to_owned()),
        product: Some("Device 2-1".to_owned()),
        version: Some("3.20".to_owned()),
        bits_per_s: Some(5_000_000_000),
        device_bits_per_s: Some(5_000_000_000),
        hubs: Vec::new(),
        port_bits_per_s: Some(10_000_000_000),
        fastest_port_bits_per_s: Some(10_000_000_000),
        driver: Some("usb-storage".to_owned()),
    };
    assert_eq!(link, expected);
    for name in ["/dev/sda", "sda1", "/dev/sda1"] {
        assert_eq!(link_of(&tree, name), Some(DeviceLink::Usb(expected.clone())), "{name}");
    }
    assert_eq!(DeviceLink::Usb(link).advice(), None);
}

#[test]
fn a_fast_stick_on_a_slow_hub_behind_another() {
    let path = "usb1/1-2/1-2.3/1-2.3.1";
    let tree = two_buses()
        .usb_device("usb1/1-2", "480", "2.00")
        .usb_device("usb1/1-2/1-2.3", "12", "1.10")
        .usb_device(path, "12", "2.10")
        .usb_object_store(path, &SUPER_SPEED)
        .usb_disk("sda", path, "uas");
    let link = usb_link(&tree);
    let hubs: Vec<_> = link.hubs.iter().map(|hub| (hub.name.as_deref(), hub.bits_per_s)).collect();
    assert_eq!(
        hubs,
        [(Some("Device 1-2"), Some(480_000_000)), (Some("Device 1-2.3"), Some(12_000_000))]
    );
    assert_eq!(link.slowest_hub_bits_per_s(), Some(12_000_000));
    assert_eq!((link.port_bits_per_s, link.driver.as_deref()), (Some(480_000_000), Some("uas")));
    let sentence = "behind 2 hubs at 12 Mbit/s though the stick can do 5 Gbit/s: plug it in directly, or with \
         another cable";
    assert_eq!(DeviceLink::Usb(link).sentence(), sentence);
}

#[test]
fn a_stick_of_usb_2_needs_no_faster_port() {
    let path = "usb1/1-1";
    let tree = two_buses().usb_device(path, "480", "2.00").usb_disk("sda", path, "usb-storage");
    let link = usb_link(&tree);
    assert_eq!(link.device_bits_per_s, Some(480_000_000));
    assert_eq!(DeviceLink::Usb(link).advice(), None);
}

#[test]
fn without_the_list_of_speeds_a_version_may_leave_it_open() {
    let path = "usb1/1-1";
    let tree = two_buses().usb_device(path, "480", "2.10").usb_disk("sda", path, "usb-storage");
    let link = usb_link(&tree);
    assert_eq!((link.bits_per_s, link.device_bits_per_s), (Some(480_000_000), None));
    // More than 5 Gbit/s are known only because they were negotiated.
    let path = "usb2/2-1";
    let tree = two_buses().usb_device(path, "10000", "3.20").usb_disk("sda", path, "uas");
    assert_eq!(usb_link(&tree).device_bits_per_s, Some(10_000_000_000));
}

#[test]
fn what_a_file_does_not_say_is_absent() {
    let path = "usb1/1-1";
    let place = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-1";
    let tree = two_buses()
        .usb_device(path, "unknown", "")
        .usb_disk("sda", path, "uas")
        .without(&format!("{place}/product"))
        .without(&format!("{place}/1-1:1.0/driver"));
    let link = usb_link(&tree);
    assert_eq!((link.bits_per_s, link.device_bits_per_s), (None, None));
    assert_eq!((link.product, link.driver, link.version), (None, None, None));
}

#[test]
fn a_chip_that_reports_its_life_and_a_card_that_does_not() {
    let files = [("life_time", "0x02 0x04\n"), ("pre_eol_info", "0x02\n")];
    let tree = FakeRoot::bare().memory_card("MMC", &files);
    let expected = MmcCard {
        name: Some("EX64G".to_owned()),
        kind: Some("MMC".to_owned()),
        preferred_erase_bytes: Some(4 << 20),
        life_used_percent: Some(40),
        spare_blocks: Some(SpareBlocks::Warning),
    };
    assert_eq!(link_of(&tree, "mmcblk0"), Some(DeviceLink::Mmc(expected)));

    let tree = FakeRoot::bare().memory_card("SD", &[]);
    let Some(DeviceLink::Mmc(card)) = link_of(&tree, "mmcblk0") else { panic!("not a card") };
    assert_eq!((card.life_used_percent, card.spare_blocks), (None, None));
}

#[test]
fn other_disks_have_no_link() {
    let desktop = FakeRoot::desktop_v2();
    for disk in ["sda", "nvme0n1", "dm-0", "zram0", "absent", "../etc"] {
        assert_eq!(link_of(&desktop, disk), None, "{disk}");
    }
    assert_eq!(link_of(&FakeRoot::bare(), "sda"), None);
}

/// In a guest of `cargo xtask vm --tests machine` with the stick's name in the variable.
#[test]
fn a_stick_of_this_machine() {
    let Ok(disk) = std::env::var("TERRACE_TEST_STICK") else {
        return testkit::skip("TERRACE_TEST_STICK, the name of a disk on USB");
    };
    let Some(DeviceLink::Usb(link)) = usb::link_of(&Root::system(), &disk) else {
        panic!("{disk} is not on USB")
    };
    println!("{link:?}");
    assert_eq!(link.driver.as_deref(), Some("usb-storage"));
    assert!(link.bits_per_s.unwrap() >= 480_000_000 && link.hubs.is_empty());
    assert!(link.device_bits_per_s >= link.bits_per_s);
}
