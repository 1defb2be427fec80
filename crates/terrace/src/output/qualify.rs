//! The page of `boost qualify`: the answer in its first line, then a row for each figure, then what
//! is not proved.
//!
//! Pure. The JSON is the result itself.

use super::Report;
use super::figure::{self, Digits, or_absent};
use super::prose::PageText;
use super::report::interrupted;
use super::table::Table;
use model::doctor::POINTER;
use model::qualification::{
    CapacityCheck, CapacityOutcome, EraseBlock, Qualification, RequestFigures, StickLink,
    TransferFigures, WriteBurst,
};
use model::{Estimate, Latency};
use serde::Serialize;

/// What was measured, and the verdict.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct QualifyResult(pub Qualification);

/// One row of the table.
#[derive(Clone, Copy)]
struct Row<'a> {
    name: &'a str,
    rate: Option<&'a Estimate>,
    service: Option<&'a Latency>,
    served_by: &'a str,
}

impl Report for QualifyResult {
    const COMMAND: &'static str = "boost qualify";
    const SCHEMA: &'static str = model::qualification::SCHEMA;

    fn write_page(&self, out: &mut PageText) {
        let result = &self.0;
        out.heading(&result.verdict.sentence);
        out.sentence(&what(result));
        out.lines(|_| "\n".to_owned());
        out.table(&table(result), 1);
        out.lines(|_| "\n".to_owned());
        out.sentences(burst(result.burst.as_ref(), result.sustained_write.as_ref()));
        out.sentence(&capacity(&result.capacity));
        out.sentences(result.link.as_ref().map(link));
        out.sentence(&erase_block(&result.erase_block));
        out.sentences(result.verdict.reasons.iter().map(|reason| format!("Also: {reason}.")));
        out.notes(
            result.disk.as_ref().map(|disk| format!("{}: {}", disk.path.display(), disk.why)),
        );
        out.notes(&result.notes);
        out.notes(&result.link_unseen);
        // No more time would measure more of a stick that failed or is refused.
        let is_over =
            result.failure.is_some() || result.capacity.outcome == CapacityOutcome::Refused;
        out.notes(
            (result.is_cut_short && !is_over)
                .then_some("cut short: more time (--budget) or --full measures more of it"),
        );
        out.notes(result.failure.iter().map(|failure| format!("ended early: {failure}")));
    }

    fn shortfall(&self) -> Option<String> {
        let failure = self.0.failure.as_ref().map(|failure| format!("ended early: {failure}"));
        failure.or_else(|| interrupted(self.0.is_cut_short && sys::interrupt::requested()))
    }

    fn written_bytes(&self) -> u64 {
        self.0.written_bytes
    }
}

/// "/media/stick: SanDisk Ultra, sda1, vfat, 64 GB claimed"
fn what(result: &Qualification) -> String {
    let target = &result.target;
    let device = target.partition.as_ref().or(target.disk.as_ref());
    let claimed = target
        .claimed_bytes
        .map(|bytes| format!("{} claimed", figure::decimal_size(bytes as f64, Digits::Three)));
    let words: Vec<String> = [&target.model, &device.cloned(), &target.file_system, &claimed]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let only = if target.is_block_device { " (only read)" } else { "" };
    format!("{}: {}{only}", target.path.display(), words.join(", "))
}

fn table(result: &Qualification) -> Table<Row<'_>> {
    let rows = [
        requests("random reads of 4 KiB", result.random_read.as_ref()),
        requests("the same while writing", result.read_while_writing.as_ref()),
        requests("random writes of 512 KiB", result.random_write.as_ref()),
        transfer("reading in sequence", result.sequential_read.as_ref()),
        transfer("writing in sequence", result.sequential_write.as_ref()),
        requests("your disk, reads of 4 KiB", result.disk.as_ref().map(|disk| &disk.random_read)),
    ];
    Table::of(rows.into_iter().flatten())
        .words("", 0, |row| row.name)
        .numbers("rate", 0, |row| figure::precise_rate(row.rate.map(|rate| rate.median)))
        .numbers("+-", 1, |row| or_absent(row.rate, figure::plus_minus))
        .numbers("p50", 0, |row| figure::precise_time(row.service.map(|service| service.median)))
        .numbers("p99", 2, |row| figure::precise_time(row.service.and_then(|s| s.p99)))
        .words("served by", 1, |row| if row.served_by.is_empty() { "-" } else { row.served_by })
}

fn requests<'a>(name: &'a str, figures: Option<&'a RequestFigures>) -> Option<Row<'a>> {
    let figures = figures?;
    Some(Row {
        name,
        rate: figures.bytes_per_s.as_ref(),
        service: figures.service_ns.as_ref(),
        served_by: &figures.served_by,
    })
}

fn transfer<'a>(name: &'a str, figures: Option<&'a TransferFigures>) -> Option<Row<'a>> {
    let figures = figures?;
    let rate = figures.bytes_per_s.as_ref();
    Some(Row { name, rate, service: None, served_by: &figures.served_by })
}

fn burst(burst: Option<&WriteBurst>, sustained: Option<&Estimate>) -> Option<String> {
    let sustained = figure::precise_rate(sustained?.median);
    Some(match burst {
        Some(burst) => format!(
            "Writing: {} for the first {}, then {sustained}.",
            figure::precise_rate(burst.bytes_per_s.median),
            size(burst.bytes)
        ),
        None => format!("Writing: {sustained} to the end; it did not fall."),
    })
}

fn capacity(check: &CapacityCheck) -> String {
    let claimed = check.claimed_bytes.map_or_else(|| "what it claims".to_owned(), size);
    let proved = size(check.proved_bytes);
    let reason = check.reason.as_deref().unwrap_or_default();
    let text = match check.outcome {
        CapacityOutcome::Proved => format!("Capacity: proved {proved} of {claimed}"),
        CapacityOutcome::Refused => format!("Capacity: refused; {reason}"),
        CapacityOutcome::NotTried => format!("Capacity: not tried; {reason}"),
    };
    format!("{text}{}.", other_places(check))
}

/// What became of the other places of the disk, as a further clause.
fn other_places(check: &CapacityCheck) -> String {
    match (check.outcome, check.is_restored) {
        (CapacityOutcome::NotTried, _) => return String::new(),
        (CapacityOutcome::Refused, Some(true)) => {
            return "; what was there before is there again".to_owned();
        }
        (CapacityOutcome::Refused, Some(false)) => {
            return "; what was there before is lost".to_owned();
        }
        (CapacityOutcome::Refused | CapacityOutcome::Proved, _) => {}
    }
    let quiet = match check.aliases_read {
        0 => String::new(),
        1 => "; 1 other place of the disk did not change".to_owned(),
        many => format!("; {many} other places of the disk did not change"),
    };
    let unseen = check.aliases_unseen.as_ref().map_or_else(String::new, |reason| {
        let what = if check.aliases_read == 0 { "other places were" } else { "others were" };
        format!("; {what} not watched: {reason}")
    });
    format!("{quiet}{unseen}")
}

/// "Attached by usb at 480 Mbit/s (it can 5 Gbit/s), behind 1 hub, usb-storage."
fn link(link: &StickLink) -> String {
    let speed = |bits: u64| figure::decimal_size(bits as f64, Digits::Three).replace('B', "bit/s");
    let mut text = format!("Attached by {}", link.bus);
    if let Some(bits) = link.bits_per_s {
        text.push_str(&format!(" at {}", speed(bits)));
    }
    let own = link.device_bits_per_s.filter(|own| Some(*own) > link.bits_per_s);
    if let Some(own) = own {
        text.push_str(&format!(" (it can {})", speed(own)));
    }
    match link.hubs {
        None | Some(0) => {}
        Some(1) => text.push_str(", behind 1 hub"),
        Some(many) => text.push_str(&format!(", behind {many} hubs")),
    }
    if let Some(driver) = &link.driver {
        text.push_str(&format!(", {driver}"));
    }
    if let Some(percent) = link.life_used_percent {
        text.push_str(&format!(", {percent} % of its life used"));
    }
    let advice = link.advice.as_ref().map_or_else(String::new, |advice| format!(": {advice}"));
    format!("{text}{advice}.")
}

fn erase_block(block: &EraseBlock) -> String {
    match (block.bytes, &block.source, &block.unseen) {
        (Some(bytes), source, _) => {
            let source = source.as_deref().unwrap_or("read times");
            format!("Erase block: {} ({source}).", model::Bytes(bytes))
        }
        (None, _, Some(reason)) => format!("Erase block: {reason} ({POINTER})."),
        (None, _, None) => "Erase block: not looked for.".to_owned(),
    }
}

/// A size as devices are sold.
fn size(bytes: u64) -> String {
    figure::decimal_size(bytes as f64, Digits::Three)
}
