//! The changes of one series, packed: a day of a hundred counters must fit in memory.
//!
//! The last changes are kept as they are. Each `BLOCK` changes before them are one run of
//! bytes: differences divided by their greatest common divisor, as LEB128 numbers, the
//! signed ones zigzag coded. Measured on counters of a busy machine: 1 to 5 bytes a change,
//! where a [`SeriesStep`] has 24.

use super::SeriesStep;

/// Changes of one packed block: so many are unpacked at most to find the value at a sample.
const BLOCK: usize = 64;

/// Samples of the block are not all consecutive, so each change has its distance.
const HAS_GAPS: u8 = 1;
/// Some values of the block are absent, so each change says whether it has a value.
const HAS_ABSENT: u8 = 2;

/// Changes in order of their sample.
#[derive(Clone, Default)]
pub struct Steps {
    blocks: Vec<Block>,
    packed_bytes: usize,
    /// The last changes, at most [`BLOCK`]; not empty unless all is.
    tail: Vec<SeriesStep>,
}

/// [`BLOCK`] changes.
#[derive(Clone, Debug)]
struct Block {
    /// The sample of the first of them.
    first: u32,
    bytes: Box<[u8]>,
}

impl Steps {
    /// Without a change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.tail.len()
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// The first change.
    #[must_use]
    pub fn first(&self) -> Option<SeriesStep> {
        self.iter().next()
    }

    /// The last change.
    #[must_use]
    pub fn last(&self) -> Option<SeriesStep> {
        self.tail.last().copied()
    }

    /// All changes.
    #[must_use]
    pub fn iter(&self) -> StepIter<'_> {
        self.at_block(0)
    }

    /// All changes but the first `count`.
    #[must_use]
    pub fn skip(&self, count: usize) -> StepIter<'_> {
        let block = (count / BLOCK).min(self.blocks.len());
        let mut rest = self.at_block(block);
        for _ in block * BLOCK..count {
            rest.next();
        }
        rest
    }

    /// The change that holds at `sample`, and all after it.
    #[must_use]
    pub fn split(&self, sample: u32) -> (Option<SeriesStep>, StepIter<'_>) {
        let tail = self.tail.partition_point(|step| step.sample <= sample);
        if let Some(held) = tail.checked_sub(1) {
            let after = StepIter { tail: self.tail[tail..].iter(), ..StepIter::default() };
            return (Some(self.tail[held]), after);
        }
        let after = self.blocks.partition_point(|block| block.first <= sample);
        let (mut held, mut rest) = (None, self.at_block(after.saturating_sub(1)));
        loop {
            let before = rest.clone();
            match rest.next() {
                Some(step) if step.sample <= sample => held = Some(step),
                _ => return (held, before),
            }
        }
    }

    /// Bytes of memory that it takes beside itself, at most.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // What an allocation takes beside its content.
        const ALLOCATION: usize = 16;
        self.packed_bytes
            + self.blocks.len() * (size_of::<Block>() + ALLOCATION)
            + self.tail.capacity() * size_of::<SeriesStep>()
    }

    /// Adds a change, after the last one.
    pub(super) fn push(&mut self, step: SeriesStep) {
        if self.tail.len() == BLOCK {
            self.pack_tail();
        }
        self.tail.push(step);
    }

    /// Takes the last change away.
    pub(super) fn pop(&mut self) -> Option<SeriesStep> {
        let last = self.tail.pop();
        if self.tail.is_empty()
            && let Some(block) = self.blocks.pop()
        {
            self.packed_bytes -= block.bytes.len();
            self.tail.extend(Unpacked::new(&block));
        }
        last
    }

    fn pack_tail(&mut self) {
        let bytes = pack(&self.tail);
        self.packed_bytes += bytes.len();
        self.blocks.push(Block { first: self.tail[0].sample, bytes });
        self.tail.clear();
    }

    fn at_block(&self, index: usize) -> StepIter<'_> {
        StepIter { current: None, blocks: self.blocks[index..].iter(), tail: self.tail.iter() }
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Self) -> bool {
        // The same changes are packed alike, unless some were taken away.
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Steps {}

impl FromIterator<SeriesStep> for Steps {
    fn from_iter<T: IntoIterator<Item = SeriesStep>>(steps: T) -> Self {
        let mut all = Self::default();
        steps.into_iter().for_each(|step| all.push(step));
        all
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = SeriesStep;
    type IntoIter = StepIter<'a>;

    fn into_iter(self) -> StepIter<'a> {
        self.iter()
    }
}

/// Changes, unpacked one after the other.
#[derive(Clone, Debug, Default)]
pub struct StepIter<'a> {
    current: Option<Unpacked<'a>>,
    blocks: std::slice::Iter<'a, Block>,
    tail: std::slice::Iter<'a, SeriesStep>,
}

impl Iterator for StepIter<'_> {
    type Item = SeriesStep;

    fn next(&mut self) -> Option<SeriesStep> {
        loop {
            if let Some(step) = self.current.as_mut().and_then(Iterator::next) {
                return Some(step);
            }
            self.current = match self.blocks.next() {
                Some(block) => Some(Unpacked::new(block)),
                None => return self.tail.next().copied(),
            };
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let current = self.current.as_ref().map_or(0, |block| block.left);
        let left = current + self.blocks.len() * BLOCK + self.tail.len();
        (left, Some(left))
    }
}

/// The changes of one block.
#[derive(Clone)]
struct Unpacked<'a> {
    rest: &'a [u8],
    left: usize,
    flags: u8,
    divisor: i64,
    /// The sample that the next one has at least.
    next: u32,
    value: i64,
}

impl<'a> Unpacked<'a> {
    fn new(block: &'a Block) -> Self {
        let (flags, rest) = block.bytes.split_first().unwrap_or((&0, &[]));
        let mut unpacked =
            Self { rest, left: BLOCK, flags: *flags, divisor: 1, next: block.first, value: 0 };
        unpacked.divisor = unpacked.number() as i64;
        unpacked.value = unpacked.signed();
        unpacked
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
            shift += 7;
        }
        value
    }

    fn signed(&mut self) -> i64 {
        let folded = self.number();
        (folded >> 1) as i64 ^ -((folded & 1) as i64)
    }
}

impl std::fmt::Debug for Unpacked<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} changes from sample {}", self.left, self.next)
    }
}

impl Iterator for Unpacked<'_> {
    type Item = SeriesStep;

    fn next(&mut self) -> Option<SeriesStep> {
        self.left = self.left.checked_sub(1)?;
        let gap = match self.flags & HAS_GAPS {
            0 => 0,
            _ => self.number() as u32,
        };
        let sample = self.next.wrapping_add(gap);
        self.next = sample.wrapping_add(1);
        if self.flags & HAS_ABSENT != 0 && self.number() == 0 {
            let value = None;
            return Some(SeriesStep { sample, value });
        }
        let difference = self.signed().wrapping_mul(self.divisor);
        self.value = self.value.wrapping_add(difference);
        let value = Some(self.value);
        Some(SeriesStep { sample, value })
    }
}

/// Packs a block: its flags, the divisor, the first value that is there, then for each change
/// the distance to the one before, whether it has a value, and the difference.
fn pack(steps: &[SeriesStep]) -> Box<[u8]> {
    let has_gaps = steps.windows(2).any(|pair| pair[1].sample.wrapping_sub(pair[0].sample) != 1);
    let has_absent = steps.iter().any(|step| step.value.is_none());
    let base = steps.iter().find_map(|step| step.value).unwrap_or(0);
    let mut last = base;
    let mut divisor = 0;
    for value in steps.iter().filter_map(|step| step.value) {
        let difference = value.wrapping_sub(last);
        last = value;
        divisor = common_divisor(difference.unsigned_abs(), divisor);
    }
    let divisor = divisor.max(1);
    let mut out = Vec::with_capacity(BLOCK * 4);
    let (gaps, absent) = (u8::from(has_gaps), u8::from(has_absent));
    out.push((gaps * HAS_GAPS) | (absent * HAS_ABSENT));
    put(&mut out, divisor);
    put_signed(&mut out, base);
    let mut next = steps.first().map_or(0, |step| step.sample);
    last = base;
    for SeriesStep { sample, value } in steps {
        if has_gaps {
            put(&mut out, u64::from(sample.wrapping_sub(next)));
        }
        next = sample.wrapping_add(1);
        if has_absent {
            put(&mut out, u64::from(value.is_some()));
        }
        if let Some(value) = value {
            let difference = value.wrapping_sub(last);
            put_signed(&mut out, difference.wrapping_div(divisor as i64));
            last = *value;
        }
    }
    out.into_boxed_slice()
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Euclid's; 0 divides nothing and is divided by all.
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    // One step is enough while the divisor holds, which is nearly always.
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Option<i64>> {
        prop_oneof![
            Just(None),
            any::<i64>().prop_map(Some),
            (0..200i64).prop_map(|ticks| Some(ticks * 10_000_000)),
            prop::sample::select(vec![i64::MIN, i64::MAX, 0]).prop_map(Some),
        ]
    }

    proptest! {
        #[test]
        fn every_change_comes_back(
            gaps in prop::collection::vec((1..4u32, value()), 0..400),
            consecutive in any::<bool>(),
        ) {
            let mut sample = 0;
            let plain: Vec<SeriesStep> = gaps.into_iter().map(|(gap, value)| {
                sample += if consecutive { 1 } else { gap };
                SeriesStep { sample, value }
            }).collect();
            let mut steps: Steps = plain.iter().copied().collect();
            prop_assert!(steps.iter().eq(plain.iter().copied()));
            prop_assert_eq!(steps.iter().size_hint().0, plain.len());
            for at in 0..sample + 2 {
                let after = plain.partition_point(|step| step.sample <= at);
                let (held, rest) = steps.split(at);
                prop_assert_eq!(held, plain[..after].last().copied());
                prop_assert!(rest.eq(plain[after..].iter().copied()), "{}", at);
            }
            for count in 0..plain.len() + 2 {
                let rest = plain[count.min(plain.len())..].iter().copied();
                prop_assert!(steps.skip(count).eq(rest), "{}", count);
            }
            for left in (0..plain.len()).rev() {
                prop_assert_eq!(steps.pop(), Some(plain[left]));
                prop_assert_eq!((steps.len(), steps.last()), (left, plain[..left].last().copied()));
            }
            prop_assert_eq!(steps.bytes(), steps.tail.capacity() * size_of::<SeriesStep>());
        }
    }

    #[test]
    fn a_busy_counter_takes_few_bytes() {
        let counter = |number: u32| SeriesStep {
            sample: number,
            value: Some(i64::from(number) * 70_000_000 + i64::from(number % 7) * 10_000_000),
        };
        let steps: Steps = (0..100_000).map(counter).collect();
        assert!(steps.bytes() < 200_000, "{}", steps.bytes());
    }
}
