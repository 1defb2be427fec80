//! The survey's page: the ladder of this machine, what is odd about it, what to do next.
//!
//! Pure: a [`Survey`] and a page become text. Readable in ten seconds at 80 columns,
//! with more digits and columns where there is room, and fewer columns where there is
//! not; what a second look needs comes with [`Detail::Full`]. All figures of the survey
//! are in its JSON; the page never adds one.

mod findings;
mod ladder;

use super::Page;
use super::figure::{self, Digits};
use super::prose::{by_reason, sentence};
use super::style::Tone;
use super::table::{tied, wrap};
use model::machine::MachineFacts;
use model::survey::Survey;

/// The title, from which the facts beside it keep a distance.
const TITLE: &str = "terrace survey";

/// The width that the page is made for.
const USUAL: usize = 80;

/// How much the page says about each finding and check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What is odd and what to do: for a first look of ten seconds.
    Brief,
    /// Also what each claim rests on, what the remedy risks, how to confirm the claim,
    /// and which checks could not be made.
    Full,
}

impl Detail {
    /// What `--details` asks for.
    pub fn of(details: bool) -> Self {
        if details { Self::Full } else { Self::Brief }
    }
}

pub fn page(survey: &Survey, detail: Detail, page: Page) -> String {
    let mut text = header(survey, page);
    text.push_str(&ladder::render(survey, page));
    text.push_str(&findings::render(survey, detail, page));
    text.push_str(&notes(survey, page));
    text.push_str(&left_out(survey, detail, page));
    text.push_str(&more(survey, detail, page));
    text.push_str(&next(survey, page));
    text
}

/// `terrace survey   db-3, 2 cores, 24 GiB, KVM guest; 47 s; wrote 1.1 GB and removed it`.
fn header(survey: &Survey, page: Page) -> String {
    let machine = &survey.machine;
    let mut place: Vec<String> = machine.host.iter().cloned().collect();
    place.push(cores(machine));
    let memory = machine.memory_bytes;
    place.extend(memory.map(|bytes| figure::binary_size(bytes, Digits::Three)));
    place.extend(machine.virtualization.clone());
    let mut parts = vec![place.join(", "), format!("{:.0} s", survey.cost.wall_s)];
    parts.push(match survey.cost.written_bytes {
        0 => "wrote nothing".to_owned(),
        bytes => {
            let size = figure::decimal_size(bytes as f64, Digits::Two);
            let written = format!("wrote {size} and removed it");
            // Held together where that is no loss: "it" alone on a line looks lost.
            if page.width >= USUAL { tied(&written) } else { written }
        }
    });
    if survey.interrupted {
        parts.push("interrupted".to_owned());
    }
    let facts = parts.join("; ");
    let gap = page.width.saturating_sub(TITLE.len() + facts.chars().count()).clamp(2, 14);
    let indent = TITLE.len() + gap;
    let wrapped = wrap(&facts, page.width.saturating_sub(indent), 0);
    let lines = wrapped.replace('\n', &format!("\n{}", " ".repeat(indent)));
    let title = page.style.paint(Tone::Strong, TITLE);
    format!("{title}{}{lines}\n{}", " ".repeat(gap), hardware(survey, page))
}

/// The line with the processor (and how fast it is alone: is it the memory or the
/// processor?), the kernel and the C library, as far as they are known.
fn hardware(survey: &Survey, page: Page) -> String {
    let machine = &survey.machine;
    let control = survey.control_step_ns.as_ref().map(|step| {
        let time = figure::precise_time(step.median);
        tied(&format!("fractal control {time} a step"))
    });
    let kernel = machine.kernel.as_ref().map(|it| format!("Linux {it}"));
    let thp = machine.thp.as_ref().map(|it| format!("huge pages: {it}"));
    let (cpu, libc) = (machine.cpu.clone(), machine.libc.clone());
    let facts = [cpu, control, kernel, libc, thp];
    let known: Vec<String> = facts.into_iter().flatten().collect();
    if known.is_empty() {
        return String::new();
    }
    sentence(page, Tone::Dim, &known.join(", "), 1)
}

fn cores(machine: &MachineFacts) -> String {
    let (usable, online) = (machine.usable_cpus, machine.online_cpus);
    let is_one = online.max(usable) == 1;
    let noun = if is_one { "core" } else { "cores" };
    let of = if usable < online { format!(" of {online}") } else { String::new() };
    format!("{usable}{of} {noun}")
}

/// What a number of a device covers, where that is not plain: a paragraph each.
fn notes(survey: &Survey, page: Page) -> String {
    let devices = survey
        .tiers
        .iter()
        .filter(|tier| tier.kind == model::TierKind::Device && tier.grade != model::Grade::Unseen);
    let noted = devices.filter_map(|tier| Some((&tier.name, tier.reason.as_ref()?)));
    let lines = noted.map(|(name, reason)| format!("Note: {name}: {reason}"));
    lines.map(|line| sentence(page, Tone::Dim, &line, 4)).collect()
}

/// Levels that were left out, and checks that could not be made: a paragraph each.
fn left_out(survey: &Survey, detail: Detail, page: Page) -> String {
    let skipped = survey.skipped.iter().map(|it| (&*it.reason, &*it.name));
    let checks: &[_] = match detail {
        Detail::Brief => &[],
        Detail::Full => &survey.unchecked,
    };
    let unchecked = checks.iter().map(|check| (&*check.reason, &*check.id));
    let unseen = survey.tiers.iter().filter_map(|tier| {
        let reason = tier.reason.as_deref().unwrap_or("no reason given");
        (tier.grade == model::Grade::Unseen).then_some((reason, &*tier.name))
    });
    [
        paragraph("Not seen:", unseen, page),
        paragraph("Skipped:", skipped, page),
        paragraph("Not checked:", unchecked, page),
    ]
    .concat()
}

/// `title a, b (reason); c (other reason)`, or nothing.
fn paragraph<'a>(
    title: &str,
    items: impl Iterator<Item = (&'a str, &'a str)>,
    page: Page,
) -> String {
    let groups = by_reason(items);
    if groups.is_empty() {
        return String::new();
    }
    sentence(page, Tone::Dim, &format!("{title} {}", groups.join("; ")), 4)
}

/// Where the rest of a brief page is, said once.
fn more(survey: &Survey, detail: Detail, page: Page) -> String {
    if detail == Detail::Full {
        let text = "Intervals (--json, --html) are within this run; terrace measure repeats a \
                    probe in new processes.";
        return sentence(page, Tone::Dim, text, 4);
    }
    if survey.findings.is_empty() {
        return String::new();
    }
    let text = "Evidence, risks and how to confirm each: --details, or --json.";
    sentence(page, Tone::Dim, text, 4)
}

/// Commands that lead on from here; each of them exists.
fn next(survey: &Survey, page: Page) -> String {
    let mut commands = Vec::new();
    if !survey.machine.root {
        commands.push("sudo terrace survey (sees more)");
        commands.push("terrace doctor (says why)");
    }
    commands.push("terrace survey --json");
    commands.push("terrace measure --help");
    let unbroken: Vec<String> = commands.into_iter().map(tied).collect();
    sentence(page, Tone::Plain, &format!("Next: {}", unbroken.join(", ")), 7)
}

#[cfg(test)]
mod tests;
