//! Flash caches that `terrace boost` serves: what their services count, by the name of the cache.
//!
//! A service replaces its file whenever something changed, so the file is opened for each reading.
//! Once a second it is looked which caches there are. Only root can enter their directory.

use super::{Moment, Source};
use crate::ABSENT;
use crate::registry::Registry;
use machine::Root;
use model::boost_counters::{BoostCounters, COUNT, SERIES};

/// Where each served cache has a directory.
const CACHES: &str = "/run/terrace/boost";
/// The file that a service replaces.
const COUNTERS: &str = "counters";
/// Caches with series of their own; a machine has few sticks.
const MOST_CACHES: usize = 16;

/// The caches that are served.
#[derive(Debug)]
pub(super) struct Caches {
    root: Root,
    caches: Vec<ServedCache>,
    text: Vec<u8>,
}

/// One of them, which may have gone.
#[derive(Debug)]
struct ServedCache {
    /// As its directory is called.
    name: String,
    file: String,
    /// In the order of [`SERIES`].
    ids: [Option<u32>; COUNT],
}

/// None need be there yet.
pub(super) fn open(root: &Root) -> Caches {
    Caches { root: root.clone(), caches: Vec::new(), text: Vec::new() }
}

impl Caches {
    fn look(&mut self, registry: &mut Registry) {
        let Ok(entries) = std::fs::read_dir(self.root.path(CACHES)) else { return };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        for name in names.into_iter().filter(|name| is_name(name)) {
            let is_known = self.caches.iter().any(|cache| cache.name == name);
            if !is_known && self.caches.len() < MOST_CACHES {
                let file = format!("{CACHES}/{name}/{COUNTERS}");
                let ids = ids(&name, registry);
                self.caches.push(ServedCache { name, file, ids });
            }
        }
    }
}

/// Whether a cache can have this name: one with a point would part the names of its series.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The series of a cache.
fn ids(name: &str, registry: &mut Registry) -> [Option<u32>; COUNT] {
    SERIES.map(|(series, unit, kind)| {
        registry.id(&format!("boost.{name}.{series}"), unit, kind, "terrace boost")
    })
}

impl Source for Caches {
    fn read(&mut self, moment: &mut Moment<'_>) {
        if moment.slow {
            self.look(moment.registry);
        }
        for cache in &self.caches {
            let read = self.root.read_short(&cache.file, &mut self.text);
            let text = read.ok().and_then(|()| std::str::from_utf8(&self.text).ok());
            let counters = text.map(BoostCounters::from_text).unwrap_or_default();
            for (id, value) in cache.ids.iter().zip(counters.0) {
                let Some(id) = *id else { continue };
                match value {
                    Some(value) => moment.row.count(id, value),
                    None => moment.row.set(id, ABSENT),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Row;
    use testkit::TempDir;

    fn read(caches: &mut Caches, registry: &mut Registry, row: &mut Row) {
        let mut notes = Vec::new();
        let (notes, all) = (&mut notes, true);
        caches.read(&mut Moment { at_ns: 0, steady: true, slow: true, all, registry, row, notes });
    }

    #[test]
    fn a_cache_has_series_while_it_is_served() {
        let directory = TempDir::new();
        let root = Root::at(directory.path());
        let served = directory.join("run/terrace/boost/a_b");
        std::fs::create_dir_all(directory.join("run/terrace/boost/a.b")).unwrap();
        let (mut caches, mut registry, mut row) = (open(&root), Registry::new(), Row::default());
        read(&mut caches, &mut registry, &mut row);
        assert!(registry.schemas().is_empty());
        std::fs::create_dir_all(&served).unwrap();
        std::fs::write(served.join("counters"), "reads 12\nhits 5\nunknown 6\n").unwrap();
        read(&mut caches, &mut registry, &mut row);
        let value = |registry: &Registry, row: &Row, name: &str| {
            let schema = registry.schemas().iter().find(|schema| schema.name == name).unwrap();
            row.values()[schema.id as usize]
        };
        assert_eq!(value(&registry, &row, "boost.a_b.reads"), 12);
        assert_eq!(value(&registry, &row, "boost.a_b.hits"), 5);
        assert_eq!(value(&registry, &row, "boost.a_b.cached_bytes"), ABSENT);
        assert_eq!(registry.schemas().len(), COUNT);
        std::fs::remove_dir_all(&served).unwrap();
        read(&mut caches, &mut registry, &mut row);
        assert_eq!(value(&registry, &row, "boost.a_b.reads"), ABSENT);
    }
}
