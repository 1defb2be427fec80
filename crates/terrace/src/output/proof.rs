//! The card of a claim, as Markdown or as one small HTML file: the claim, what moved, and the
//! two recordings. Pure: a [`ProofCard`] becomes text.

use super::markdown::{code_in_cell, sentence, text as plain};
use super::prose::{long_time, value};
use model::Evidence;
use model::proof::{CounterChange, ProofCard, Run};

pub fn markdown(card: &ProofCard) -> String {
    let mut text = format!("> {}\n\n**{}**\n", plain(&card.claim), sentence(&card.verdict));
    if !card.counters.is_empty() {
        text.push_str("\n| counter | first | second | change | why it is here |\n");
        text.push_str("|---|---:|---:|---:|---|\n");
    }
    for counter in &card.counters {
        let [first, second, change] = figures(counter);
        text.push_str(&format!(
            "| {} | {first} | {second} | {change} | {} |\n",
            code_in_cell(&counter.series),
            plain(&counter.why)
        ));
    }
    for (title, run) in [("First", &card.first), ("Second", &card.second)] {
        text.push_str(&format!("\n{title}: {}\n", plain(&describe(run))));
    }
    text.push_str(&format!("\n{}\n", made_by()));
    text
}

/// The card as a page that loads nothing, light and dark.
pub fn html(card: &ProofCard) -> String {
    let row = |counter: &CounterChange| {
        let [first, second, change] = figures(counter);
        let class = if counter.moved { "moved" } else { "still" };
        format!(
            "<tr class=\"{class}\"><th scope=\"row\"><code>{}</code><small>{}</small></th>\
             <td>{first}</td><td>{second}</td><td>{change}</td></tr>\n",
            escaped(&counter.series),
            escaped(&counter.why)
        )
    };
    let rows: String = card.counters.iter().map(row).collect();
    let table = if card.counters.is_empty() {
        String::new()
    } else {
        format!(
            "<table>\n<thead><tr><th scope=\"col\">counter</th><th scope=\"col\">first</th>\
             <th scope=\"col\">second</th><th scope=\"col\">change</th></tr></thead>\n\
             <tbody>\n{rows}</tbody>\n</table>\n"
        )
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{claim}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{claim}</h1>\n<p class=\"verdict\">{verdict}</p>\n{table}\
         <p>First: {first}<br>Second: {second}</p>\n<footer>{made}</footer>\n</main>\n</body>\n</html>\n",
        claim = escaped(&card.claim),
        verdict = escaped(&card.verdict.replace('`', "")),
        first = escaped(&describe(&card.first)),
        second = escaped(&describe(&card.second)),
        made = made_by(),
    )
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #57606a; --mark: #9a3412; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #161b22; --line: #30363d; --soft: #9da7b1; --mark: #fdba74; } }
body { margin: 1rem; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
main { max-width: 44rem; margin: auto; padding: 1.25rem; border: 1px solid var(--line); border-radius: 8px; }
h1 { margin: 0 0 .5rem; font-size: 1.35rem; }
.verdict { font-weight: 600; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-top: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child { text-align: left; font-weight: 400; overflow-wrap: anywhere; }
small { display: block; color: var(--soft); }
.moved td:last-child { color: var(--mark); font-weight: 600; }
p, footer { color: var(--soft); overflow-wrap: anywhere; }
.verdict { color: var(--ink); }
";

/// What it was in the first, in the second, and how it changed.
fn figures(counter: &CounterChange) -> [String; 3] {
    let shown = |amount: Option<f64>| match amount {
        Some(amount) => value(&Evidence::new("", amount, counter.unit.as_str(), "")),
        None => "not recorded".to_owned(),
    };
    [shown(counter.first), shown(counter.second), change(counter)]
}

/// `x 4.1`, `to nothing`, `none`.
fn change(counter: &CounterChange) -> String {
    let Some((first, second)) = counter.first.zip(counter.second) else {
        return "-".to_owned();
    };
    if !counter.moved {
        "did not move".to_owned()
    } else if first == 0.0 {
        "from nothing".to_owned()
    } else if second == 0.0 {
        "to nothing".to_owned()
    } else if second > first {
        format!("x {}", model::bytes::three_digits(second / first))
    } else {
        format!("/ {}", model::bytes::three_digits(first / second))
    }
}

fn describe(run: &Run) -> String {
    format!("{}, {} ({})", run.subject, long_time(run.wall_ns), run.file)
}

fn made_by() -> String {
    format!("terrace proof {}", env!("CARGO_PKG_VERSION"))
}

/// Text that is no markup in HTML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> ProofCard {
        let run = |file: &str| Run {
            file: file.to_owned(),
            subject: "cat <x>".to_owned(),
            wall_ns: 1_500_000_000,
        };
        let counter = |series: &str, first, second, moved| CounterChange {
            series: series.to_owned(),
            unit: "count".to_owned(),
            source: "/proc/vmstat".to_owned(),
            first,
            second,
            moved,
            why: "the claim says \"swap\"".to_owned(),
        };
        ProofCard {
            claim: "<script>alert(1)</script> | `swap` is *fast*".to_owned(),
            first: run("a.trec"),
            second: run("b.trec"),
            verdict: "One counter moved: `vmstat.pswpin`.".to_owned(),
            counters: vec![
                counter("vmstat.pswpin", Some(8000.0), Some(2000.0), true),
                counter("vmstat.pswpout", Some(0.0), Some(900.0), true),
                counter("vmstat.x", Some(9.0), None, false),
            ],
        }
    }

    #[test]
    fn the_markdown_tells_what_moved() {
        let text = markdown(&card());
        for words in [
            "> &lt;script&gt;alert(1)&lt;/script&gt; \\| \\`swap\\`",
            "| `vmstat.pswpin` | 8000 | 2000 | / 4 |",
            "| 0 | 900 | from nothing |",
            "| 9 | not recorded | - |",
            "First: cat &lt;x&gt;, 1.5 s (a.trec)",
        ] {
            assert!(text.contains(words), "{words} in\n{text}");
        }
    }

    #[test]
    fn the_page_loads_nothing_and_runs_nothing() {
        let text = html(&card());
        assert!(text.contains("<h1>&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
        for never in ["<script", "http:", "https:", "src=", "href=", "url("] {
            assert!(!text.contains(never), "{never} in\n{text}");
        }
        assert!(text.contains("default-src 'none'") && text.contains("prefers-color-scheme: dark"));
        assert!(text.len() < 8_000);
    }
}
