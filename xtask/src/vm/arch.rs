//! The processors and page sizes that a guest can have, and what of QEMU, Debian and cargo differs
//! between them.
//! A guest of another kind than this machine is emulated.

use clap::ValueEnum;

/// A processor architecture, and the size of pages where a kernel is made for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Arch {
    /// 64-bit x86
    #[value(name = "x86_64")]
    X86,
    /// 64-bit Arm
    Aarch64,
    /// 64-bit Arm with pages of 16 KiB
    #[value(name = "aarch64-16k")]
    Aarch64Pages16K,
}

impl Arch {
    /// That of this machine, for a guest that may be what it likes.
    pub(crate) const NATIVE: Self =
        if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86 };

    /// The one whose programs have this target, with its usual pages.
    pub(crate) fn of_target(target: &str) -> Option<Self> {
        [Self::X86, Self::Aarch64].into_iter().find(|arch| arch.target() == target)
    }

    /// As it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Aarch64Pages16K => "aarch64-16k",
        }
    }

    /// As Debian names it.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Aarch64 | Self::Aarch64Pages16K => "arm64",
        }
    }

    /// The kernel: the newest of Debian 12, with ublk, MGLRU and DAMON.
    pub(super) fn kernel_package(self) -> &'static str {
        match self {
            Self::X86 => "linux-image-6.12-amd64",
            Self::Aarch64 => "linux-image-6.12-arm64",
            Self::Aarch64Pages16K => "linux-image-6.12-arm64-16k",
        }
    }

    /// The emulator, and Debian's package of it.
    pub(crate) fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Self::X86 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Aarch64 | Self::Aarch64Pages16K => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// QEMU's name of the board, and of the processor that is emulated.
    pub(super) fn board(self) -> (&'static str, &'static str) {
        match self {
            Self::X86 => ("q35", "max,la57=off,erms=off,fsrm=off"),
            Self::Aarch64 | Self::Aarch64Pages16K => ("virt,gic-version=3", "cortex-a76"),
        }
    }

    /// The device of the first serial port.
    pub(super) fn console(self) -> &'static str {
        match self {
            Self::X86 => "ttyS0",
            Self::Aarch64 | Self::Aarch64Pages16K => "ttyAMA0",
        }
    }

    /// What rustc builds for it.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 | Self::Aarch64Pages16K => "aarch64-unknown-linux-gnu",
        }
    }

    /// Debian's C compiler for it on a machine of another kind, which also links.
    pub(crate) fn cross_compiler(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-linux-gnu-gcc",
            Self::Aarch64 | Self::Aarch64Pages16K => "aarch64-linux-gnu-gcc",
        }
    }
}
