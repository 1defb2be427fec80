//! The files behind a finding, by bytes, each with who did most of it.
//! Only those with a clear part are named.

use super::roles::FileFigure;
use super::sums::{FileSum, SharedSum, file_sums};
use crate::recording::View;
use model::Grade;
use model::explanation::FileUse;
use model::recording::{DeviceFacts, FileIdentity};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many are named.
const MOST_FILES: usize = 3;

/// A file with less than this share is not worth its line. Picked, as a finding's.
const LEAST_SHARE: f64 = 0.05;

/// Fewer bytes of all files together are no answer to where reads came from. Picked.
const LEAST_BYTES: u64 = 1 << 20;

/// A value is inferred if more than this share of it was shared out by time.
const MOST_SHARED: f64 = 0.1;

/// The first files of a view.
pub fn first_files(view: &View, figure: FileFigure) -> Vec<FileUse> {
    let who = &view.recording().who;
    let (from_ns, to_ns) = view.row_bounds();
    let value = |sum: &FileSum| match figure {
        FileFigure::Read => sum.added,
        FileFigure::Refaulted => sum.refaulted,
        FileFigure::Dirtied => sum.dirtied,
    };
    let mut files: BTreeMap<u32, (SharedSum, u32, u64)> = BTreeMap::new();
    for sum in file_sums(who, from_ns, to_ns) {
        let of_process = value(&sum);
        let (whole, process, most) =
            files.entry(sum.file).or_insert((SharedSum::default(), sum.process, 0));
        *whole = whole.plus(of_process);
        if of_process.value > *most {
            (*process, *most) = (sum.process, of_process.value);
        }
    }
    let all = files.values().fold(0u64, |all, (sum, ..)| all.saturating_add(sum.value));
    if all < LEAST_BYTES {
        return Vec::new();
    }
    let mut files: Vec<(u32, (SharedSum, u32, u64))> = files.into_iter().collect();
    files.sort_by_key(|(file, (sum, ..))| (Reverse(sum.value), *file));
    let named = files.into_iter().take(MOST_FILES).filter_map(|(file, (sum, process, _))| {
        let identity = who.files.get(file as usize)?;
        let process = who.processes.get(process as usize);
        let single = process.filter(|process| process.pid != 0 && !process.is_many);
        let device = format!("{}:{}", identity.device.0, identity.device.1);
        let is_sure = sum.shared as f64 <= sum.value as f64 * MOST_SHARED;
        Some(FileUse {
            label: label(identity, &device, &view.facts().devices),
            path: identity.path.clone(),
            device,
            inode: identity.inode,
            figure: figure.id().to_owned(),
            bytes: sum.value,
            share: sum.value as f64 / all as f64,
            process: single.map(|process| process.id),
            pid: single.map(|process| process.pid),
            name: process.map(|process| process.name.clone()).unwrap_or_default(),
            grade: if is_sure { Grade::Measured } else { Grade::Inferred },
        })
    });
    named.filter(|file| file.share >= LEAST_SHARE).collect()
}

/// The path, else `inode 12 of vda (254:0)`, or `vda itself (254:0)`.
fn label(file: &FileIdentity, device: &str, devices: &[DeviceFacts]) -> String {
    if let Some(path) = &file.path {
        return path.clone();
    }
    match devices.iter().find(|known| known.number == device) {
        // A device's own pages are what file systems keep there of themselves, or a raw read.
        Some(known) if file.inode == 0 => format!("{} itself ({device})", known.name),
        None if file.inode == 0 => format!("device {device} itself"),
        Some(known) => format!("inode {} of {} ({device})", file.inode, known.name),
        None => format!("inode {} of device {device}", file.inode),
    }
}
