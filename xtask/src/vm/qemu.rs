//! How QEMU is called, and that it ends with this process.
//!
//! `setpriv --pdeathsig` asks the kernel to kill QEMU when the thread that started it ends, by
//! whatever: no handler of ours has to run. One processor without KVM: with two, one boot in thirty
//! was seen to die in the emulation of a kernel that patches its own code.

use std::fs::File;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};

use super::image::Image;
use super::options::VmOptions;
use super::streams;
use crate::error::Error;
use crate::process::{self, Running};

/// The serial number of the root image.
const ROOT: &str = "terrace-root";

/// The disk that is laid over the root image. No disk of a user can be called so.
pub(super) const SCRATCH: &str = "terrace-scratch";

/// The socket of all disks.
pub(super) const DISKS: &str = "disks";

/// Unpatched and quiet, with its console on the serial port, and dead at once when it panics. What
/// it would look for and not find (a second mouse, an array of disks) costs seconds under
/// emulation. Programs at fixed addresses: the emulator translates code for an address, and for
/// another one again, which made each start of a program four to five times as slow.
const KERNEL_LINE: &str = "panic=-1 nokaslr mitigations=off random.trust_cpu=on \
    8250.nr_uarts=1 i8042.nokbd i8042.noaux cryptomgr.notests raid=noautodetect tsc=reliable \
    usb-storage.delay_use=0 norandmaps";

/// Whether this machine runs guests in hardware: the device alone does not say so.
pub(super) fn has_kvm() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut words = flags.split_whitespace();
    let opens = || {
        let mut device = File::options();
        device.read(true).write(true).open("/dev/kvm").is_ok()
    };
    words.any(|word| word == "vmx" || word == "svm") && opens()
}

/// A QEMU that runs; dropped, it is killed.
#[derive(Debug)]
pub(super) struct Qemu(Running);

impl Qemu {
    /// Starts one that connects to the sockets in `work`.
    ///
    /// # Errors
    /// When `setpriv` cannot be started; what QEMU has against its options, it says itself.
    pub(super) fn start(
        options: &VmOptions,
        image: &Image,
        work: &Path,
        with_kvm: bool,
    ) -> Result<Self, Error> {
        let (program, _) = options.arch.qemu();
        let failed = |what: String| Error::Program { program: program.to_owned(), what };
        let qemu = process::find(program).ok_or_else(|| failed("not found".to_owned()))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(qemu);
        command.args(arguments(options, image, work, with_kvm));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::start(command).map(Self).map_err(|error| failed(error.to_string()))
    }

    /// The guest's console; once.
    pub(super) fn console(&mut self) -> Option<ChildStdout> {
        self.0.child.stdout.take()
    }

    /// What QEMU itself says; once.
    pub(super) fn complaints(&mut self) -> Option<ChildStderr> {
        self.0.child.stderr.take()
    }
}

fn arguments(options: &VmOptions, image: &Image, work: &Path, with_kvm: bool) -> Vec<String> {
    let mut arguments = machine(options, image, with_kvm);
    arguments.extend(channels(work));
    arguments.extend(disks(options, image, work));
    arguments
}

/// The machine without what is attached to it.
fn machine(options: &VmOptions, image: &Image, with_kvm: bool) -> Vec<String> {
    let (board, emulated) = options.arch.board();
    let (accelerator, processor) =
        if with_kvm { ("kvm", "host") } else { ("tcg,tb-size=256", emulated) };
    // Who keeps the console wants to know more than why the kernel died.
    let level = if options.console.is_some() { 7 } else { 4 };
    let console = options.arch.console();
    let more = options.append.join(" ");
    let line = format!("console={console} {KERNEL_LINE} loglevel={level} {more}");
    let mut arguments =
        ["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned).to_vec();
    for (option, value) in [
        ("-machine", board.to_owned()),
        ("-accel", accelerator.to_owned()),
        ("-cpu", processor.to_owned()),
        ("-m", format!("{}M", options.memory_bytes >> 20)),
        ("-kernel", image.kernel().display().to_string()),
        ("-initrd", image.initramfs().display().to_string()),
        ("-append", line),
        ("-display", "none".to_owned()),
        ("-device", "virtio-rng-pci".to_owned()),
    ] {
        arguments.extend([option.to_owned(), value]);
    }
    arguments
}

/// The console, the ports of the guest and the monitor.
fn channels(work: &Path) -> Vec<String> {
    let socket = |name: &str| format!("socket,id={name},path={}", escaped(&work.join(name)));
    let monitor = streams::MONITOR;
    let mut arguments = Vec::new();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    // QEMU's own output, by a name that does not make it a terminal.
    add("-chardev", "file,id=console,path=/dev/fd/1".to_owned());
    add("-serial", "chardev:console".to_owned());
    add("-device", "virtio-serial-pci".to_owned());
    for port in streams::PORTS {
        add("-chardev", socket(port));
        let device = format!("virtserialport,chardev={port},name={port}");
        add("-device", device);
    }
    add("-chardev", socket(monitor));
    add("-mon", format!("chardev={monitor},mode=control"));
    arguments
}

/// The root image, the scratch disk and those that were asked for, in this order.
fn disks(options: &VmOptions, image: &Image, work: &Path) -> Vec<String> {
    let server = escaped(&work.join(DISKS));
    let root = escaped(&image.root());
    let node = |name: &str| {
        let server = format!("server.type=unix,server.path={server}");
        format!("driver=nbd,node-name=node-{name},export={name},{server}")
    };
    let own = |name: &str| format!("virtio-blk-pci,drive=node-{name},serial={name}");
    let mut arguments = Vec::new();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let root = format!("driver=file,node-name=node-{ROOT},read-only=on,filename={root}");
    add("-blockdev", root);
    add("-device", own(ROOT));
    add("-blockdev", node(SCRATCH));
    add("-device", own(SCRATCH));
    let mut controllers: Vec<&str> = Vec::new();
    for disk in &options.disks {
        let controller = disk.bus.controller();
        if let Some(controller) = controller.filter(|it| !controllers.contains(it)) {
            add("-device", controller.to_owned());
            controllers.push(controller);
        }
        add("-blockdev", node(&disk.name));
        add("-device", disk.device());
    }
    arguments
}

/// A path as a value among QEMU's options.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_added_once_and_before_its_disks() {
        let line = "--disk a:1M,bus=usb --disk b:1M,bus=usb --disk c:1M -- true";
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let options = crate::vm::options::parse(&words).unwrap();
        let arguments = disks(&options, &Image::at("/i".into()), Path::new("/w,1"));
        let devices: Vec<&str> = arguments
            .windows(2)
            .filter(|pair| pair[0] == "-device")
            .map(|pair| pair[1].split([',', '=']).next().unwrap())
            .collect();
        let expected = [
            "virtio-blk-pci",
            "virtio-blk-pci",
            "qemu-xhci",
            "usb-storage",
            "usb-storage",
            "virtio-blk-pci",
        ];
        assert_eq!(devices, expected);
        let commas = |argument: &&String| argument.ends_with("server.path=/w,,1/disks");
        assert_eq!(arguments.iter().filter(commas).count(), 4);
    }
}
