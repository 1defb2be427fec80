//! USB devices and memory cards of a fake /sys, in the kernel's own places: a device at a time, so
//! that a test builds the way that it needs, hub by hub.

use crate::fake_root::FakeRoot;
use crate::trees::DiskShape;

/// Where the controller of all fake USB devices is.
const CONTROLLER: &str = "/sys/devices/pci0000:00/0000:00:14.0";
const CARD: &str = "/sys/devices/platform/host/mmc_host/mmc0/mmc0:0001";
const SHAPE: DiskShape = DiskShape { sectors: "125829120", rotational: "0" };

impl FakeRoot {
    /// Adds a USB device or hub at `path` below the controller, as `usb1/1-2/1-2.3`, with its
    /// negotiated speed in Mbit/s and its version. Those above it are added by calls of their own;
    /// the first, `usb1`, is the machine's own hub.
    #[must_use]
    pub fn usb_device(self, path: &str, speed: &str, version: &str) -> Self {
        let place = format!("{CONTROLLER}/{path}");
        let name = path.rsplit('/').next().unwrap_or(path);
        let files = [
            ("idVendor", "0781\n"),
            ("idProduct", "5581\n"),
            ("manufacturer", "Example\n"),
            ("product", &format!("Device {name}\n")),
            ("speed", &format!("{speed}\n")),
            // The kernel aligns it.
            ("version", &format!(" {version}\n")),
        ];
        self.files(&place, &files)
            .link(&format!("/sys/bus/usb/devices/{name}"), &up_to_root(3, &place))
    }

    /// Adds the disk `name` of the USB device at `path`, which the `driver` `usb-storage` or `uas`
    /// serves.
    #[must_use]
    pub fn usb_disk(self, name: &str, path: &str, driver: &str) -> Self {
        let last = path.rsplit('/').next().unwrap_or(path);
        let interface = format!("{CONTROLLER}/{path}/{last}:1.0");
        let depth = interface.matches('/').count() - 1;
        let place = format!("{interface}/host0/target0:0:0/0:0:0:0/block/{name}");
        let driver_place = format!("/sys/bus/usb/drivers/{driver}");
        self.dir(&driver_place)
            .link(&format!("{interface}/driver"), &up_to_root(depth, &driver_place))
            .disk(name, "8:0", &place, SHAPE)
            .files(&format!("{place}/{name}1"), &[("dev", "8:1\n"), ("partition", "1\n")])
            .link(&format!("/sys/class/block/{name}1"), &up_to_root(2, &format!("{place}/{name}1")))
    }

    /// The binary object store of the USB device at `path`: the speeds that it supports.
    #[must_use]
    pub fn usb_object_store(self, path: &str, store: &[u8]) -> Self {
        self.file(&format!("{CONTROLLER}/{path}/bos_descriptors"), store)
    }

    /// Adds the card or chip `mmcblk0` of a `kind` (`SD`, `MMC`) with more files of its own.
    #[must_use]
    pub fn memory_card(self, kind: &str, files: &[(&str, &str)]) -> Self {
        let own = [("type", kind), ("name", "EX64G\n"), ("preferred_erase_size", "4194304\n")];
        self.files(CARD, &own).files(CARD, files).disk(
            "mmcblk0",
            "179:0",
            &format!("{CARD}/block/mmcblk0"),
            SHAPE,
        )
    }
}

/// The relative target of a link in a directory that is `depth` components below `/sys`.
fn up_to_root(depth: usize, absolute: &str) -> String {
    format!("{}..{absolute}", "../".repeat(depth))
}
