//! Shortages that come and go, second by second, and what the watch decides. Some are written down,
//! and others are drawn at random and judged by what must hold of any decision.

use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const PAGES_OF_MIB: u64 = MIB / 4096;
const FLOOR: Bytes = Bytes(64 * MIB);
const QUIET: Duration = Duration::from_secs(10);
const SETTINGS: WatchSettings = WatchSettings { quiet: QUIET, floor: FLOOR, most: None };

/// A machine whose seconds are sampled.
struct Machine {
    watch: ShortageWatch,
    now: MemorySample,
}

impl Machine {
    /// With `in_swap` MiB in swap and plenty available.
    fn new(in_swap: u64) -> Self {
        let now = MemorySample {
            available: Bytes(1024 * MIB),
            in_swap: Bytes(in_swap * MIB),
            stalled_us: Some(0),
            ..MemorySample::default()
        };
        Self { watch: ShortageWatch::start(SETTINGS, now), now }
    }

    /// The decision after one more second.
    fn second(&mut self) -> WatchDecision {
        self.now.time += Duration::from_secs(1);
        self.watch.next(self.now)
    }

    /// The first decision other than to wait, and the seconds until then; none in `most` seconds.
    fn until_decided(&mut self, most: u64) -> Option<(u64, WatchDecision)> {
        let decided = |second| (second, self.second());
        (1..=most).map(decided).find(|(_, decision)| *decision != WatchDecision::Wait)
    }

    /// So much is written to swap and leaves RAM.
    fn evict(&mut self, mib: u64) {
        self.now.evicted_pages += mib * PAGES_OF_MIB;
        self.now.in_swap.0 += mib * MIB;
    }

    /// A restore ends; so much is in swap after it, and so much it did not come to.
    fn restored(&mut self, stop: StopReason, in_swap: u64, unread: u64) {
        self.now.time += Duration::from_secs(1);
        self.now.in_swap = Bytes(in_swap * MIB);
        self.watch.restored(RestoreEnd { stop, unread: Bytes(unread * MIB) }, self.now);
    }

    /// A shortage that leaves so much more in swap, until its restore is due.
    fn shortage_until_due(&mut self, mib: u64) -> u64 {
        self.evict(mib);
        assert!(matches!(self.second(), WatchDecision::ShortageBegan(_)));
        let (after, decision) = self.until_decided(700).unwrap();
        assert_eq!(decision, WatchDecision::Restore(Bytes(mib * MIB)));
        after
    }
}

#[test]
fn after_a_shortage_and_the_quiet_time_there_is_one_restore() {
    let mut machine = Machine::new(0);
    assert_eq!(machine.until_decided(100), None, "nothing was ever short");
    machine.evict(100);
    let signs = ShortageSigns {
        evicted_pages: 100 * PAGES_OF_MIB,
        available: machine.now.available,
        ..ShortageSigns::default()
    };
    assert_eq!(machine.second(), WatchDecision::ShortageBegan(signs));
    // It goes on for a while, with a pause that is shorter than the quiet time.
    for _ in 0..5 {
        assert_eq!(machine.until_decided(8), None);
        machine.evict(1);
    }
    let restore = WatchDecision::Restore(Bytes(105 * MIB));
    assert_eq!(machine.until_decided(100), Some((11, restore)), "the first second is short");
    machine.restored(StopReason::Done, 1, 0);
    assert_eq!(machine.until_decided(1000), None);
}

#[test]
fn what_was_in_swap_at_the_start_or_stayed_there_is_no_reason() {
    let mut machine = Machine::new(500);
    machine.evict(15);
    machine.second();
    assert_eq!(machine.until_decided(100), Some((10, WatchDecision::LittleInSwap)));
    assert_eq!(machine.until_decided(100), None, "said once");
    // Two small shortages are one large one.
    machine.evict(1);
    machine.second();
    assert_eq!(machine.until_decided(100), Some((10, WatchDecision::Restore(WORTH_RESTORING))));
    machine.restored(StopReason::Done, 300, 0);
    assert_eq!(machine.until_decided(100), None);
    machine.evict(15);
    machine.second();
    assert_eq!(machine.until_decided(100), Some((10, WatchDecision::LittleInSwap)));
    // What was left has ended meanwhile: what comes then is new.
    machine.now.in_swap = Bytes(0);
    machine.second();
    machine.evict(20);
    machine.second();
    let restore = WatchDecision::Restore(Bytes(20 * MIB));
    assert_eq!(machine.until_decided(100).unwrap().1, restore);
}

#[test]
fn every_sign_begins_a_shortage_and_stalls_on_swap_alone_do_not() {
    type Sign = fn(&mut MemorySample);
    let signs: [(Sign, bool); 5] = [
        (|now| now.evicted_pages += 1, true),
        (|now| now.direct_reclaims += 1, true),
        (|now| (now.stalled_us, now.scanned_pages) = (Some(200_000), 1), true),
        (|now| (now.stalled_us, now.scanned_pages) = (Some(90_000), 1), false),
        (|now| now.stalled_us = Some(900_000), false),
    ];
    for (index, (sign, is_short)) in signs.into_iter().enumerate() {
        let mut machine = Machine::new(0);
        sign(&mut machine.now);
        let began = matches!(machine.second(), WatchDecision::ShortageBegan(_));
        assert_eq!(began, is_short, "sign {index}");
    }
}

#[test]
fn without_room_it_waits_until_there_is_some() {
    let mut machine = Machine::new(0);
    machine.now.available = Bytes(FLOOR.0 + 99 * MIB);
    machine.evict(100);
    machine.second();
    let no_room = WatchDecision::NoRoom {
        needed: Bytes(FLOOR.0 + 100 * MIB),
        available: machine.now.available,
    };
    assert_eq!(machine.until_decided(100), Some((10, no_room)));
    assert_eq!(machine.until_decided(1000), None, "said once");
    machine.now.available.0 += MIB;
    assert_eq!(machine.second(), WatchDecision::Restore(Bytes(100 * MIB)));
}

#[test]
fn a_limit_of_bytes_needs_only_so_much_room() {
    let mut machine = Machine::new(0);
    let settings = WatchSettings { most: Some(Bytes(8 * MIB)), ..SETTINGS };
    machine.watch = ShortageWatch::start(settings, machine.now);
    machine.now.available = Bytes(FLOOR.0 + 8 * MIB);
    machine.shortage_until_due(100);
    // The limit left the rest there: it is no reason for another restore.
    machine.restored(StopReason::Budget, 92, 92);
    assert_eq!(machine.until_decided(1000), None);
    machine.shortage_until_due(16);
}

#[test]
fn a_restore_that_memory_ended_is_a_shortage_and_what_it_did_not_read_comes_later() {
    for stop in [StopReason::Floor, StopReason::Pressure] {
        let mut machine = Machine::new(0);
        machine.shortage_until_due(100);
        machine.now.available = FLOOR;
        machine.restored(stop, 70, 60);
        let (second, decision) = machine.until_decided(1000).unwrap();
        assert_eq!(second, 20, "the quiet time is twice as long");
        assert!(matches!(decision, WatchDecision::NoRoom { .. }), "{decision:?}");
        machine.now.available = Bytes(1024 * MIB);
        assert_eq!(machine.second(), WatchDecision::Restore(Bytes(60 * MIB)));
    }
}

#[test]
fn what_was_read_and_did_not_stay_is_not_read_again() {
    let mut machine = Machine::new(0);
    machine.shortage_until_due(100);
    machine.restored(StopReason::Yield, 90, 50);
    assert_eq!(machine.until_decided(1000), None);
    assert_eq!(machine.shortage_until_due(16), 20, "the quiet time is twice as long");
}

#[test]
fn restores_in_vain_lengthen_the_quiet_time_and_a_good_one_resets_it() {
    let mut machine = Machine::new(0);
    let mut waits = Vec::new();
    for _ in 0..9 {
        waits.push(machine.shortage_until_due(20));
        machine.restored(StopReason::Done, 0, 0);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
    // The last one stays for a minute.
    assert_eq!(machine.until_decided(PROVING_TIME.as_secs()), None);
    assert_eq!(machine.watch.quiet(), QUIET);
    assert_eq!(machine.shortage_until_due(20), 10);
    // One that was asked for is not cut short.
    let settings = WatchSettings { quiet: Duration::from_secs(900), ..SETTINGS };
    machine.watch = ShortageWatch::start(settings, MemorySample::default());
    machine.watch.restored(
        RestoreEnd { stop: StopReason::Yield, unread: Bytes(0) },
        MemorySample::default(),
    );
    assert_eq!(machine.watch.quiet(), Duration::from_secs(900));
}

#[test]
fn what_a_report_did_not_come_to_is_unread() {
    use crate::workingset::restore::RestoredSource;
    let part = |kind, bytes| RestoredSource {
        kind,
        source: String::new(),
        method: None,
        bytes,
        present_pages: 0,
        pages: 0,
        gone_pages: 0,
        elapsed_ns: 0,
        avoided_faults: 0,
        avoided_ns: None,
    };
    let report = RestoreReport {
        stop: StopReason::Pressure,
        parts: vec![
            part(MemoryKind::Anonymous, 30),
            part(MemoryKind::Shared, 20),
            part(MemoryKind::File, 500),
        ],
        elapsed_ns: 0,
        paused_ns: 0,
        notes: Vec::new(),
    };
    let end = RestoreEnd::of(Bytes(80), &report);
    assert_eq!(end, RestoreEnd { stop: StopReason::Pressure, unread: Bytes(30) });
    assert_eq!(RestoreEnd::of(Bytes(40), &report).unread, Bytes(0));
}

/// What happens in a second.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    Evicted(u64),
    Reclaimed,
    Stalled,
    /// So many MiB leave swap by themselves.
    Returned(u64),
    Available(u64),
    /// The machine stood still for so many seconds.
    Gap(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => Just(Event::Nothing),
        2 => (0..60u64).prop_map(Event::Evicted),
        1 => Just(Event::Reclaimed),
        1 => Just(Event::Stalled),
        1 => (0..60u64).prop_map(Event::Returned),
        1 => (0..400u64).prop_map(Event::Available),
        1 => (0..40u64).prop_map(Event::Gap),
    ]
}

fn end() -> impl Strategy<Value = (StopReason, u64)> {
    let stop = prop_oneof![
        4 => Just(StopReason::Done),
        1 => Just(StopReason::Floor),
        1 => Just(StopReason::Pressure),
        1 => Just(StopReason::Yield),
        1 => Just(StopReason::Budget),
        1 => Just(StopReason::SourceGone),
    ];
    (stop, 0..100u64)
}

/// What a decision may rest on, kept by other means than the watch's: all signs by their time.
#[derive(Default)]
struct Witness {
    signs: Vec<Duration>,
    restores: Vec<Duration>,
}

impl Machine {
    /// Whether memory was short in that second.
    fn happens(&mut self, event: Event) -> bool {
        let now = &mut self.now;
        match event {
            Event::Nothing => {}
            Event::Evicted(mib) => self.evict(mib),
            Event::Reclaimed => now.direct_reclaims += 1,
            Event::Stalled => {
                now.stalled_us = now.stalled_us.map(|us| us + 500_000);
                now.scanned_pages += 1;
            }
            Event::Returned(mib) => now.in_swap.0 = now.in_swap.0.saturating_sub(mib * MIB),
            Event::Available(mib) => now.available = Bytes(mib * MIB),
            Event::Gap(seconds) => now.time += Duration::from_secs(seconds),
        }
        match event {
            Event::Evicted(mib) => mib > 0,
            event => matches!(event, Event::Reclaimed | Event::Stalled),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Never twice without a new shortage, never while memory is short or before it was not for the
    /// quiet time, never without room, never for little.
    #[test]
    fn a_restore_follows_a_shortage_that_is_over(
        events in prop::collection::vec(event(), 1..400),
        ends in prop::collection::vec(end(), 1..8),
        at_start in 0..100u64,
    ) {
        let mut machine = Machine::new(at_start);
        let mut witness = Witness::default();
        for event in events {
            let is_short = machine.happens(event);
            let decision = machine.second();
            let now = machine.now;
            if is_short {
                witness.signs.push(now.time);
            }
            let WatchDecision::Restore(bytes) = decision else { continue };
            prop_assert!(!is_short);
            let last_sign = witness.signs.last().copied();
            prop_assert!(last_sign.is_some_and(|sign| now.time - sign >= QUIET));
            prop_assert!(last_sign > witness.restores.last().copied());
            prop_assert!(bytes >= WORTH_RESTORING && bytes <= now.in_swap);
            prop_assert!(now.available.0 >= FLOOR.0 + bytes.0);
            witness.restores.push(now.time);
            // It reads for a while; what it did not come to and more may stay.
            let (stop, share) = ends[witness.restores.len() % ends.len()];
            let stays = now.in_swap.0 / MIB * share / 100;
            machine.restored(stop, stays, stays / 2);
            if matches!(stop, StopReason::Floor | StopReason::Pressure) {
                witness.signs.push(machine.now.time);
            }
        }
    }
}
