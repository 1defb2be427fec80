//! What somebody looks at: which moment, which finding, which question, how much time at once.
//! Keys change it; nothing here reads a clock or a counter.

use model::duration::SECOND_NS;

/// What a person can ask for with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// One column earlier.
    Earlier,
    /// One column later.
    Later,
    /// Half a screen earlier.
    PageEarlier,
    /// Half a screen later.
    PageLater,
    /// The oldest moment.
    Oldest,
    /// The newest one, and all that comes.
    Newest,
    /// The finding above.
    Up,
    /// The finding below.
    Down,
    /// Stop here, or go on.
    Pause,
    /// The lanes of the next question alone, after the last one all.
    Question,
    /// Less time in a column.
    Closer,
    /// More time in a column.
    Farther,
    /// The keys.
    Help,
    /// The end.
    Quit,
}

/// What is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaze {
    /// The end of the column that is looked at; the newest moment where absent.
    pub at_ns: Option<u64>,
    /// The end of the last column that is shown, while one is looked at.
    edge_ns: u64,
    /// The time of a column, where one was chosen.
    column_ns: Option<u64>,
    /// The finding that shows its evidence; the first where absent.
    pub finding: Option<String>,
    /// The question whose lanes alone are shown.
    pub question: Option<usize>,
    /// Whether the keys are shown.
    pub help: bool,
}

/// What there is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The oldest sample.
    pub first_ns: u64,
    /// The newest one.
    pub last_ns: u64,
    /// The columns of a lane.
    pub columns: usize,
    /// Whether more will come.
    pub is_live: bool,
}

/// The times of a column that can be chosen: what people read off a clock.
const COLUMNS_NS: [u64; 19] = {
    let tenths = [
        1, 2, 5, 10, 20, 50, 100, 150, 300, 600, 1_200, 3_000, 6_000, 9_000, 18_000, 36_000,
        108_000, 216_000, 864_000,
    ];
    let mut ns = [0; 19];
    let mut index = 0;
    while index < tenths.len() {
        ns[index] = tenths[index] * (SECOND_NS / 10);
        index += 1;
    }
    ns
};

/// What is explained before the moment that is looked at: long enough for a cause to show,
/// short enough to be "now".
const WINDOW_NS: u64 = 10 * SECOND_NS;

/// Of a short recording that has ended, this part of it.
const PARTS: u64 = 5;

impl Gaze {
    /// The time of a column: as chosen, else a second of what goes on, and of a recording that has
    /// ended so much that all of it fits.
    pub fn column_ns(&self, reach: &Reach) -> u64 {
        let fitting = || {
            let columns = u64::try_from(reach.columns.max(1)).unwrap_or(u64::MAX);
            let least_ns = (reach.last_ns - reach.first_ns).div_ceil(columns);
            let fits = COLUMNS_NS.iter().find(|ns| **ns >= least_ns);
            *fits.unwrap_or(&COLUMNS_NS[COLUMNS_NS.len() - 1])
        };
        let usual = || if reach.is_live { SECOND_NS } else { fitting() };
        self.column_ns.unwrap_or_else(usual)
    }

    /// The end of the last column that is shown.
    pub fn edge_ns(&self, reach: &Reach) -> u64 {
        let newest = self.newest(reach);
        match self.at_ns {
            Some(_) => self.edge_ns.min(newest),
            None => newest,
        }
    }

    /// What is explained: from and to; `None` for all of a recording that has ended.
    pub fn window(&self, reach: &Reach) -> Option<(u64, u64)> {
        let column_ns = self.column_ns(reach);
        let window_ns = match reach.is_live {
            true => WINDOW_NS,
            false => WINDOW_NS.min((reach.last_ns - reach.first_ns) / PARTS),
        };
        let to_ns = match self.at_ns {
            Some(at_ns) => at_ns.min(reach.last_ns),
            None if reach.is_live => reach.last_ns,
            None => return None,
        };
        let from_ns = to_ns.saturating_sub(window_ns.max(column_ns));
        Some((from_ns.max(reach.first_ns), to_ns))
    }

    /// Keeps to what there still is: the oldest moments are forgotten while somebody looks.
    pub fn keep_within(&mut self, reach: &Reach) {
        if let Some(at_ns) = self.at_ns {
            self.look_at(at_ns, reach);
        }
    }

    /// Does what a key asks for; `findings` are those on the screen, `questions` their number.
    pub fn turn(&mut self, wish: Wish, reach: &Reach, findings: &[String], questions: usize) {
        let page = u64::try_from(reach.columns / 2).unwrap_or(1).max(1);
        match wish {
            Wish::Earlier => self.step(-1, reach),
            Wish::Later => self.step(1, reach),
            Wish::PageEarlier => self.step(-(page.cast_signed()), reach),
            Wish::PageLater => self.step(page.cast_signed(), reach),
            Wish::Oldest => self.look_at(0, reach),
            Wish::Newest => self.at_ns = None,
            Wish::Pause if self.at_ns.is_some() => self.at_ns = None,
            Wish::Pause => self.look_at(self.newest(reach), reach),
            Wish::Up => self.choose(findings, -1),
            Wish::Down => self.choose(findings, 1),
            Wish::Question => {
                let next = self.question.map_or(0, |question| question + 1);
                self.question = Some(next).filter(|next| *next < questions);
            }
            Wish::Closer => self.scale(-1, reach),
            Wish::Farther => self.scale(1, reach),
            Wish::Help => self.help = !self.help,
            Wish::Quit => {}
        }
    }

    /// The end of the newest column: of what goes on only complete ones are shown.
    fn newest(&self, reach: &Reach) -> u64 {
        let column_ns = self.column_ns(reach);
        match reach.is_live {
            true => reach.last_ns / column_ns * column_ns,
            false => reach.last_ns.next_multiple_of(column_ns),
        }
    }

    /// Moves by so many columns; beyond the newest one it is live again.
    fn step(&mut self, columns: i64, reach: &Reach) {
        let column_ns = self.column_ns(reach);
        let newest_ns = self.newest(reach);
        let moved_ns = column_ns.saturating_mul(columns.unsigned_abs());
        match (self.at_ns, columns < 0) {
            (None, false) => {}
            (None, true) => self.look_at(newest_ns.saturating_sub(moved_ns - column_ns), reach),
            (Some(at_ns), true) => self.look_at(at_ns.saturating_sub(moved_ns), reach),
            (Some(at_ns), false) if at_ns.saturating_add(moved_ns) > newest_ns => self.at_ns = None,
            (Some(at_ns), false) => self.look_at(at_ns + moved_ns, reach),
        }
    }

    /// Looks at the column that ends at `at_ns`, or the next one that there is, and moves what is
    /// shown no more than it must.
    fn look_at(&mut self, at_ns: u64, reach: &Reach) {
        let column_ns = self.column_ns(reach);
        let oldest_ns = reach.first_ns / column_ns * column_ns + column_ns;
        let newest_ns = self.newest(reach).max(oldest_ns);
        let edge_ns = self.edge_ns(reach);
        let at_ns = (at_ns / column_ns * column_ns).clamp(oldest_ns, newest_ns);
        let columns = u64::try_from(reach.columns.max(1)).unwrap_or(u64::MAX);
        let most_ns = at_ns.saturating_add(column_ns.saturating_mul(columns - 1));
        self.at_ns = Some(at_ns);
        self.edge_ns = edge_ns.clamp(at_ns, most_ns);
    }

    fn scale(&mut self, by: isize, reach: &Reach) {
        let now_ns = self.column_ns(reach);
        let index = COLUMNS_NS.iter().position(|ns| *ns >= now_ns);
        let index = index
            .unwrap_or(COLUMNS_NS.len() - 1)
            .saturating_add_signed(by);
        let at_ns = self.at_ns;
        self.column_ns = COLUMNS_NS.get(index).copied().or(self.column_ns);
        // The lanes end at the moment that is looked at, from where one can go on.
        if let Some(at_ns) = at_ns {
            self.look_at(at_ns, reach);
            self.edge_ns = self.at_ns.unwrap_or(self.edge_ns);
        }
    }

    fn choose(&mut self, findings: &[String], by: isize) {
        let chosen = self.chosen(findings).saturating_add_signed(by);
        self.finding = findings.get(chosen).or(findings.last()).cloned();
    }

    /// Which of the findings shows its evidence: by its name, which stays when their order changes.
    pub fn chosen(&self, findings: &[String]) -> usize {
        let same = findings
            .iter()
            .position(|id| Some(id) == self.finding.as_ref());
        same.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Reach = Reach {
        first_ns: 0,
        last_ns: 100_500_000_000,
        columns: 40,
        is_live: true,
    };

    const OVER: Reach = Reach {
        is_live: false,
        ..LIVE
    };

    fn after(wishes: &[Wish], reach: &Reach) -> Gaze {
        let mut gaze = Gaze::default();
        for wish in wishes {
            gaze.turn(*wish, reach, &["a".to_owned(), "b".to_owned()], 4);
        }
        gaze
    }

    fn at_s(wishes: &[Wish]) -> Option<u64> {
        after(wishes, &LIVE).at_ns.map(|ns| ns / SECOND_NS)
    }

    #[test]
    fn the_cursor_walks_and_comes_back_to_now() {
        use Wish::*;
        assert_eq!(at_s(&[]), None);
        assert_eq!(at_s(&[Earlier]), Some(100));
        assert_eq!(at_s(&[Earlier, Earlier, Earlier]), Some(98));
        assert_eq!(at_s(&[Earlier, Earlier, Later]), Some(100));
        assert_eq!(at_s(&[Earlier, Later]), None);
        assert_eq!(at_s(&[PageEarlier]), Some(81));
        assert_eq!(at_s(&[PageEarlier, PageLater]), None);
        assert_eq!(at_s(&[Oldest]), Some(1));
        assert_eq!(at_s(&[Oldest, Earlier]), Some(1));
        assert_eq!(at_s(&[Oldest, Newest]), None);
        assert_eq!(at_s(&[Pause]), Some(100));
        assert_eq!(at_s(&[Pause, Pause]), None);
        assert_eq!(at_s(&[Later]), None);
    }

    #[test]
    fn what_is_shown_stands_still_and_follows_the_cursor() {
        let mut gaze = after(&[Wish::Earlier], &LIVE);
        let edge_ns = gaze.edge_ns(&LIVE);
        assert_eq!(edge_ns, 100 * SECOND_NS);
        let later = Reach {
            last_ns: 130 * SECOND_NS,
            ..LIVE
        };
        assert_eq!(gaze.edge_ns(&later), edge_ns);
        gaze.turn(Wish::Oldest, &later, &[], 4);
        assert_eq!(gaze.edge_ns(&later), 40 * SECOND_NS);
        // Its moment was forgotten meanwhile.
        let forgotten = Reach {
            first_ns: 20 * SECOND_NS,
            ..later
        };
        gaze.keep_within(&forgotten);
        assert_eq!(gaze.at_ns, Some(21 * SECOND_NS));
    }

    #[test]
    fn ten_seconds_are_explained_and_of_a_recording_all() {
        let window = |wishes: &[Wish], reach: &Reach| {
            let window = after(wishes, reach).window(reach);
            window.map(|(from, to)| (from as f64 / 1e9, to as f64 / 1e9))
        };
        assert_eq!(window(&[], &LIVE), Some((90.5, 100.5)));
        assert_eq!(window(&[Wish::Earlier], &LIVE), Some((90.0, 100.0)));
        assert_eq!(window(&[Wish::Oldest], &LIVE), Some((0.0, 1.0)));
        assert_eq!(window(&[], &OVER), None);
        // 40 columns of 5 s hold 100 s.
        assert_eq!(window(&[Wish::Oldest], &OVER), Some((0.0, 5.0)));
        let short = Reach {
            last_ns: 10 * SECOND_NS,
            ..OVER
        };
        assert_eq!(window(&[Wish::Pause], &short), Some((8.0, 10.0)));
    }

    #[test]
    fn a_column_is_chosen_and_what_has_ended_fits() {
        assert_eq!(after(&[], &LIVE).column_ns(&LIVE), SECOND_NS);
        assert_eq!(after(&[], &OVER).column_ns(&OVER), 5 * SECOND_NS);
        let far = after(&[Wish::Farther, Wish::Farther], &LIVE);
        assert_eq!(far.column_ns(&LIVE), 5 * SECOND_NS);
        let mut near = vec![Wish::Closer; 50];
        assert_eq!(after(&near, &LIVE).column_ns(&LIVE), SECOND_NS / 10);
        near.fill(Wish::Farther);
        assert_eq!(after(&near, &LIVE).column_ns(&LIVE), 86_400 * SECOND_NS);
    }

    #[test]
    fn a_finding_is_followed_by_its_name() {
        let gaze = after(&[Wish::Down], &LIVE);
        assert_eq!(gaze.chosen(&["b".to_owned(), "a".to_owned()]), 0);
        assert_eq!(gaze.chosen(&["a".to_owned()]), 0);
        let gaze = after(&[Wish::Down, Wish::Down, Wish::Up], &LIVE);
        assert_eq!(gaze.finding.as_deref(), Some("a"));
    }

    #[test]
    fn questions_come_in_turn_and_then_all() {
        let questions: Vec<_> = (0..6)
            .map(|count| after(&vec![Wish::Question; count], &LIVE).question)
            .collect();
        assert_eq!(questions, [None, Some(0), Some(1), Some(2), Some(3), None]);
    }
}
