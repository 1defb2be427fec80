//! Lazily backed memory that only huge pages show: a guest whose small pages are
//! recycled (and so backed), while its free 2 MiB blocks were reported to the host.
//! Recorded on a KVM guest: 48 huge faults on new memory, 48 again.

use explain::observed::{FaultKind, FaultsSeen, Observed};

use model::histogram::Modes;

fn recorded() -> FaultsSeen {
    FaultsSeen {
        base: Some(FaultKind {
            page_bytes: 4096,
            faults: 24_576,
            p50_ns: Some(1312.0),
            p99_ns: Some(5539.0),
            // Every thirtieth fault refills the processor's list of free pages.
            modes: Some(Modes {
                fast_ns: 1302.0,
                slow_ns: 4719.0,
                slow_share: 0.033,
                valley_ns: 2896.0,
            }),
            bytes_per_s: 2.59e9,
        }),
        huge: Some(FaultKind {
            page_bytes: 2 << 20,
            faults: 48,
            p50_ns: Some(5_373_951.0),
            p99_ns: None,
            modes: Some(Modes {
                fast_ns: 86_975.0,
                slow_ns: 5_410_815.0,
                slow_share: 0.979,
                valley_ns: 92_681.0,
            }),
            bytes_per_s: 0.42e9,
        }),
        again_ns: Some(1402.0),
        huge_again_ns: Some(85_119.0),
        recooled: None,
        virtualized: true,
    }
}

fn fires(faults: FaultsSeen) -> Option<String> {
    let observed = Observed { faults: Some(faults), ..Observed::default() };
    let found = explain::survey(&observed).findings;
    found.into_iter().find(|f| f.id == "memory_backed_lazily").map(|f| f.claim)
}

#[test]
fn huge_pages_alone_show_it() {
    let claim = fires(recorded()).unwrap();
    assert!(claim.contains("5.41 ms") && claim.contains("97.9 %"), "{claim}");
}

#[test]
fn huge_pages_as_slow_when_touched_again_are_not_the_hosts_doing() {
    let mut faults = recorded();
    faults.huge_again_ns = Some(5_000_000.0);
    assert_eq!(fires(faults), None);
}

#[test]
fn a_handful_of_huge_pages_proves_nothing() {
    let mut faults = recorded();
    faults.huge.as_mut().unwrap().faults = 15;
    assert_eq!(fires(faults), None);
}
