//! The names of Arm processors, which /proc/cpuinfo gives as numbers: who made it (implementer) and
//! which one it is (part). The numbers are those of `arch/arm64/include/asm/cputype.h` of Linux and
//! of the makers' manuals.

/// Makers by their number.
const IMPLEMENTERS: [(u32, &str); 10] = [
    (0x41, "Arm"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "APM"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0xc0, "Ampere"),
];

/// Processors by both numbers: those of servers, boards and laptops that run Linux.
const PARTS: [(u32, u32, &str); 27] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "Kunpeng 920"),
    (0x4e, 0x004, "Carmel"),
    (0x51, 0x001, "Oryon"),
    (0x61, 0x022, "M1"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];

/// The maker; `None` for a number that is not known.
pub(crate) fn maker(implementer: &str) -> Option<&'static str> {
    let number = number(implementer)?;
    IMPLEMENTERS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Maker and name, as `Arm Neoverse N1`; both numbers where they are not known.
pub(crate) fn model(implementer: &str, part: &str) -> String {
    let numbers = number(implementer).zip(number(part));
    let known = numbers.and_then(|(implementer, part)| {
        PARTS.iter().find(|(maker, known, _)| (*maker, *known) == (implementer, part))
    });
    match (maker(implementer), known) {
        (Some(maker), Some((_, _, name))) => format!("{maker} {name}"),
        (Some(maker), None) => format!("{maker}, part {part}"),
        (None, _) => format!("Arm processor of maker {implementer}, part {part}"),
    }
}

/// `0x41` as a number.
fn number(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_names_and_unknown_ones_stay() {
        assert_eq!(model("0x41", "0xd0c"), "Arm Neoverse N1");
        assert_eq!(model("0x41", "0xfff"), "Arm, part 0xfff");
        assert_eq!(model("0x99", "1"), "Arm processor of maker 0x99, part 1");
        assert_eq!((maker("0xc0"), maker("41")), (Some("Ampere"), None));
        let is_sorted = PARTS.is_sorted_by_key(|(maker, part, _)| (*maker, *part));
        assert!(is_sorted && IMPLEMENTERS.is_sorted());
    }
}
