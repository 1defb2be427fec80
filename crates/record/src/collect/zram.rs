//! Compressed RAM disks: what each holds, what it takes, its requests and failures.
//!
//! A device that is not set up has no series. Once a second it is looked whether one was
//! set up or added since.

use super::keyed::Single;
use super::table::{AbsentWhen, Column, LineTable};
use super::{Moment, Source};
use machine::Root;
use model::recording::SeriesKind;

/// The devices that are set up.
#[derive(Debug)]
pub(super) struct Zram {
    root: Root,
    devices: Vec<(String, Vec<LineTable<Single>>)>,
}

/// None need be there yet.
pub(super) fn open(root: &Root) -> Zram {
    let mut zram = Zram { root: root.clone(), devices: Vec::new() };
    zram.look();
    zram
}

impl Zram {
    fn look(&mut self) {
        let names = super::facts::block_names(&self.root);
        for name in names.into_iter().filter(|name| name.starts_with("zram")) {
            let known = self.devices.iter().any(|(known, _)| *known == name);
            if !known && is_set_up(&self.root, &name) {
                let tables = tables(&self.root, &name);
                self.devices.push((name, tables));
            }
        }
    }
}

impl Source for Zram {
    fn read(&mut self, moment: &mut Moment<'_>) {
        if moment.slow {
            self.look();
        }
        for table in self.devices.iter_mut().flat_map(|(_, tables)| tables) {
            table.read(moment.registry, moment.row);
        }
    }
}

fn is_set_up(root: &Root, name: &str) -> bool {
    let size = root.read(format!("/sys/block/{name}/disksize"));
    size.is_ok_and(|size| !matches!(size.trim(), "" | "0"))
}

fn tables(root: &Root, device: &str) -> Vec<LineTable<Single>> {
    let column = |word, name: &str, unit, kind| Column {
        kind,
        ..Column::counter(word, format!("zram.{device}.{name}"), unit, 1)
    };
    let level = |word, name, unit| column(word, name, unit, SeriesKind::Gauge);
    let count = |word, name| column(word, name, "count", SeriesKind::Counter);
    // The kernel's Documentation/admin-guide/blockdev/zram.rst has the order of the words.
    let sizes = vec![
        level(0, "orig_bytes", "bytes"),
        level(1, "compressed_bytes", "bytes"),
        level(2, "used_bytes", "bytes"),
        level(3, "limit_bytes", "bytes").absent_when(AbsentWhen::Zero),
        level(5, "same_pages", "pages"),
        level(7, "huge_pages", "pages"),
    ];
    let failures =
        vec![count(0, "failed_reads"), count(1, "failed_writes"), count(3, "notify_free")];
    let requests = vec![count(0, "reads"), count(4, "writes")];
    [("mm_stat", sizes), ("io_stat", failures), ("stat", requests)]
        .into_iter()
        .filter_map(|(file, columns)| {
            LineTable::open(root, format!("/sys/block/{device}/{file}"), Single(columns))
        })
        .collect()
}
