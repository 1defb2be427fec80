//! An engineer who keeps a flight recorder running and asks it afterwards: what stood out, what was
//! it, and who did it? She does not know the times.

use crate::day::{self, DAY_S, SECOND_NS};
use crate::machine_alone;
use crate::support::terrace;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;
use testkit::TempDir;

/// So many moments that are none of the incidents may be listed of a day.
const MOST_FALSE: usize = 2;

/// The explanation of the ring at `path`, as JSON.
fn explained(path: &Path, more: &str) -> Value {
    let text = terrace(&format!("explain {} --json {more}", path.display())).done();
    serde_json::from_str(&text).unwrap()
}

/// A moment of the list: from, to, the claim and who it was.
#[derive(Debug)]
struct Listed {
    from_s: f64,
    to_s: f64,
    at: String,
    who: String,
}

fn listed(explained: &Value) -> Vec<Listed> {
    let moments = explained["moments"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seconds = |value: &Value| value.as_f64().unwrap() / SECOND_NS as f64;
    let one = |moment: &Value| Listed {
        from_s: seconds(&moment["from_ns"]),
        to_s: seconds(&moment["to_ns"]),
        at: text(&moment["at"]),
        who: moment["who"].to_string(),
    };
    moments.iter().map(one).collect()
}

#[test]
fn three_minutes_of_a_made_day_are_found_with_their_names() {
    let _alone = machine_alone();
    for seed in 1..=3 {
        let directory = TempDir::new();
        let path = directory.join("flight");
        let incidents = day::three_incidents(seed);
        day::write(&path, seed, &incidents);
        let started = Instant::now();
        let moments = listed(&explained(&path, ""));
        println!("seed {seed}: {:.2?} to explain a day", started.elapsed());
        let mut others = moments.len();
        for incident in &incidents {
            let (start, end) = (incident.when.start as f64, incident.when.end as f64);
            let mut at = moments.iter().filter(|one| one.from_s < end && one.to_s > start);
            let Some(found) = at.next() else { panic!("seed {seed}: {:?}", incident.kind) };
            assert!(found.from_s >= start - 15.0 && found.to_s <= end + 15.0, "{found:?}");
            assert!(found.who.contains(incident.kind.program()), "{:?}: {found:?}", incident.kind);
            others -= 1 + at.count();
        }
        assert!(others <= MOST_FALSE, "seed {seed}: {moments:#?}");
        let page = terrace(&format!("explain {}", path.display())).done();
        for moment in &moments {
            let command = format!("terrace explain {} --at {}\n", path.display(), moment.at);
            assert!(page.contains(&command), "{command}{page}");
        }
        assert!(page.contains("moments stood out against the usual level of these 24"), "{page}");
        assert!(DAY_S as f64 > moments.last().unwrap().to_s);
    }
}
