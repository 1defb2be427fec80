//! The first users of each figure of a recording, whether or not anything hurt.
//!
//! A figure is listed only if enough of it was used to ask who did: an idle machine has no users.

use super::quantity::Quantity;
use super::ranking::{Ranking, User};
use super::sentence::Names;
use super::totals;
use crate::recording::View;
use model::Grade;
use model::explanation::FigureUse;
use model::recording::{ProcessFigure as Figure, Subject};

/// So many are listed.
const MOST_LISTED: usize = 3;

/// Who has less than this share is not listed. Picked, as a finding's.
const LEAST_SHARE: f64 = 0.05;

/// The figures that are listed, in their order.
const LISTED: [Quantity; 6] = [
    Quantity::Figure(Figure::Cpu),
    Quantity::Figure(Figure::Queue),
    Quantity::Figure(Figure::BlockWait),
    Quantity::Figure(Figure::ReadBytes),
    Quantity::Figure(Figure::WrittenBytes),
    Quantity::MemoryGrowth,
];

/// Least use of a processor, and least wait of a thread, as a share of wall time. Picked: what the
/// services of an idle desktop use together stays below.
const LEAST_TIME: f64 = 0.1;

/// Least bytes, whatever the time. Picked.
const LEAST_BYTES: u64 = 64 << 20;

/// And least bytes a second. Picked: the logs of an idle server stay below.
const LEAST_BYTES_PER_S: f64 = 65_536.0;

/// The first users of each figure that was used much.
pub fn usage(view: &View, names: Names) -> Vec<FigureUse> {
    let has_outside = !matches!(view.facts().subject, Subject::Machine | Subject::Probe { .. });
    let each = LISTED.into_iter().filter_map(|quantity| {
        let own = totals::of_subject(view, quantity);
        let all = if has_outside { None } else { totals::of_machine(view, quantity) };
        let ranking = Ranking::of(view.process_sums(), quantity, own.max(all));
        if !is_much(view, quantity, ranking.total) {
            return None;
        }
        let first = listed(&ranking.users);
        let is_listed = !first.is_empty();
        let to_uses = |users: Vec<User>| {
            users.iter().map(|user| user.to_use(Grade::Measured, names)).collect()
        };
        is_listed.then(|| FigureUse {
            figure: quantity.id().to_owned(),
            total: ranking.total,
            unit: quantity.unit().to_owned(),
            others: ranking.others(&first),
            first: to_uses(first),
            groups: to_uses(listed(&ranking.groups)),
        })
    });
    each.collect()
}

fn listed<'a>(users: &[User<'a>]) -> Vec<User<'a>> {
    let first = users.iter().take(MOST_LISTED);
    first.filter(|user| user.share >= LEAST_SHARE).cloned().collect()
}

fn is_much(view: &View, quantity: Quantity, total: u64) -> bool {
    let wall_ns = view.wall_ns() as f64;
    match quantity.unit() {
        "ns" => total as f64 >= wall_ns * LEAST_TIME,
        _ => total >= LEAST_BYTES && total as f64 >= wall_ns / 1e9 * LEAST_BYTES_PER_S,
    }
}
