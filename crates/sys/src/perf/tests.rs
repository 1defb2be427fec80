//! Events of the real kernel, where this user may see them: each test makes something happen
//! that must leave records or counts behind.

use super::*;
use crate::clock::now_ns;

/// Events of this thread's processor; `None` (and the reason) where they are not to be had.
fn notices(processor: u32) -> Option<Event> {
    let mut attributes = Attributes::new(EventSource::Notices);
    attributes.switches = true;
    attributes.tasks = true;
    match Event::on_processor(&attributes, processor) {
        Ok(event) => Some(event),
        Err(error) => {
            testkit::skip(format!("kernel events: {error}"));
            None
        }
    }
}

#[test]
fn the_structure_has_the_size_that_the_kernel_knows() {
    assert_eq!(size_of::<RawAttributes>(), 112);
}

#[test]
fn a_sleep_is_a_switch_out_and_a_switch_in() {
    let processor = crate::affinity::allowed().unwrap()[0];
    let Some(event) = notices(u32::try_from(processor).unwrap()) else {
        return;
    };
    let mut ring = Ring::map(&event, 64).unwrap();
    event.enable().unwrap();
    let started = now_ns();
    let moving = std::thread::spawn(move || {
        crate::affinity::pin(processor).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::gettid() }.unsigned_abs()
    });
    let thread = moving.join().unwrap();
    event.disable().unwrap();
    let (mut outs, mut ins, mut exits, mut lost) = (0, 0, 0, 0);
    ring.drain(|record| match record {
        Record::Switch(switch) if switch.thread == thread => {
            assert!(switch.time_ns >= started, "the clock is another one");
            outs += u32::from(switch.is_out && !switch.is_preempted);
            ins += u32::from(!switch.is_out);
        }
        Record::Exit(task) if task.thread == thread => exits += 1,
        Record::Lost { count } => lost += count,
        _ => {}
    });
    if lost > 0 {
        return testkit::skip("a machine that is less busy: records were lost");
    }
    assert!(outs >= 1 && ins >= 1, "{outs} out, {ins} in");
    assert!(exits <= 1);
}

#[test]
fn faults_of_a_thread_are_counted() {
    let mut attributes = Attributes::new(EventSource::PageFaults);
    attributes.user_only = true;
    let event = match Event::on_thread(&attributes, 0) {
        Ok(event) => event,
        Err(error) => return testkit::skip(format!("kernel counts: {error}")),
    };
    event.enable().unwrap();
    let pages = crate::memory::Pages::Base;
    let mut memory = crate::memory::Mapping::anonymous(1 << 20, pages).unwrap();
    for page in memory.as_mut_slice().chunks_mut(crate::process::page_bytes()) {
        page[0] = 1;
    }
    let expected = (1 << 20) / crate::process::page_bytes() as u64;
    assert!(event.count().unwrap() >= expected);
}

#[test]
fn many_records_wrap_round_a_small_ring() {
    let processor = crate::affinity::allowed().unwrap()[0];
    let Some(event) = notices(u32::try_from(processor).unwrap()) else {
        return;
    };
    assert!(Ring::map(&event, 3).is_err(), "3 is no power of two");
    let mut ring = Ring::map(&event, 1).unwrap();
    event.enable().unwrap();
    let (mut records, mut odd) = (0, 0);
    for _ in 0..10 {
        // 20 sleeps are at least 40 switches, which fill most of a ring of one page; what
        // does not fit is lost, and then the ring was full. So 40 a round are certain.
        let sleeper = std::thread::spawn(move || {
            crate::affinity::pin(processor).unwrap();
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        sleeper.join().unwrap();
        ring.drain(|record| match record {
            Record::Other => odd += 1,
            _ => records += 1,
        });
    }
    assert!(records >= 400, "{records} records, {odd} others");
}
