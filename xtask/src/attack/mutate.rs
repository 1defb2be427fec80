//! Changes of bytes, JSON and text that all mutants are made with.
//!
//! Each takes its randomness from one seeded generator, so a mutant repeats from its seed. Numbers
//! are drawn from the ends of their types, where arithmetic breaks; texts from what terminals,
//! paths and pages take for commands.

use serde_json::{Map, Value};
use testkit::Random;

/// Numbers at the ends of types and units.
pub(super) const EXTREMES: &[u64] = &[
    0,
    1,
    2,
    7,
    100,
    255,
    256,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    (1 << 51) + 1,
    1 << 52,
    1 << 53,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
    1_000_000_000,
    1_000_000_000_000,
    1_000_000_000_000_000_000,
];

/// Texts that are not expected where a text is.
const TEXTS: &[&str] = &[
    "",
    "-1",
    "nan",
    "\0",
    "\u{1b}[31m",
    "\u{1b}]0;PWN\u{7}",
    "\u{202e}",
    "<script>alert(1)</script>",
    "////////////////",
    "../../../../etc/passwd",
    "éééééééééé",
    "%s%n",
];

/// One of `list`, which is not empty.
pub(super) fn pick<'a, T>(random: &mut Random, list: &'a [T]) -> &'a T {
    &list[random.below(list.len() as u64) as usize]
}

/// True `percent` times of a hundred.
pub(super) fn chance(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

/// A place in something of this length, its end included.
pub(super) fn place(random: &mut Random, length: usize) -> usize {
    random.below(length as u64 + 1) as usize
}

/// An extreme number, or a random one.
pub(super) fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.next_u64() >> random.below(64),
        _ => *pick(random, EXTREMES),
    }
}

/// Flips, replaces, removes, inserts, repeats and cuts bytes.
pub(super) fn bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..*pick(random, &[1, 1, 2, 4, 16]) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let end = |length: usize| (at + length).min(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *pick(random, &[0, 1, 0x7f, 0x80, 0xff]),
            2 => drop(bytes.drain(at..end(*pick(random, &[1, 2, 8, 64])))),
            3 => {
                let mut new = vec![0; *pick(random, &[1, 2, 9, 10])];
                random.fill(&mut new);
                bytes.splice(at..at, new);
            }
            4 => {
                let copy = bytes[at..end(*pick(random, &[4, 32, 200]))].to_vec();
                bytes.splice(at..at, copy);
            }
            5 => drop(bytes.splice(at..end(10), [0xff; 9].into_iter().chain([1]))),
            _ => bytes.truncate(at),
        }
    }
}

/// Changes about `per_mille` of a thousand values of `value`, at any depth.
pub(super) fn json(random: &mut Random, value: &Value, per_mille: u64) -> Value {
    let hit = random.below(1000) < per_mille;
    match value {
        Value::Object(fields) => {
            let mut changed = Map::new();
            for (name, field) in fields {
                if random.below(8000) >= per_mille {
                    changed.insert(name.clone(), json(random, field, per_mille));
                }
            }
            Value::Object(changed)
        }
        Value::Array(items) => {
            let mut changed: Vec<Value> =
                items.iter().map(|item| json(random, item, per_mille)).collect();
            if hit && !changed.is_empty() {
                list(random, &mut changed);
            }
            Value::Array(changed)
        }
        Value::Number(_) if hit => extreme(random),
        Value::String(text) if hit => Value::String(hostile_text(random, text)),
        Value::Bool(is) if hit => Value::Bool(!is),
        Value::Null if hit => extreme(random),
        other => other.clone(),
    }
}

/// Cuts, repeats or extends a list.
fn list(random: &mut Random, items: &mut Vec<Value>) {
    match random.below(4) {
        0 => items.truncate(random.below(items.len() as u64) as usize),
        1 => {
            let copy = items.clone();
            (0..*pick(random, &[1, 2, 9])).for_each(|_| items.extend(copy.clone()));
        }
        2 => items.reverse(),
        _ => {
            let item = pick(random, items).clone();
            items.insert(place(random, items.len()), item);
        }
    }
}

/// A number that a field may not expect: large, negative or no whole one.
fn extreme(random: &mut Random) -> Value {
    let value = number(random);
    match random.below(10) {
        0 => Value::from(-1),
        1 => Value::from((value as i64).wrapping_neg()),
        2 => Value::from(*pick(random, &[0.0, -1.0, 1e308, -1e308, 5e-324, 1e19, 0.5])),
        _ => Value::from(value),
    }
}

fn hostile_text(random: &mut Random, text: &str) -> String {
    match random.below(5) {
        0 => text.repeat(2),
        1 => text.chars().rev().collect(),
        2 => "x".repeat(*pick(random, &[1, 10, 5000])),
        3 => format!("{text}{}", pick(random, TEXTS)),
        _ => (*pick(random, TEXTS)).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_seed_repeats_and_changes_something() {
        let value = json!({"a": [1, 2, 3], "b": "text", "c": null, "d": true});
        let changed = |seed| json(&mut Random(seed), &value, 300);
        assert_eq!(changed(1), changed(1));
        assert!((0..20).any(|seed| changed(seed) != value));
        let original = vec![1_u8; 100];
        let mutated = |seed| {
            let mut copy = original.clone();
            bytes(&mut Random(seed), &mut copy);
            copy
        };
        assert_eq!(mutated(3), mutated(3));
        assert!((0..20).any(|seed| mutated(seed) != original));
    }

    #[test]
    fn nothing_is_changed_with_no_chance() {
        let value = json!({"a": [1, {"b": "c"}]});
        assert_eq!(json(&mut Random(5), &value, 0), value);
    }
}
