//! Whose requests a device served, and how fast, in one sentence: `Requests: postgres (pid 12)
//! 12,000 reads of vda, median 0.4 ms, 99 % under 4.1 ms`.

use super::sums::{RequestSum, request_sums};
use crate::recording::View;
use crate::wording::count;
use model::duration::show_ns;
use model::recording::{Process, RequestRow};
use std::cmp::Reverse;

/// So many are named.
const MOST_NAMED: usize = 3;

/// Who has less than this share of all time from issue to completion is not named. Picked, as a
/// finding's.
const LEAST_SHARE: f64 = 0.05;

/// A quantile of fewer requests says nothing.
const LEAST_REQUESTS: u64 = 100;

/// The first users by the time that their requests took; empty if no requests were recorded.
pub fn of_first(view: &View, is_write: bool) -> String {
    let who = &view.recording().who;
    let (from_ns, to_ns) = view.row_bounds();
    let mut sums = request_sums(who, from_ns, to_ns);
    sums.retain(|sum| sum.is_write == is_write && sum.requests.value > 0);
    let all_ns = sums.iter().fold(0u64, |all, one| all.saturating_add(one.latency_ns.value));
    sums.sort_by_key(|sum| (Reverse(sum.latency_ns.value), sum.process, sum.device));
    let is_much = |sum: &&RequestSum| sum.latency_ns.value as f64 >= all_ns as f64 * LEAST_SHARE;
    let noun = if is_write { "writes" } else { "reads" };
    let first = sums.iter().filter(is_much).take(MOST_NAMED).filter_map(|sum| {
        let process = who.processes.get(sum.process as usize)?;
        let device = device_name(view, sum.device);
        let requests = count(sum.requests.value);
        Some(format!("{} {requests} {noun} of {device}{}", label(process), latency(sum)))
    });
    let named: Vec<String> = first.collect();
    if named.is_empty() { String::new() } else { format!("Requests: {}", named.join("; ")) }
}

fn label(process: &Process) -> String {
    match process {
        Process { is_kernel: true, name, .. } => format!("kernel thread {name}"),
        Process { pid: 0, name, .. } => name.clone(),
        Process { pid, name, .. } => format!("{name} (pid {pid})"),
    }
}

fn device_name(view: &View, (major, minor): (u32, u32)) -> String {
    let number = format!("{major}:{minor}");
    let known = view.facts().devices.iter().find(|device| device.number == number);
    known.map_or(number, |device| device.name.clone())
}

/// `, median 0.4 ms, 99 % under 4.1 ms`; of few requests the mean.
fn latency(sum: &RequestSum) -> String {
    let requests = sum.requests.value;
    if requests < LEAST_REQUESTS {
        let mean = sum.latency_ns.value as f64 / requests.max(1) as f64;
        return format!(", {} on average", show_ns(mean));
    }
    let mut text = String::new();
    if let Some(median) = median_ns(sum) {
        text.push_str(&format!(", median {}", show_ns(median)));
    }
    if let Some(limit) = limit_ns(sum, 0.99) {
        text.push_str(&format!(", 99 % under {}", show_ns(limit as f64)));
    }
    text
}

/// The bound of the class in which this share of all requests is reached.
fn limit_ns(sum: &RequestSum, share: f64) -> Option<u64> {
    let rank = sum.requests.value as f64 * share;
    let mut upto = 0u64;
    for (class, count) in sum.classes.iter().enumerate() {
        upto = upto.saturating_add(count.value);
        if upto as f64 >= rank {
            return Some(RequestRow::class_limit_ns(class));
        }
    }
    None
}

/// The median, interpolated inside of its class.
fn median_ns(sum: &RequestSum) -> Option<f64> {
    let half = sum.requests.value as f64 / 2.0;
    let mut below = 0u64;
    for (class, count) in sum.classes.iter().enumerate() {
        let upto = below.saturating_add(count.value);
        if count.value > 0 && upto as f64 >= half {
            let into = ((half - below as f64) / count.value as f64).clamp(0.0, 1.0);
            let high = RequestRow::class_limit_ns(class) as f64;
            let low = if class == 0 { 0.0 } else { high / 2.0 };
            return Some(low + (high - low) * into);
        }
        below = upto;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::who::sums::SharedSum;

    fn sum(classes: &[(usize, u64)]) -> RequestSum {
        let mut sum = RequestSum::default();
        for (class, count) in classes {
            sum.classes[*class] = SharedSum { value: *count, shared: 0 };
            sum.requests.value += count;
        }
        sum
    }

    #[test]
    fn quantiles_are_those_of_the_classes() {
        // 900 of at most 256 us, 95 of at most 2 ms, 5 of at most 8 ms.
        let sum = sum(&[(4, 900), (7, 95), (9, 5)]);
        assert_eq!(limit_ns(&sum, 0.99), Some(16_000 << 7));
        let median = median_ns(&sum).unwrap();
        assert!((median - 128_000.0 * (1.0 + 500.0 / 900.0)).abs() < 1.0, "{median}");
        assert_eq!(latency(&sum), ", median 199 us, 99 % under 2.05 ms");
    }

    #[test]
    fn requests_slower_than_the_last_class_leave_no_bound() {
        let mut slow = sum(&[(0, 100)]);
        slow.requests.value = 1000;
        assert_eq!((limit_ns(&slow, 0.99), median_ns(&slow)), (None, None));
    }
}
