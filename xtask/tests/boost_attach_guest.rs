//! The flash cache of `terrace boost attach` in guests: its stick is pulled out under a verified
//! load and put in again, nearly all memory is taken, the power fails amid writes; and `boost
//! install` under systemd, with a next boot that has no stick at first.
//!
//! After each, the whole disk is read through the cache and past it: no piece may differ. Counts
//! and shares are judged, no times. Skipped as `vm.rs` is, and the last without
//! `cargo xtask vm --build --systemd`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use support::Found;

const SCRIPTS: [(&str, &str); 7] = [
    support::UNTIL,
    ("blocks.py", include_str!("boost_attach_guest/blocks.py")),
    ("lib.sh", include_str!("boost_attach_guest/lib.sh")),
    ("first.sh", include_str!("boost_attach_guest/first.sh")),
    ("second.sh", include_str!("boost_attach_guest/second.sh")),
    ("units.sh", include_str!("boost_attach_guest/units.sh")),
    ("installed.sh", include_str!("boost_attach_guest/installed.sh")),
];
/// A disk with a head, but a quick one, so that a test ends soon.
const DISK: &str = "24M,model=hdd,seek_min_ms=0.1,seek_max_ms=1,turn_ms=1";
/// Pieces of it.
const PIECES: f64 = 1536.0;
const STICK: &str = "64M,model=usb,write_ms=0.2,jump_write_ms=0.2,write_bps=40000000";
/// No request may take so long, also while the stick goes.
const LONGEST_S: f64 = 30.0;
/// Skewed requests whose hits are counted.
const REQUESTS: f64 = 300.0;

impl Found {
    /// Of a verified load.
    #[track_caller]
    fn is_without_errors(&self, name: &str) {
        for load in ["read", "write"] {
            let of = |what: &str| format!("{name}.{load}.{what}");
            self.is_above(&of("requests"), 200.0);
            self.is(&of("errors"), "0");
            self.is(&of("wrong"), "0");
            assert!(self.number(&of("longest")) < LONGEST_S, "{name}: {:#?}", self.0);
        }
    }

    /// Of a disk that was read through its cache and past it.
    #[track_caller]
    fn is_fresh(&self, name: &str, comparisons: usize) {
        let all = |value: &str| vec![value; comparisons].join(" ");
        self.is(&format!("{name}.compared.differ"), &all("0"));
        self.is(&format!("{name}.compared.pieces"), &all(&PIECES.to_string()));
        self.is(&format!("{name}.proved"), &all("1"));
        let counts = &self.0[&format!("{name}.compared.hits")];
        let hits: Vec<f64> = counts.split(' ').map(|hits| hits.parse().unwrap()).collect();
        // Else nothing was compared but the disk with itself.
        assert!(hits.iter().all(|hits| *hits > 50.0), "{name}: {:#?}", self.0);
    }
}

#[test]
fn a_pull_and_a_power_cut_cost_no_byte_and_the_cache_stays_warm() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let disks = [
        format!("one:{DISK},cache=volatile"),
        format!("two:{DISK},cache=volatile"),
        format!("stick:{STICK},bus=usb,cache=volatile"),
        "state:32M,cache=volatile".to_owned(),
    ];
    let (found, complained) =
        found_in_a_guest(&disks, &["--then", "bash second.sh", "--", "bash first.sh"]);
    assert!(complained.contains("power cut"), "{complained}");
    // The stick is pulled out: reads go to the disk, and to the stick again when it is back.
    found.is("one.off.hits", "0");
    found.is_above("one.on.hits", 149.0);
    found.is_without_errors("one");
    // With nearly all memory taken the service went on.
    assert!(found.number("one.short.mib") < 32.0, "{:#?}", found.0);
    found.is("one.short.service", "same");
    // Once before the cut, after a clean end; once at the next boot, where it is warm.
    found.is_fresh("one", 2);
    found.is("one.start", "cold: the cache is new warm: what is proved fresh is served");
    // The power fails amid writes: most of what was warm still is.
    let (before, after) = (found.number("two.hits"), found.number("two.cut.hits"));
    assert!(before > REQUESTS * 0.6 && after > before * 0.5, "{before} {after}: {:#?}", found.0);
    found.is("two.start", "cold: the cache is new warm: what is proved fresh is served");
    found.is("two.checked", "0");
    found.is_fresh("two", 1);
}

#[test]
fn units_serve_the_cache_at_each_boot_and_a_poweroff_keeps_it_warm() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let disks = [format!("disk:{DISK}"), format!("stick:{STICK}"), "state:64M".to_owned()];
    let options = ["--systemd", "--before", "bash units.sh", "--then", "bash installed.sh"];
    let (found, _) =
        found_in_a_guest(&disks, &[&options[..], &["--", "bash installed.sh"]].concat());
    for boot in ["first", "second"] {
        found.is(&format!("{boot}.service"), "active");
        found.is(&format!("{boot}.mount"), "active");
        let from = &found.0[&format!("{boot}.from")];
        let (source, device) = from.split_once(' ').unwrap();
        assert!(source == device && source.starts_with("/dev/loop"), "{:#?}", found.0);
    }
    // Without the stick it is served from the disk, and warm when it comes.
    assert!(found.0["second.off"].contains("is looked for"), "{:#?}", found.0);
    found.is("second.on", "null");
    found.is("second.cold", "null");
    found.is_above("second.hits", REQUESTS * 0.5);
    found.is("second.late", "late");
    // Unmounted first, then proved, at the poweroff too.
    found.is("second.ended", "success success");
    found.is("second.unmounted", "0");
    found.is("second.gone", "1");
    found.is("second.checked", "0");
}

/// What both boots say, by name, and their standard error.
fn found_in_a_guest(disks: &[String], rest: &[&str]) -> (Found, String) {
    let disks = disks.iter().map(|disk| format!("--disk={disk}")).collect::<Vec<_>>();
    let usual = ["--module", "fuse", "--module", "loop", "--mem", "512M", "--timeout", "900"];
    let words = disks.iter().map(String::as_str).chain(usual).chain(rest.iter().copied());
    support::run_guest(&SCRIPTS, &words.collect::<Vec<_>>())
}
