//! Copies on disks with the times of a model, in a guest of `cargo xtask vm`: two hard disks, and a
//! stick with three file systems.
//!
//! All turns of a part are in one guest: a boot takes longer than a copy. The guest's scripts
//! (`guest/`) leave lines `PART.PROGRAM.FIGURE VALUE`, one for each turn. Without KVM the guest is
//! emulated, so each part notes how busy its processor and its disk were: only what the disk bounds
//! is a figure of the copy.

use std::collections::BTreeMap;
use std::fs;

use crate::bench::Session;
use crate::bench::guest::{self, GuestRun};
use crate::bench::ratio;
use crate::bench::record::{Series, Target};
use crate::error::Error;

/// More turns take longer than a part may.
const MOST_TURNS: usize = 3;
const TIMEOUT_S: u64 = 900;
const MIB: f64 = (1 << 20) as f64;

/// The packages that the guest has besides the usual ones.
const PACKAGES: [&str; 3] = ["rsync", "dosfstools", "exfatprogs"];
const SCRIPTS: [(&str, &str); 6] = [
    ("lib.sh", include_str!("guest/lib.sh")),
    ("watch.pl", include_str!("guest/watch.pl")),
    ("hdd.sh", include_str!("guest/hdd.sh")),
    ("scattered.sh", include_str!("guest/scattered.sh")),
    ("usb.sh", include_str!("guest/usb.sh")),
    ("lab-2008.sh", include_str!("guest/lab-2008.sh")),
];
/// Two hard disks. On a bus of real disks, so that they are believed to rotate.
pub(super) const HARD_DISKS: [&str; 2] = ["a:4G,model=hdd,bus=scsi", "b:4G,model=hdd,bus=scsi"];
const STICK: [&str; 1] = ["stick:512M,model=usb,bus=usb"];

/// Four times the guest's memory: of a file that memory holds, `cp` reads all first and writes all
/// then, which is the best order on one disk. Short ones are bounded by the start of the program,
/// which takes 0.3 s on an emulated processor.
const HDD_MIB: u32 = 1024;
const HDD_MEMORY: &str = "256M";
const SCATTERED_FILES: u32 = 5000;
const STICK_MIB: u32 = 96;
/// The files are in the guest's memory.
const STICK_MEMORY: &str = "512M";

/// Those that an emulated processor lets keep up with a hard disk: rsync took all of it.
const FAST_PEERS: [&str; 2] = ["terrace", "cp"];
const PEERS: [&str; 3] = ["terrace", "cp", "rsync"];

/// A guest, and the words of its script.
pub(super) struct GuestCopies {
    pub(super) disks: &'static [&'static str],
    pub(super) memory: &'static str,
    pub(super) words: Vec<String>,
}

/// What the turns gave, by name.
struct Figures(BTreeMap<String, Vec<f64>>);

/// A file from disk to disk.
///
/// # Errors
/// When the guest fails.
pub(super) fn across(session: &mut Session) -> Result<(), Error> {
    let figures = one_file(session, "across")?;
    let bytes = f64::from(HDD_MIB) * MIB;
    // The slower side, turn by turn.
    let (reads, writes) = (figures.all("read.seconds")?, figures.all("write.seconds")?);
    let sides: Vec<f64> = reads.iter().zip(writes).map(|(read, write)| read.max(*write)).collect();
    let sequential = rates(bytes, &sides);
    let what = format!("hdd: {HDD_MIB} MiB from disk to disk, beside seqio");
    for name in FAST_PEERS {
        let ours = rates(bytes, figures.all(&format!("across.{name}.seconds"))?);
        let pair = (Series::new(name, &ours), Series::new("seqio", &sequential));
        let target = (name == "terrace").then_some(Target::AtLeast(0.9));
        session.record.add_against(&format!("{what}: {name}"), "MB/s", pair, target)?;
    }
    note_busy(session, &figures, "across", &FAST_PEERS)
}

/// A file within one disk.
///
/// # Errors
/// As [`across`].
pub(super) fn within(session: &mut Session) -> Result<(), Error> {
    let figures = one_file(session, "within")?;
    let what = format!("hdd: {HDD_MIB} MiB within one disk");
    beside_peers(session, &figures, ("within", &what), &FAST_PEERS, 0.7)?;
    note_busy(session, &figures, "within", &FAST_PEERS)
}

fn one_file(session: &mut Session, what: &str) -> Result<Figures, Error> {
    let words = vec!["hdd.sh".to_owned(), turns(session), HDD_MIB.to_string(), what.to_owned()];
    figures(session, &GuestCopies { disks: &HARD_DISKS, memory: HDD_MEMORY, words })
}

/// Small files in an order that is not that on the disk.
///
/// # Errors
/// As [`across`].
pub(super) fn scattered(session: &mut Session) -> Result<(), Error> {
    let words = vec!["scattered.sh".to_owned(), turns(session), SCATTERED_FILES.to_string()];
    let figures = figures(session, &GuestCopies { disks: &HARD_DISKS, memory: HDD_MEMORY, words })?;
    let what = format!("hdd: {SCATTERED_FILES} scattered files to another disk");
    beside_peers(session, &figures, ("scattered", &what), &PEERS, 0.4)?;
    note_busy(session, &figures, "scattered", &PEERS)
}

/// To a stick with FAT.
///
/// # Errors
/// As [`across`].
pub(super) fn usb_vfat(session: &mut Session) -> Result<(), Error> {
    usb(session, "vfat")
}

/// To a stick with exFAT.
///
/// # Errors
/// As [`across`].
pub(super) fn usb_exfat(session: &mut Session) -> Result<(), Error> {
    usb(session, "exfat")
}

/// To a stick with ext4.
///
/// # Errors
/// As [`across`].
pub(super) fn usb_ext4(session: &mut Session) -> Result<(), Error> {
    usb(session, "ext4")
}

fn usb(session: &mut Session, kind: &str) -> Result<(), Error> {
    let (turns, size) = (turns(session), STICK_MIB.to_string());
    let words = vec!["usb.sh".to_owned(), turns, size, kind.to_owned()];
    let figures = figures(session, &GuestCopies { disks: &STICK, memory: STICK_MEMORY, words })?;
    let bytes = f64::from(STICK_MIB) * MIB;
    let what = format!("usb, {kind}, {STICK_MIB} MiB");
    let rate = rates(bytes, figures.all("stick.seconds")?);
    for name in PEERS {
        let is_ours = name == "terrace";
        let of = |figure: &str| figures.all(&format!("stick.{name}.{figure}"));
        let pair = (Series::new(name, &rates(bytes, of("seconds")?)), Series::new("seqio", &rate));
        let target = is_ours.then_some(Target::AtLeast(0.9));
        session.record.add_against(&format!("{what}: rate, {name}"), "MB/s", pair, target)?;
        let mut under_way: Vec<f64> = of("dirty_bytes")?.iter().map(|bytes| bytes / MIB).collect();
        if is_ours {
            let own = of("under_way_bytes")?;
            for (seen, own) in under_way.iter_mut().zip(own) {
                *seen = seen.max(own / MIB);
            }
        }
        let written: Vec<f64> = of("written_bytes")?.iter().map(|all| all / bytes).collect();
        let rows = [
            ("most bytes under way", "MiB", under_way.as_slice(), 4.0),
            ("written at the device, of the files", "x", written.as_slice(), 1.1),
            ("from done to a quiet disk", "s", of("quiet_s")?, 0.2),
        ];
        for (row, unit, values, most) in rows {
            let target = is_ours.then_some(Target::AtMost(most));
            let row = format!("{what}: {row}, {name}");
            session.record.add_alone(&row, unit, Series::new(name, values), target)?;
        }
    }
    let row = format!("{what}: from Ctrl-C to a quiet disk, terrace");
    let values = figures.all("interrupted.terrace.quiet_s")?;
    let target = Some(Target::AtMost(1.0));
    session.record.add_alone(&row, "s", Series::new("terrace", values), target)?;
    note_busy(session, &figures, "stick", &PEERS)
}

impl Figures {
    fn read(text: &str) -> Result<Self, Error> {
        let mut all = BTreeMap::<String, Vec<f64>>::new();
        for line in text.lines() {
            let pair = line.split_once(' ').and_then(|(name, value)| {
                let value = value.parse().ok()?;
                Some((name.to_owned(), value))
            });
            let (name, value) = pair.ok_or_else(|| malformed(line))?;
            all.entry(name).or_default().push(value);
        }
        Ok(Self(all))
    }

    fn all(&self, name: &str) -> Result<&[f64], Error> {
        self.0.get(name).map(Vec::as_slice).ok_or_else(|| malformed(&format!("no {name}")))
    }

    fn median(&self, name: &str) -> Result<f64, Error> {
        let summary = ratio::summary(self.all(name)?);
        Ok(summary.map_or(0.0, |summary| summary.median))
    }
}

fn malformed(why: &str) -> Error {
    Error::Malformed { what: "the figures of a guest", why: why.to_owned() }
}

fn turns(session: &Session) -> String {
    session.request.alternations.min(MOST_TURNS).to_string()
}

fn rates(bytes: f64, seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| bytes / 1e6 / seconds).collect()
}

fn beside_peers(
    session: &mut Session,
    figures: &Figures,
    (part, what): (&str, &str),
    peers: &[&str],
    most: f64,
) -> Result<(), Error> {
    let seconds = |name: &str| figures.all(&format!("{part}.{name}.seconds"));
    for name in &peers[1..] {
        let pair = (Series::new("terrace", seconds("terrace")?), Series::new(name, seconds(name)?));
        let target = (*name == "cp").then_some(Target::AtMost(most));
        session.record.add_against(&format!("{what}: beside {name}"), "s", pair, target)?;
    }
    Ok(())
}

/// Notes what bounded each copy: the disk, or the processor of the guest.
fn note_busy(
    session: &mut Session,
    figures: &Figures,
    part: &str,
    peers: &[&str],
) -> Result<(), Error> {
    for name in peers {
        let of = |figure: &str| figures.median(&format!("{part}.{name}.{figure}"));
        let (disk, processor) = (of("busy_s")? / of("seconds")?, of("processor")?);
        let (disk, processor) = ((100.0 * disk).round(), (100.0 * processor).round());
        session.record.note(format!(
            "{part}, {name}: the disk that was watched was busy for {disk} % of the time, the \
             guest's processor for {processor} %"
        ));
    }
    Ok(())
}

/// What the turns of the copies in a guest gave.
fn figures(session: &mut Session, copies: &GuestCopies) -> Result<Figures, Error> {
    run(session, copies)?;
    let results = guest::out(session).join("results");
    Figures::read(&fs::read_to_string(&results).map_err(Error::io("read", &results))?)
}

/// Runs the copies; what the guest left is in [`guest::out`] then.
pub(super) fn run(session: &mut Session, copies: &GuestCopies) -> Result<(), Error> {
    let command: Vec<&str> =
        ["bash"].into_iter().chain(copies.words.iter().map(String::as_str)).collect();
    let machine = GuestRun {
        disks: copies.disks,
        memory: copies.memory,
        timeout_s: TIMEOUT_S,
        packages: &PACKAGES,
        modules: &[],
        programs: &[],
        scripts: &SCRIPTS,
        then: None,
        command: &command,
    };
    guest::run(session, &machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_guest_are_one_series_for_each_name() {
        let figures = Figures::read("a.b 1\nc.d 2.5\na.b 3\n").unwrap();
        assert_eq!(figures.all("a.b").unwrap(), [1.0, 3.0]);
        assert!(figures.all("x").is_err());
        assert!(Figures::read("a.b one").is_err());
    }
}
