//! The cursor of `terrace top`: the moment, finding and question that the user has selected, and
//! the time scale. Keys change it; nothing here reads a clock or a counter.

use super::processes::ProcessChoice;
use model::duration::SECOND_NS;
use model::explanation::StandingOut;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    Earlier,
    Later,
    PageEarlier,
    PageLater,
    /// The oldest moment.
    Oldest,
    /// The newest one, and all that comes.
    Newest,
    Up,
    Down,
    /// Stop here, or go on.
    Pause,
    /// The next moment that stood out.
    Moment,
    /// The lanes of the next question alone, after the last one all.
    Question,
    /// Less time in a column.
    Closer,
    /// More time in a column.
    Farther,
    /// Processes by the next column to the left, to the right.
    SortLeft,
    SortRight,
    /// The other end of that column first.
    Reverse,
    /// Processes and lanes, processes alone, lanes alone.
    Panes,
    /// Only processes with the letters that follow.
    Filter,
    /// A letter of the filter.
    Letter(char),
    /// Without its last letter.
    Erase,
    /// The filter is typed.
    FilterKept,
    /// No filter.
    FilterDropped,
    Help,
    Quit,
}

/// What the user has selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
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
    /// How processes are ordered, and which are left out.
    pub processes: ProcessChoice,
    /// What stands below the findings.
    pub panes: Panes,
    pub help: bool,
}

/// What stands below the findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panes {
    /// Processes, then lanes.
    #[default]
    Both,
    Processes,
    Lanes,
}

impl Panes {
    fn next(self) -> Self {
        match self {
            Self::Both => Self::Processes,
            Self::Processes => Self::Lanes,
            Self::Lanes => Self::Both,
        }
    }
}

/// The time that was recorded, and how much of it fits on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeExtent {
    pub first_ns: u64,
    /// The newest one.
    pub last_ns: u64,
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

impl Cursor {
    /// The time of a column: as chosen, else a second of what goes on, and of a recording that has
    /// ended so much that all of it fits.
    pub fn column_ns(&self, extent: &TimeExtent) -> u64 {
        let fitting = || {
            let columns = u64::try_from(extent.columns.max(1)).unwrap_or(u64::MAX);
            let least_ns = (extent.last_ns - extent.first_ns).div_ceil(columns);
            let fits = COLUMNS_NS.iter().find(|ns| **ns >= least_ns);
            *fits.unwrap_or(&COLUMNS_NS[COLUMNS_NS.len() - 1])
        };
        let usual = || if extent.is_live { SECOND_NS } else { fitting() };
        self.column_ns.unwrap_or_else(usual)
    }

    /// The end of the last column that is shown.
    pub fn edge_ns(&self, extent: &TimeExtent) -> u64 {
        let newest = self.newest(extent);
        match self.at_ns {
            Some(_) => self.edge_ns.min(newest),
            None => newest,
        }
    }

    /// What is explained: from and to; `None` for all of a recording that has ended.
    pub fn window(&self, extent: &TimeExtent) -> Option<(u64, u64)> {
        let column_ns = self.column_ns(extent);
        let window_ns = if extent.is_live {
            WINDOW_NS
        } else {
            WINDOW_NS.min((extent.last_ns - extent.first_ns) / PARTS)
        };
        let to_ns = match self.at_ns {
            Some(at_ns) => at_ns.min(extent.last_ns),
            None if extent.is_live => extent.last_ns,
            None => return None,
        };
        let from_ns = to_ns.saturating_sub(window_ns.max(column_ns));
        Some((from_ns.max(extent.first_ns), to_ns))
    }

    /// Moves into the recorded time: the oldest samples are dropped while the cursor is on them.
    pub fn keep_within(&mut self, extent: &TimeExtent) {
        if let Some(at_ns) = self.at_ns {
            self.move_to(at_ns, extent);
        }
    }

    /// Performs an action; `findings` are those on the screen, `questions` their number.
    pub fn apply(
        &mut self,
        action: KeyAction,
        extent: &TimeExtent,
        findings: &[String],
        questions: usize,
    ) {
        let page = u64::try_from(extent.columns / 2).unwrap_or(1).max(1);
        match action {
            KeyAction::Earlier => self.step(-1, extent),
            KeyAction::Later => self.step(1, extent),
            KeyAction::PageEarlier => self.step(-(page.cast_signed()), extent),
            KeyAction::PageLater => self.step(page.cast_signed(), extent),
            KeyAction::Oldest => self.move_to(0, extent),
            KeyAction::Newest => self.at_ns = None,
            KeyAction::Pause if self.at_ns.is_some() => self.at_ns = None,
            KeyAction::Pause => self.move_to(self.newest(extent), extent),
            KeyAction::Up => self.choose(findings, -1),
            KeyAction::Down => self.choose(findings, 1),
            KeyAction::Question => {
                let next = self.question.map_or(0, |question| question + 1);
                self.question = Some(next).filter(|next| *next < questions);
            }
            KeyAction::Closer => self.scale(-1, extent),
            KeyAction::Farther => self.scale(1, extent),
            KeyAction::Help => self.help = !self.help,
            KeyAction::Panes => self.panes = self.panes.next(),
            KeyAction::Quit | KeyAction::Moment => {}
            of_processes => self.processes.apply(of_processes),
        }
    }

    /// Goes to the end of the next of these moments; after the last one to the first.
    pub fn go_to_next(&mut self, moments: &[StandingOut], extent: &TimeExtent) {
        let column_ns = self.column_ns(extent);
        let mut ends = moments.iter().map(|moment| moment.to_ns.next_multiple_of(column_ns));
        let Some(first) = ends.clone().next() else { return };
        let after = ends.find(|end| self.at_ns.is_some_and(|at_ns| *end > at_ns));
        self.move_to(after.unwrap_or(first), extent);
    }

    /// The one of these moments that is looked at.
    pub fn of_moments<'m>(
        &self,
        moments: &'m [StandingOut],
        extent: &TimeExtent,
    ) -> Option<&'m StandingOut> {
        let (at_ns, column_ns) = (self.at_ns?, self.column_ns(extent));
        let is_at = |moment: &&StandingOut| {
            moment.from_ns < at_ns && at_ns <= moment.to_ns.next_multiple_of(column_ns)
        };
        moments.iter().find(is_at)
    }

    /// The end of the newest column: of what goes on only complete ones are shown.
    fn newest(&self, extent: &TimeExtent) -> u64 {
        let column_ns = self.column_ns(extent);
        if extent.is_live {
            extent.last_ns / column_ns * column_ns
        } else {
            extent.last_ns.next_multiple_of(column_ns)
        }
    }

    /// Moves by so many columns; beyond the newest one it is live again.
    fn step(&mut self, columns: i64, extent: &TimeExtent) {
        let column_ns = self.column_ns(extent);
        let newest_ns = self.newest(extent);
        let moved_ns = column_ns.saturating_mul(columns.unsigned_abs());
        match (self.at_ns, columns < 0) {
            (None, false) => {}
            (None, true) => self.move_to(newest_ns.saturating_sub(moved_ns - column_ns), extent),
            (Some(at_ns), true) => self.move_to(at_ns.saturating_sub(moved_ns), extent),
            (Some(at_ns), false) if at_ns.saturating_add(moved_ns) > newest_ns => self.at_ns = None,
            (Some(at_ns), false) => self.move_to(at_ns + moved_ns, extent),
        }
    }

    /// Selects the column that ends at `at_ns`, or the nearest one that exists, and scrolls the
    /// lanes no more than necessary.
    fn move_to(&mut self, at_ns: u64, extent: &TimeExtent) {
        let column_ns = self.column_ns(extent);
        let oldest_ns = extent.first_ns / column_ns * column_ns + column_ns;
        let newest_ns = self.newest(extent).max(oldest_ns);
        let edge_ns = self.edge_ns(extent);
        let at_ns = (at_ns / column_ns * column_ns).clamp(oldest_ns, newest_ns);
        let columns = u64::try_from(extent.columns.max(1)).unwrap_or(u64::MAX);
        let most_ns = at_ns.saturating_add(column_ns.saturating_mul(columns - 1));
        self.at_ns = Some(at_ns);
        self.edge_ns = edge_ns.clamp(at_ns, most_ns);
    }

    fn scale(&mut self, by: isize, extent: &TimeExtent) {
        let now_ns = self.column_ns(extent);
        let now = COLUMNS_NS.iter().position(|ns| *ns >= now_ns);
        let next = now.unwrap_or(COLUMNS_NS.len() - 1).saturating_add_signed(by);
        self.column_ns = COLUMNS_NS.get(next).copied().or(self.column_ns);
        // The lanes end at the selected moment, from where one can go on.
        if let Some(at_ns) = self.at_ns {
            self.move_to(at_ns, extent);
            self.edge_ns = self.at_ns.unwrap_or(self.edge_ns);
        }
    }

    fn choose(&mut self, findings: &[String], by: isize) {
        let chosen = self.chosen(findings).saturating_add_signed(by);
        self.finding = findings.get(chosen).or(findings.last()).cloned();
    }

    /// Which of the findings shows its evidence: by its name, which stays when their order changes.
    pub fn chosen(&self, findings: &[String]) -> usize {
        let is_same = |id: &String| Some(id) == self.finding.as_ref();
        findings.iter().position(is_same).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: TimeExtent =
        TimeExtent { first_ns: 0, last_ns: 100_500_000_000, columns: 40, is_live: true };

    const OVER: TimeExtent = TimeExtent { is_live: false, ..LIVE };

    fn after(actions: &[KeyAction], extent: &TimeExtent) -> Cursor {
        let mut cursor = Cursor::default();
        for action in actions {
            cursor.apply(*action, extent, &["a".to_owned(), "b".to_owned()], 4);
        }
        cursor
    }

    fn at_s(actions: &[KeyAction]) -> Option<u64> {
        after(actions, &LIVE).at_ns.map(|ns| ns / SECOND_NS)
    }

    #[test]
    fn the_cursor_walks_and_comes_back_to_now() {
        use KeyAction::*;
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
        let mut cursor = after(&[KeyAction::Earlier], &LIVE);
        let edge_ns = cursor.edge_ns(&LIVE);
        assert_eq!(edge_ns, 100 * SECOND_NS);
        let later = TimeExtent { last_ns: 130 * SECOND_NS, ..LIVE };
        assert_eq!(cursor.edge_ns(&later), edge_ns);
        cursor.apply(KeyAction::Oldest, &later, &[], 4);
        assert_eq!(cursor.edge_ns(&later), 40 * SECOND_NS);
        // Its moment was forgotten meanwhile.
        let forgotten = TimeExtent { first_ns: 20 * SECOND_NS, ..later };
        cursor.keep_within(&forgotten);
        assert_eq!(cursor.at_ns, Some(21 * SECOND_NS));
    }

    #[test]
    fn ten_seconds_are_explained_and_of_a_recording_all() {
        let window = |actions: &[KeyAction], extent: &TimeExtent| {
            let window_ns = after(actions, extent).window(extent);
            window_ns.map(|(from, to)| (from as f64 / 1e9, to as f64 / 1e9))
        };
        assert_eq!(window(&[], &LIVE), Some((90.5, 100.5)));
        assert_eq!(window(&[KeyAction::Earlier], &LIVE), Some((90.0, 100.0)));
        assert_eq!(window(&[KeyAction::Oldest], &LIVE), Some((0.0, 1.0)));
        assert_eq!(window(&[], &OVER), None);
        // 40 columns of 5 s hold 100 s.
        assert_eq!(window(&[KeyAction::Oldest], &OVER), Some((0.0, 5.0)));
        let short = TimeExtent { last_ns: 10 * SECOND_NS, ..OVER };
        assert_eq!(window(&[KeyAction::Pause], &short), Some((8.0, 10.0)));
    }

    #[test]
    fn a_column_is_chosen_and_what_has_ended_fits() {
        assert_eq!(after(&[], &LIVE).column_ns(&LIVE), SECOND_NS);
        assert_eq!(after(&[], &OVER).column_ns(&OVER), 5 * SECOND_NS);
        let far = after(&[KeyAction::Farther, KeyAction::Farther], &LIVE);
        assert_eq!(far.column_ns(&LIVE), 5 * SECOND_NS);
        let mut near = vec![KeyAction::Closer; 50];
        assert_eq!(after(&near, &LIVE).column_ns(&LIVE), SECOND_NS / 10);
        near.fill(KeyAction::Farther);
        assert_eq!(after(&near, &LIVE).column_ns(&LIVE), 86_400 * SECOND_NS);
    }

    #[test]
    fn a_finding_is_followed_by_its_name() {
        let cursor = after(&[KeyAction::Down], &LIVE);
        assert_eq!(cursor.chosen(&["b".to_owned(), "a".to_owned()]), 0);
        assert_eq!(cursor.chosen(&["a".to_owned()]), 0);
        let cursor = after(&[KeyAction::Down, KeyAction::Down, KeyAction::Up], &LIVE);
        assert_eq!(cursor.finding.as_deref(), Some("a"));
    }

    #[test]
    fn questions_come_in_turn_and_then_all() {
        let questions: Vec<_> =
            (0..6).map(|count| after(&vec![KeyAction::Question; count], &LIVE).question).collect();
        assert_eq!(questions, [None, Some(0), Some(1), Some(2), Some(3), None]);
    }
}
