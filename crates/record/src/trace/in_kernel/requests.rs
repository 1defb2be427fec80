//! Reads and writes of block devices by process: those of the first processes of each second have
//! a row, the rest are among the others of their device and direction.

use super::objects::{USER_BYTES, USER_KEY_BYTES, number, word};
use super::who::Processes;
use crate::device_number;
use crate::trace::block::CLASS_COUNT;
use model::recording::{RequestRow, Who};

/// The first so many of a second have rows: three for each of several busy devices.
const FIRST: usize = 12;

const _: () = assert!(CLASS_COUNT == RequestRow::CLASSES);

/// Requests since the last rows; `process` is the kernel's number until they are written.
#[derive(Debug, Default)]
pub struct DeviceUsers {
    done: Vec<RequestRow>,
    from_ns: u64,
}

impl DeviceUsers {
    /// Takes one entry of the kernel's table.
    pub fn take(&mut self, key: &[u8; USER_KEY_BYTES], value: &[u8; USER_BYTES]) {
        let (Some(device), Some(direction), Some(process)) =
            (number(key, 0), number(key, 4), number(key, 8))
        else {
            return;
        };
        let word = |index: usize| word(value, 8 * index).unwrap_or_default();
        self.done.push(RequestRow {
            process,
            device: device_number::split(device),
            is_write: direction != 0,
            requests: word(0),
            bytes: word(1),
            latency_ns: word(2),
            classes: std::array::from_fn(|class| word(3 + class)),
            ..RequestRow::default()
        });
    }

    /// Writes the rows of this second.
    pub fn write(&mut self, processes: &mut Processes, caller_ns: u64, who: &mut Who) {
        let to_ns = caller_ns / 1000 * 1000;
        let from_ns = std::mem::replace(&mut self.from_ns, to_ns).min(to_ns);
        let mut done = std::mem::take(&mut self.done);
        done.retain(|row| row.requests > 0);
        done.sort_unstable_by_key(|row| (std::cmp::Reverse(row.latency_ns), row.process));
        let mut rows: Vec<RequestRow> = Vec::new();
        for (number, row) in done.into_iter().enumerate() {
            let pid = if number < FIRST { row.process } else { 0 };
            let process = processes.id_of(pid, who);
            let row = RequestRow { process, from_ns, to_ns, ..row };
            let key = |row: &RequestRow| (row.process, row.device, row.is_write);
            match rows.iter_mut().find(|known| key(known) == key(&row)) {
                Some(known) => add(known, &row),
                None => rows.push(row),
            }
        }
        who.requests.append(&mut rows);
    }
}

fn add(sum: &mut RequestRow, more: &RequestRow) {
    sum.requests += more.requests;
    sum.bytes += more.bytes;
    sum.latency_ns += more.latency_ns;
    for (sum, more) in sum.classes.iter_mut().zip(&more.classes) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::in_kernel::objects::ThreadRecord;

    #[test]
    fn all_requests_are_in_a_row_or_among_the_others() {
        let mut requests = DeviceUsers::default();
        for process in 1..=40u32 {
            let mut key = [0; USER_KEY_BYTES];
            key[..4].copy_from_slice(&device_number::joined((254, 0)).to_ne_bytes());
            key[8..].copy_from_slice(&process.to_ne_bytes());
            let mut value = [0; USER_BYTES];
            for (index, number) in [2u64, 8192, 300_000, 0, 2].into_iter().enumerate() {
                value[8 * index..8 * index + 8].copy_from_slice(&number.to_ne_bytes());
            }
            requests.take(&key, &value);
        }
        let (mut processes, mut who) = (Processes::default(), Who::default());
        for process in 1..=40 {
            processes.take(&ThreadRecord { process, ..ThreadRecord::default() }, 0);
        }
        requests.write(&mut processes, 1_000_000_000, &mut who);
        let is_named = |row: &&RequestRow| who.processes[row.process as usize].pid > 0;
        assert_eq!(who.requests.iter().filter(is_named).count(), FIRST);
        let row = who.requests.iter().find(|row| !is_named(row)).unwrap();
        let others = 40 - FIRST as u64;
        assert_eq!((row.device, row.is_write, row.requests), ((254, 0), false, 2 * others));
        assert_eq!((row.bytes, row.latency_ns), (others * 8192, others * 300_000));
        assert_eq!(row.classes[1], 2 * others);
    }
}
