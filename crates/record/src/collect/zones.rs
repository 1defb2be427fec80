//! The zones of each memory node: /proc/zoneinfo for free pages and watermarks,
//! /proc/buddyinfo for free blocks by size.
//!
//! Both are slow to print, so they are read once a second. Below `low` the kernel starts to
//! free memory in the background, below `min` allocations wait for it. Free memory without
//! blocks of a high order is what compaction is for.

use super::table::{Column, LineTable, Shape, number, word_at};
use super::{Moment, SLOW_NS, STAT_INTERVAL_NS, Source};
use crate::registry::ABSENT;
use machine::{ProcFile, Root};
use model::recording::SeriesKind;

const ZONEINFO: &str = "/proc/zoneinfo";
/// The lines behind "pages" that are kept.
const MARKS: [&str; 4] = ["free", "min", "low", "high"];
/// Sizes of blocks: 11 everywhere but on machines with huge base pages.
const MAX_ORDERS: usize = 16;
/// Zones with series: 64 nodes with five each.
const MAX_ZONES: usize = 320;

/// Free blocks by size.
pub(super) fn blocks(root: &Root) -> Option<LineTable<Blocks>> {
    LineTable::open(root, "/proc/buddyinfo", Blocks)
}

/// "Node 0, zone   Normal   6461 4356 ...": the key is "0, Normal".
#[derive(Debug)]
pub(super) struct Blocks;

impl Shape for Blocks {
    fn head<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let (_, at) = word_at(line, 0)?;
        let (_, at) = word_at(line, at)?;
        let (_, at) = word_at(line, at)?;
        let (_, end) = word_at(line, at)?;
        Some((&line[..end], end))
    }

    fn columns(&self, key: &str) -> Vec<Column> {
        let Some((node, zone)) = zone_of(key) else {
            return Vec::new();
        };
        let order = |order| {
            let name = format!("buddy.node{node}.{zone}.order{order}");
            Column::gauge(order, name, "count", 1).refreshed(Some(SLOW_NS))
        };
        (0..MAX_ORDERS).map(order).collect()
    }
}

/// The node and the zone of "Node 0, zone   Normal".
fn zone_of(line: &str) -> Option<(u32, &str)> {
    let (node, zone) = line.strip_prefix("Node ")?.split_once(", zone")?;
    let zone = zone.split_whitespace().next()?;
    Some((node.parse().ok()?, zone))
}

/// Free pages and watermarks; where there is a file.
pub(super) fn watermarks(root: &Root) -> Option<Watermarks> {
    Some(Watermarks { reader: ProcFile::open(root, ZONEINFO).ok()?, zones: Vec::new() })
}

/// The file and the series of each zone, by the line that opens its section.
#[derive(Debug)]
pub(super) struct Watermarks {
    reader: ProcFile,
    zones: Vec<Zone>,
}

#[derive(Debug)]
struct Zone {
    title: String,
    ids: [Option<u32>; MARKS.len()],
}

impl Source for Watermarks {
    fn read(&mut self, moment: &mut Moment<'_>) {
        for id in self.zones.iter().flat_map(|zone| zone.ids).flatten() {
            moment.row.set(id, ABSENT);
        }
        let Some(text) = self.reader.text() else {
            return;
        };
        let mut current = None;
        for line in text.lines() {
            if line.starts_with("Node ") {
                current = section(&mut self.zones, line, moment);
            } else if let Some(zone) = current {
                mark(&self.zones[zone], line, moment);
            }
        }
    }
}

/// The place of the zone that this line opens; a new one is added.
fn section(zones: &mut Vec<Zone>, title: &str, moment: &mut Moment<'_>) -> Option<usize> {
    if let Some(known) = zones.iter().position(|zone| zone.title == title) {
        return Some(known);
    }
    let (node, zone) = zone_of(title).filter(|_| zones.len() < MAX_ZONES)?;
    let ids = MARKS.map(|mark| {
        let name = format!("zone.node{node}.{zone}.{mark}");
        let refresh_ns = Some(STAT_INTERVAL_NS);
        moment.registry.id_refreshed(&name, "pages", SeriesKind::Gauge, ZONEINFO, refresh_ns)
    });
    zones.push(Zone { title: title.to_owned(), ids });
    Some(zones.len() - 1)
}

/// "  pages free     3840" and "        min      10".
fn mark(zone: &Zone, line: &str, moment: &mut Moment<'_>) {
    let mut words = line.split_ascii_whitespace();
    let first = words.next().filter(|word| *word != "pages");
    // "high:" and "high_min:" of the lists of each CPU end in a colon, so they are not it.
    let Some(name) = first.or_else(|| words.next()) else {
        return;
    };
    let place = MARKS.iter().position(|mark| *mark == name);
    let value = words.next().and_then(|word| number(word.as_bytes()));
    if let (Some(id), Some(value)) = (place.and_then(|place| zone.ids[place]), value) {
        moment.row.count(id, value);
    }
}
