//! The plan and its replacement: lines that come, go, move, or never were what they seemed.
//!
//! The property that matters most: a plan never shows in the values, only in the cost.

use super::*;
use crate::collect::keyed::{Keyed, Single};
use proptest::prelude::*;
use std::fs;
use testkit::FakeRoot;

fn columns(prefix: &str, key: &str) -> Vec<Column> {
    match key {
        "unwanted" => Vec::new(),
        "pair" => vec![
            Column::counter(1, format!("{prefix}.second"), "count", 1),
            Column::counter(0, format!("{prefix}.first"), "bytes", 1024),
            Column::gauge(0, format!("{prefix}.again"), "count", 1),
        ],
        _ => vec![Column::counter(0, format!("{prefix}.{key}"), "count", 1)],
    }
}

/// A file in a tree of its own, with its table, registry and row.
struct Fixture {
    root: FakeRoot,
    table: LineTable<Keyed>,
    registry: Registry,
    row: Row,
}

impl Fixture {
    fn new(text: &str) -> Self {
        let root = FakeRoot::new().file("/file", text);
        let shape = Keyed::new("t", columns);
        let table = LineTable::open(&Root::at(root.path()), "/file", shape).unwrap();
        let mut fixture = Self { root, table, registry: Registry::new(), row: Row::default() };
        fixture.read();
        fixture
    }

    fn read(&mut self) -> Option<Change> {
        self.table.read(&mut self.registry, &mut self.row)
    }

    fn write(&mut self, text: impl AsRef<[u8]>) -> Option<Change> {
        fs::write(self.root.path().join("file"), text).unwrap();
        self.read()
    }

    /// `None` for no such series or none now.
    fn value(&self, name: &str) -> Option<i64> {
        let schemas = self.registry.schemas();
        let id = schemas.iter().find(|schema| schema.name == name)?.id;
        let value = self.row.values().get(id as usize).copied();
        value.filter(|value| *value != ABSENT)
    }
}

#[test]
fn words_find_their_series() {
    let fixture = Fixture::new("a 1\nunwanted x\n  b:\t22 kB\npair 3 4\n\nlast 5");
    assert_eq!(fixture.value("t.a"), Some(1));
    assert_eq!(fixture.value("t.b"), Some(22));
    assert_eq!(fixture.value("t.first"), Some(3 * 1024));
    assert_eq!(fixture.value("t.again"), Some(3), "one word may be two series");
    assert_eq!(fixture.value("t.second"), Some(4));
    assert_eq!(fixture.value("t.last"), Some(5));
    assert_eq!(fixture.registry.schemas().len(), 6);
}

#[test]
fn the_same_lines_need_no_new_plan() {
    let mut fixture = Fixture::new("a 1\nb 2\n");
    assert_eq!(fixture.write("a 10\nb 20\n"), None);
    assert_eq!((fixture.value("t.a"), fixture.value("t.b")), (Some(10), Some(20)));
}

#[test]
fn a_line_that_comes_or_goes_makes_a_new_plan() {
    let mut fixture = Fixture::new("a 1\nb 2\n");
    let change = fixture.write("c 3\nb 4\n").unwrap();
    assert_eq!((change.added, change.removed), (vec!["c".to_owned()], vec!["a".to_owned()]));
    assert_eq!(fixture.value("t.a"), None, "what is gone is absent");
    assert_eq!((fixture.value("t.b"), fixture.value("t.c")), (Some(4), Some(3)));
    // A line behind the last planned one is found too, and a longer name is another name.
    fixture.write("c 3\nb 4\nbb 7\n");
    assert_eq!(fixture.value("t.bb"), Some(7));
    fixture.write("");
    assert_eq!((fixture.value("t.b"), fixture.value("t.bb")), (None, None));
    fixture.write("b 9\n");
    assert_eq!(fixture.value("t.b"), Some(9));
}

#[test]
fn no_number_is_absent_and_never_0() {
    let mut fixture = Fixture::new("a max\nb -1\nc 1.5\nd 12x\nf 0\n");
    for name in ["t.a", "t.b", "t.c", "t.d"] {
        assert_eq!(fixture.value(name), None, "{name}");
    }
    assert_eq!(fixture.value("t.f"), Some(0));
    fixture.write("a 99999999999999999999999\nb 2\nc 3\nd 4\nf 5\n");
    assert_eq!(fixture.value("t.a"), Some(i64::MAX), "it stops at the largest number");
}

#[test]
fn limits_may_say_that_there_is_none() {
    let root = FakeRoot::new().file("/limits", "9223372036854771712 0 4096\n");
    let limit =
        |word, name, absent_when| Column::gauge(word, name, "bytes", 1).absent_when(absent_when);
    let shape = Single(vec![
        limit(0, "v1", AbsentWhen::Unlimited),
        limit(1, "zero", AbsentWhen::Zero),
        limit(2, "some", AbsentWhen::Unlimited),
        limit(9, "beyond", AbsentWhen::Never),
    ]);
    let mut table = LineTable::open(&Root::at(root.path()), "/limits", shape).unwrap();
    let (mut registry, mut row) = (Registry::new(), Row::default());
    table.read(&mut registry, &mut row);
    assert_eq!(row.values(), [ABSENT, ABSENT, 4096], "a word that is not there is no series");
}

#[test]
fn words_with_a_name_before_them_count() {
    let mut fixture = Fixture::new("io rbytes=7 wbytes=8\n");
    assert_eq!(fixture.value("t.io"), Some(7));
    fixture.write("io rbytes=max wbytes=8\n");
    assert_eq!(fixture.value("t.io"), None);
}

#[test]
fn a_line_that_lost_a_word_is_planned_anew() {
    let mut fixture = Fixture::new("pair 0 0\npair 0 0\n");
    fixture.write("pair 0 7\npair 0\n");
    let fresh = Fixture::new("pair 0 7\npair 0\n");
    assert_eq!(fixture.value("t.second"), fresh.value("t.second"));
    assert_eq!(fixture.value("t.second"), Some(7));
}

proptest! {
    #[test]
    fn no_text_panics(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..4),
    ) {
        let mut fixture = Fixture::new("a 1\n");
        for text in texts {
            fixture.write(text);
        }
    }

    /// Whatever came before, the values are those that a first reading would find.
    #[test]
    fn history_does_not_matter(
        texts in prop::collection::vec("(([a-d]|pair|unwanted)( [0-9]{1,3}){0,3}\n){0,5}", 1..5),
    ) {
        let mut fixture = Fixture::new("a 1\n");
        for text in &texts {
            fixture.write(text);
        }
        let fresh = Fixture::new(texts.last().unwrap());
        for name in ["t.a", "t.b", "t.c", "t.d", "t.first", "t.second", "t.again"] {
            prop_assert_eq!(fixture.value(name), fresh.value(name), "{}", name);
        }
    }
}
