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
use super::prose::{by_reason, painted_lines};
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
    place.extend(
        machine
            .memory_bytes
            .map(|bytes| figure::binary_size(bytes, Digits::Three)),
    );
    place.extend(machine.virtualization.clone());
    let mut parts = vec![place.join(", "), format!("{:.0} s", survey.cost.wall_s)];
    parts.push(match survey.cost.written_bytes {
        0 => "wrote nothing".to_owned(),
        bytes => {
            let size = figure::decimal_size(bytes as f64, Digits::Two);
            let written = format!("wrote {size} and removed it");
            // Held together where that is no loss: "it" alone on a line looks lost.
            if page.width >= USUAL {
                tied(&written)
            } else {
                written
            }
        }
    });
    if survey.interrupted {
        parts.push("interrupted".to_owned());
    }
    let facts = parts.join("; ");
    let gap = page
        .width
        .saturating_sub(TITLE.len() + facts.chars().count())
        .clamp(2, 14);
    let line = wrap(&facts, page.width.saturating_sub(TITLE.len() + gap), 0);
    let line = line.replace('\n', &format!("\n{}", " ".repeat(TITLE.len() + gap)));
    let title = page.style.paint(Tone::Strong, TITLE);
    format!(
        "{title}{}{line}\n{}",
        " ".repeat(gap),
        hardware(survey, page)
    )
}

/// The line with the processor (and how fast it is alone: is it the memory or the
/// processor?), the kernel and the C library, as far as they are known.
fn hardware(survey: &Survey, page: Page) -> String {
    let machine = &survey.machine;
    let control = survey.control_step_ns.as_ref().map(|step| {
        let time = figure::time(step.median, Digits::Three);
        tied(&format!("fractal control {time} a step"))
    });
    let kernel = machine
        .kernel
        .as_ref()
        .map(|release| format!("Linux {release}"));
    let thp = machine
        .thp
        .as_ref()
        .map(|word| format!("huge pages: {word}"));
    let known: Vec<String> = [
        machine.cpu.clone(),
        control,
        kernel,
        machine.libc.clone(),
        thp,
    ]
    .into_iter()
    .flatten()
    .collect();
    if known.is_empty() {
        return String::new();
    }
    let line = wrap(&known.join(", "), page.width.saturating_sub(1), 1);
    format!(" {}\n", painted_lines(page, Tone::Dim, &line))
}

fn cores(machine: &MachineFacts) -> String {
    let (usable, online) = (machine.usable_cpus, machine.online_cpus);
    let noun = if online.max(usable) == 1 {
        "core"
    } else {
        "cores"
    };
    if usable < online {
        format!("{usable} of {online} {noun}")
    } else {
        format!("{usable} {noun}")
    }
}

/// Levels that were left out, and checks that could not be made: a paragraph each.
fn left_out(survey: &Survey, detail: Detail, page: Page) -> String {
    let skipped = survey
        .skipped
        .iter()
        .map(|skipped| (skipped.reason.as_str(), skipped.name.as_str()));
    let unchecked = match detail {
        Detail::Brief => &[][..],
        Detail::Full => &survey.unchecked,
    };
    let unchecked = unchecked
        .iter()
        .map(|check| (check.reason.as_str(), check.id.as_str()));
    let unseen = survey
        .tiers
        .iter()
        .filter(|tier| tier.grade == model::Grade::Unseen);
    let unseen = unseen.map(|tier| {
        (
            tier.reason.as_deref().unwrap_or("no reason given"),
            tier.name.as_str(),
        )
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
    let line = wrap(&format!("{title} {}", groups.join("; ")), page.width - 1, 4);
    format!(" {}\n", painted_lines(page, Tone::Dim, &line))
}

/// Where the rest of a brief page is, said once.
fn more(survey: &Survey, detail: Detail, page: Page) -> String {
    if detail == Detail::Full || survey.findings.is_empty() {
        return String::new();
    }
    let text = "Evidence, risks and how to confirm each: --details, or --json.";
    let line = wrap(text, page.width - 1, 4);
    format!(" {}\n", painted_lines(page, Tone::Dim, &line))
}

/// Commands that lead on from here; each of them exists.
fn next(survey: &Survey, page: Page) -> String {
    let mut commands = Vec::new();
    if !survey.machine.root {
        commands.push("sudo terrace survey (sees more)");
    }
    commands.push("terrace survey --json");
    commands.push("terrace measure --help");
    let commands: Vec<String> = commands.into_iter().map(tied).collect();
    let line = wrap(&format!("Next: {}", commands.join(", ")), page.width - 1, 7);
    format!(" {line}\n")
}

#[cfg(test)]
mod tests;
