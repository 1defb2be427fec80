//! Parts of a large JSON text, one after the other: what is looked for is parsed, all else is
//! only checked. So memory is that of one part, and a part has at most [`MAX_VALUES`] values.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// The most values of one part, 90 MB in memory. A report of `sadf -j -- -A` of a machine with 256
/// processors has 20,000.
pub const MAX_VALUES: usize = 1 << 18;

/// Text of strings counts as one value for so many bytes.
const STRING_BYTES: usize = 64;

/// Any element of a list, in a path.
pub const EACH: &str = "*";

/// The first element of a list, in a path.
pub const FIRST: &str = "0";

/// Calls `take` with each value at `path`: names of fields, [`FIRST`] and [`EACH`].
///
/// # Errors
/// When the text is no JSON, or a value is too large, in words.
pub fn each(text: &str, path: &[&str], mut take: impl FnMut(Value)) -> Result<(), String> {
    let left = Cell::new(0);
    let found = PathSearch { path, left: &left, take: &mut take };
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = found.deserialize(&mut parser).and_then(|()| parser.end());
    read.map_err(|error| {
        if error.is_data() { format!("{error}") } else { format!("it is no whole JSON: {error}") }
    })
}

/// Looks for `path` from here on.
struct PathSearch<'a> {
    path: &'a [&'a str],
    left: &'a Cell<usize>,
    take: &'a mut dyn FnMut(Value),
}

impl<'de> DeserializeSeed<'de> for PathSearch<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        if !self.path.is_empty() {
            return parser.deserialize_any(self);
        }
        self.left.set(MAX_VALUES);
        (self.take)(Bounded(self.left).deserialize(parser)?);
        Ok(())
    }
}

impl<'de> Visitor<'de> for PathSearch<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            if name == self.path[0] {
                map.next_value_seed(PathSearch {
                    path: &self.path[1..],
                    left: self.left,
                    take: &mut *self.take,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut is_wanted = self.path[0] == EACH || self.path[0] == FIRST;
        loop {
            let next = if is_wanted {
                list.next_element_seed(PathSearch {
                    path: &self.path[1..],
                    left: self.left,
                    take: &mut *self.take,
                })?
            } else {
                list.next_element::<IgnoredAny>()?.map(drop)
            };
            is_wanted &= self.path[0] == EACH;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// One value, as long as there are values left.
#[derive(Clone, Copy)]
struct Bounded<'a>(&'a Cell<usize>);

impl Bounded<'_> {
    fn count<E: Error>(self, values: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(values);
        let too_many = || E::custom(format!("a part of it has more than {MAX_VALUES} values"));
        self.0.set(left.ok_or_else(too_many)?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        self.count(1)?;
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.count(1 + name.len() / STRING_BYTES)?;
            object.insert(name, map.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.count(value.len() / STRING_BYTES)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = r#"{"a": [1, {"b": [true, null, {"c": "x"}]}], "d": -1.5, "a\n": {}}"#;

    fn found(path: &[&str]) -> Vec<Value> {
        let mut all = Vec::new();
        each(TEXT, path, |value| all.push(value)).unwrap();
        all
    }

    #[test]
    fn values_are_found_by_their_path() {
        assert_eq!(found(&["d"]), [json!(-1.5)]);
        assert_eq!(found(&["a", FIRST]), [json!(1)]);
        let list = [json!(true), json!(null), json!({"c": "x"})];
        assert_eq!(found(&["a", EACH, "b", EACH]), list);
        assert_eq!(found(&["a", "b"]), [json!(null); 0]);
        assert_eq!(found(&[]), [serde_json::from_str::<Value>(TEXT).unwrap()]);
    }

    #[test]
    fn a_part_has_so_many_values_and_the_whole_any_number() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        let text = list(MAX_VALUES);
        let mut count = 0;
        each(&text, &[EACH], |_| count += 1).unwrap();
        assert_eq!(count, MAX_VALUES);
        let why = each(&text, &[], |_| ()).unwrap_err();
        assert!(why.contains("more than 262144 values"), "{why}");
        let text = format!("[\"{}\"]", "x".repeat(MAX_VALUES * STRING_BYTES));
        assert!(each(&text, &[], |_| ()).is_err());
        let why = each("{\"a\": 1} 2", &["a"], |_| ()).unwrap_err();
        assert!(why.contains("no whole JSON"), "{why}");
    }
}
