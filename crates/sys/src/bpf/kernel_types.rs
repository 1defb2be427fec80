//! The kernel's description of its own types (BTF), reduced to those that a few programs read.
//!
//! All of it is 100,000 types and more, which a loader takes 50 ms to read and to search. Kept is
//! what is named, with what is embedded in it; not what pointers lead to. Types are known by their
//! place in the list, from 1 on. What is kept gets new places; the kernel's own ones, by which it
//! knows what a program is attached to, follow behind the list.

use aya_obj::btf::{Btf, BtfKind};
use std::collections::HashMap;

/// Which form [`reduce`] gives; another one is not to be read as this.
pub(super) const FORM: u32 = 2;

/// The kernel's types that were kept.
#[derive(Debug)]
pub(super) struct KernelTypes {
    pub(super) btf: Btf,
    /// By place, the place in the kernel's own list.
    places: Vec<u32>,
}

impl KernelTypes {
    /// Reads what [`reduce`] gave; `None` for anything else.
    pub(super) fn read(reduced: &[u8]) -> Option<Self> {
        let strings = (word(reduced, 16)? as usize).checked_add(word(reduced, 20)? as usize)?;
        let (btf, places) = reduced.split_at_checked(strings.checked_add(HEADER_BYTES)?)?;
        let btf = Btf::parse(btf, aya::Endianness::default()).ok()?;
        let places = places.chunks_exact(4).filter_map(|place| word(place, 0)).collect();
        Some(Self { btf, places })
    }

    /// The place of a type in the kernel's own list.
    pub(super) fn place_in_kernel(&self, name: &str, kind: BtfKind) -> Option<u32> {
        let place = self.btf.id_by_type_name_kind(name, kind).ok()?;
        self.places.get((place as usize).checked_sub(1)?).copied()
    }
}

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 12;

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const FLOAT: u32 = 16;
const TAG_OF: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM_64: u32 = 19;

/// Where one type is.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    end: usize,
}

/// Reduces `btf` to the types called one of `wanted`; `None` for one of another form.
pub(super) fn reduce(btf: &[u8], wanted: &[&str]) -> Option<Vec<u8>> {
    let whole = Types::read(btf)?;
    let mut is_kept = vec![false; whole.places.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, place) in whole.places.iter().enumerate() {
        let name = whole.name(word(btf, place.start)?)?;
        // The many names are compared by their bytes, and most by their first ones.
        if !name.is_empty() && wanted.iter().any(|wanted| wanted.as_bytes() == name) {
            is_kept[index] = true;
            open.push(index);
        }
    }
    while let Some(index) = open.pop() {
        for id in whole.parts(index)? {
            // The first type of the list has number 1; 0 is void.
            let part = (id as usize).checked_sub(1)?;
            if !std::mem::replace(is_kept.get_mut(part)?, true) {
                open.push(part);
            }
        }
    }
    whole.write(&is_kept)
}

struct Types<'a> {
    btf: &'a [u8],
    places: Vec<Place>,
    strings: &'a [u8],
}

impl<'a> Types<'a> {
    fn read(btf: &'a [u8]) -> Option<Self> {
        if btf.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let header = word(btf, 4)? as usize;
        let section = |offset: usize, length: usize| -> Option<(usize, usize)> {
            let start = header.checked_add(word(btf, offset)? as usize)?;
            let end = start.checked_add(word(btf, length)? as usize)?;
            (end <= btf.len()).then_some((start, end))
        };
        let (first, end) = section(8, 12)?;
        let strings = section(16, 20)?;
        let mut places = Vec::new();
        let mut start = first;
        while start < end {
            let next = start + RECORD_BYTES + extra_bytes(word(btf, start + 4)?)?;
            if next > end {
                return None;
            }
            places.push(Place { start, end: next });
            start = next;
        }
        Some(Self { btf, places, strings: &btf[strings.0..strings.1] })
    }

    fn name(&self, offset: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(offset as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(&rest[..end])
    }

    /// The types that one is made of.
    fn parts(&self, index: usize) -> Option<Vec<u32>> {
        let place = self.places.get(index)?;
        let info = word(self.btf, place.start + 4)?;
        let behind = place.start + RECORD_BYTES;
        let parts = match kind(info) {
            STRUCT | UNION => {
                let member = |number: usize| word(self.btf, behind + 12 * number + 4);
                (0..count(info)).map(member).collect::<Option<Vec<u32>>>()?
            }
            ARRAY => vec![word(self.btf, behind)?, word(self.btf, behind + 4)?],
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => {
                vec![word(self.btf, place.start + 8)?]
            }
            _ => Vec::new(),
        };
        Some(parts.into_iter().filter(|id| *id != 0).collect())
    }

    /// All that is kept, with the names that it needs, and where each was.
    fn write(&self, is_kept: &[bool]) -> Option<Vec<u8>> {
        let kept = || (0..self.places.len()).filter(|index| is_kept.get(*index) == Some(&true));
        let mut new_places = vec![0; self.places.len() + 1];
        for (new, index) in (1_u32..).zip(kept()) {
            new_places[index + 1] = new;
        }
        let mut names = Names::default();
        let mut types = Vec::new();
        for index in kept() {
            let (info, at) = (word(self.btf, self.places[index].start + 4)?, types.len());
            let record = self.btf.get(self.places[index].start..self.places[index].end)?;
            types.extend_from_slice(record);
            let mut change = |offset: usize, new: &mut dyn FnMut(u32) -> Option<u32>| {
                let number = new(word(&types, at + offset)?)?;
                types.get_mut(at + offset..at + offset + 4)?.copy_from_slice(&number.to_ne_bytes());
                Some(())
            };
            for offset in name_offsets(info) {
                change(offset, &mut |name| names.place_of(self.name(name)?))?;
            }
            for offset in type_offsets(info) {
                // One that is not kept becomes void.
                change(offset, &mut |place| new_places.get(place as usize).copied())?;
            }
        }
        let (types_length, names_length) = (u32::try_from(types.len()).ok()?, names.length()?);
        let mut out = Vec::with_capacity(HEADER_BYTES + types.len() + names.bytes.len());
        out.extend_from_slice(self.btf.get(..4)?);
        for number in [HEADER_BYTES as u32, 0, types_length, types_length, names_length] {
            out.extend_from_slice(&number.to_ne_bytes());
        }
        out.extend(types);
        out.extend(names.bytes);
        for index in kept() {
            out.extend_from_slice(&u32::try_from(index + 1).ok()?.to_ne_bytes());
        }
        Some(out)
    }
}

/// Names, each once; the first one is empty.
struct Names<'a> {
    bytes: Vec<u8>,
    places: HashMap<&'a [u8], u32>,
}

impl Default for Names<'_> {
    fn default() -> Self {
        Self { bytes: vec![0], places: HashMap::from([(&[][..], 0)]) }
    }
}

impl<'a> Names<'a> {
    fn place_of(&mut self, name: &'a [u8]) -> Option<u32> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let place = self.length()?;
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.places.insert(name, place);
        Some(place)
    }

    fn length(&self) -> Option<u32> {
        u32::try_from(self.bytes.len()).ok()
    }
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

fn count(info: u32) -> usize {
    (info & 0xffff) as usize
}

/// Where names are in the record of a type.
fn name_offsets(info: u32) -> impl Iterator<Item = usize> {
    let stride = match kind(info) {
        STRUCT | UNION | ENUM_64 => 12,
        ENUM | PROTOTYPE => 8,
        _ => 0,
    };
    let members = if stride > 0 { count(info) } else { 0 };
    std::iter::once(0).chain((0..members).map(move |number| RECORD_BYTES + stride * number))
}

/// Where types are named in the record of a type.
fn type_offsets(info: u32) -> impl Iterator<Item = usize> {
    let (first, stride) = match kind(info) {
        STRUCT | UNION => (RECORD_BYTES + 4, 12),
        SECTION => (RECORD_BYTES, 12),
        PROTOTYPE => (RECORD_BYTES + 4, 8),
        ARRAY => (RECORD_BYTES, 4),
        _ => (0, 0),
    };
    let members = match kind(info) {
        ARRAY => 2,
        _ if stride > 0 => count(info),
        _ => 0,
    };
    let own = matches!(
        kind(info),
        POINTER
            | TYPEDEF
            | VOLATILE
            | CONST
            | RESTRICT
            | TYPE_TAG
            | FUNCTION
            | VARIABLE
            | TAG_OF
            | PROTOTYPE
    );
    own.then_some(8).into_iter().chain((0..members).map(move |number| first + stride * number))
}

/// Bytes behind a record; `None` for a kind that is not known, whose length is not known either.
fn extra_bytes(info: u32) -> Option<usize> {
    Some(match kind(info) {
        INT | VARIABLE | TAG_OF => 4,
        ARRAY => 12,
        STRUCT | UNION | SECTION | ENUM_64 => 12 * count(info),
        ENUM | PROTOTYPE => 8 * count(info),
        POINTER | FORWARD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNCTION | FLOAT | TYPE_TAG => {
            0
        }
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kernel() -> Option<Vec<u8>> {
        std::fs::read("/sys/kernel/btf/vmlinux").ok()
    }

    /// Kind, size or type, and the types that a type of this name names, as those have names.
    fn members(types: &Types<'_>, name: &str) -> Vec<(u32, Vec<u8>)> {
        let index = named(types, name).unwrap();
        let info = word(types.btf, types.places[index].start + 4).unwrap();
        let places = types.parts(index).unwrap();
        let name = |place: u32| {
            let place = types.places[place as usize - 1];
            types.name(word(types.btf, place.start).unwrap()).unwrap().to_vec()
        };
        places.into_iter().map(|place| (info, name(place))).collect()
    }

    fn named(types: &Types<'_>, name: &str) -> Option<usize> {
        let is_it = |place: &Place| {
            let offset = word(types.btf, place.start).unwrap();
            types.name(offset) == Some(name.as_bytes())
        };
        types.places.iter().position(is_it)
    }

    #[test]
    fn few_types_are_kept_and_their_places_in_the_kernel() {
        let Some(btf) = kernel() else {
            return testkit::skip("a kernel that describes its types");
        };
        let wanted = ["task_struct", "btf_trace_sched_switch", "bpf_iter_task"];
        let reduced = reduce(&btf, &wanted).unwrap();
        assert!(reduced.len() * 10 < btf.len(), "{} of {}", reduced.len(), btf.len());
        let (before, after) = (Types::read(&btf).unwrap(), Types::read(&reduced).unwrap());
        // What a field of it is made of is there; what it points to is not.
        for name in ["task_struct", "task_io_accounting"] {
            assert_eq!(members(&before, name), members(&after, name), "{name}");
        }
        assert!(named(&before, "dentry").is_some() && named(&after, "dentry").is_none());
        let kept = KernelTypes::read(&reduced).unwrap();
        let whole = Btf::parse(&btf, aya::Endianness::default()).unwrap();
        for (name, kind) in [
            ("task_struct", BtfKind::Struct),
            ("btf_trace_sched_switch", BtfKind::Typedef),
            ("bpf_iter_task", BtfKind::Func),
        ] {
            let expected = whole.id_by_type_name_kind(name, kind).ok();
            assert_eq!(kept.place_in_kernel(name, kind), expected, "{name}");
            assert!(expected.is_some());
        }
        assert_eq!(kept.place_in_kernel("dentry", BtfKind::Struct), None);
        assert_eq!(kept.places.len(), after.places.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            is_headed in any::<bool>(),
        ) {
            if is_headed && bytes.len() > HEADER_BYTES {
                bytes[..2].copy_from_slice(&MAGIC.to_ne_bytes());
                bytes[4..8].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
                let types = (bytes.len() - HEADER_BYTES) / 2;
                let strings = bytes.len() - HEADER_BYTES - types;
                for (at, number) in [(8, 0), (12, types), (16, types), (20, strings)] {
                    bytes[at..at + 4].copy_from_slice(&(number as u32).to_ne_bytes());
                }
            }
            let _ = reduce(&bytes, &["a"]);
            let _ = KernelTypes::read(&bytes);
        }
    }
}
