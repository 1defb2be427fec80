//! Databases on the modelled hard disk: the clock runs until they answer as before. A way that is
//! not back when the guest's patience ends counts as that long: the figure over it is a least.

use serde_json::Value;

use super::guest::{Guest, HDD, Scene};
use super::{alone, faster_than, scaled, values};
use crate::bench::Session;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

/// Three ways at a minute and a half each, and a database built before.
const TIMEOUT_S: u64 = 900;

const WAYS: [&str; 3] = ["restore", "demand", "swapoff"];

pub(super) fn sqlite(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let database = Database {
        scene: "sqlite",
        packages: &[],
        what: "SQLite with {} MiB of rows in its own cache",
    };
    database.bring_back(guest, session)
}

pub(super) fn postgres(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let database = Database {
        scene: "postgres",
        packages: &["postgresql-15"],
        what: "PostgreSQL with {} MiB of rows in shared buffers",
    };
    database.bring_back(guest, session)
}

struct Database<'a> {
    /// The word of the guest's program.
    scene: &'a str,
    packages: &'a [&'a str],
    /// In words, with `{}` for the MiB.
    what: &'a str,
}

impl Database<'_> {
    fn bring_back(&self, guest: &Guest, session: &mut Session) -> Result<(), Error> {
        let mib = scaled(&session.request, 32).to_string();
        let mut words = vec![self.scene, &mib, "230m"];
        words.extend(WAYS);
        let scene = Scene {
            disks: &[&format!("swap:2G,{HDD}"), &format!("data:2G,{HDD}")],
            memory: "384M",
            packages: self.packages,
            timeout_s: TIMEOUT_S,
            words: &words,
        };
        let lines = guest.play(&scene, session)?;
        let record = &mut session.record;
        let what = self.what.replace("{}", &mib);
        let until = format!("{what}, hard disk, until its former p99 x 1.2");
        tell_who_is_not_back(&lines, &what, record)?;
        alone(record, &lines, (&until, "s", "total_s"), None)?;
        let peers =
            [("demand", "demand", Some(Target::AtLeast(5.0))), ("swapoff", "swapoff", None)];
        faster_than(record, &lines, &until, &peers)?;
        let wrong: Vec<f64> =
            WAYS.iter().flat_map(|way| values(&lines, way, "wrong_rows")).collect();
        record.add_alone(
            &format!("{what}: wrong rows after any way"),
            "rows",
            Series::new(self.scene, &wrong),
            Some(Target::AtMost(0.0)),
        )
    }
}

/// A note for each way that was given up; that of the tool itself leaves no figure.
fn tell_who_is_not_back(lines: &[Value], what: &str, record: &mut Record) -> Result<(), Error> {
    for way in WAYS {
        let of_way = || lines.iter().filter(|line| line["way"] == way);
        let given_up = of_way().filter(|line| line["is_back"] != true).count();
        if given_up == 0 {
            continue;
        }
        if way == "restore" {
            let text = format!("{what}: not as fast as before after a restore");
            return Err(Error::Failed(text));
        }
        let all = of_way().count();
        record.notes.push(format!(
            "{what}: {way} was given up {given_up} of {all} times: its time is at least that"
        ));
    }
    Ok(())
}
