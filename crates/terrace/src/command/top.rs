//! `terrace top`: what hurts right now and why, in a terminal; or at any moment of a recording.
//!
//! Once a second, and after each key, it reads what was recorded, explains it if that is due, and
//! draws the picture. It writes only to the terminal.

mod source;

use super::moments;
use crate::args::When;
use crate::args::recordings::TopArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::style::Toned;
use crate::output::top::screen::Screen;
use crate::output::top::{
    Cursor, Glyphs, KeyAction, Scene, ScreenSize, TimeExtent, names, picture,
};
use crate::output::{self, OutputTarget, Page, wants_colour};
use explain::recording::{RECORDING_WAS_CUT, Window, explain};
use model::explanation::{Explanation, StandingOut};
use model::recording::Recording;
use source::TopSource;
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use viewer::questions::{Question, questions};

/// The least time between two pictures when no key is pressed.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// The least time between two live explanations: reading one takes longer.
const EXPLAIN_EVERY: Duration = Duration::from_secs(2);

/// How long what goes on here is watched for one screen, and how often it is looked at meanwhile.
const WATCHED_ONCE: Duration = Duration::from_secs(3);
const LOOK_ONCE: Duration = Duration::from_millis(200);

/// The lines of one screen that is printed.
const HEIGHT_ONCE: usize = 50;

/// What explaining may take of a processor: one part of so many.
const SHARE: u32 = 200;

/// Shows the pictures until a key or a signal ends it.
///
/// # Errors
/// If there is no terminal, or nothing to show.
pub fn top(args: &TopArgs, color: When) -> Result<Exit> {
    if !args.once && (!stdin().is_terminal() || !stdout().is_terminal()) {
        let error = Error::usage("it needs a terminal: standard input and output must be one");
        return Err(
            error.hint("`--once` needs none, nor do `terrace record` and `terrace explain`")
        );
    }
    let source = TopSource::open(args)?;
    let mut whole = Explanation::default();
    if let Some(path) = args.file.as_ref().filter(|_| !source.is_live()) {
        source.look(|recording| moments::add_shown(&mut whole, path, recording, false));
    }
    let glyphs = Glyphs::of_locale(|name| std::env::var(name).ok());
    let mut session = Session {
        file: args.file.as_deref().map(super::name_of),
        source,
        cursor: Cursor::default(),
        questions: questions().map_err(|why| Error::new(Exit::Partial, why.to_string()))?,
        glyphs,
        explained: None,
        moments: whole.moments,
        next: Instant::now(),
    };
    if args.once {
        return Ok(output::show(&session.once(Page::of(&OutputTarget::standard(), color))));
    }
    let shown =
        Screen::open(wants_colour(color, true)).and_then(|mut screen| session.show(&mut screen));
    match shown {
        // A terminal that went away, with or without its signal, is an end like another.
        Err(_) if sys::interrupt::requested() || is_gone() => Ok(Exit::Done),
        Err(error) => {
            let why = sys::plain_reason(&error);
            Err(Error::new(Exit::Partial, format!("the terminal failed: {why}")))
        }
        Ok(()) => Ok(Exit::Done),
    }
}

fn is_gone() -> bool {
    sys::poll::is_hung_up(stdin().as_fd())
}

/// The state of one session.
struct Session {
    source: TopSource,
    file: Option<String>,
    cursor: Cursor,
    questions: Vec<Question>,
    glyphs: Glyphs,
    explained: Option<Explained>,
    /// What stood out in a recording that has ended.
    moments: Vec<StandingOut>,
    /// Not before this is what goes on explained anew.
    next: Instant,
}

/// An explanation, and of what.
struct Explained {
    window: Option<(u64, u64)>,
    is_live: bool,
    explanation: Explanation,
}

impl Session {
    /// One screen as text, without the line of keys.
    fn once(&mut self, page: Page) -> String {
        let size = ScreenSize { width: page.width, height: HEIGHT_ONCE };
        let begun = Instant::now();
        let mut extent = self.look(size);
        while self.source.is_live()
            && self.source.is_here()
            && begun.elapsed() < WATCHED_ONCE
            && !sys::interrupt::requested()
        {
            std::thread::sleep(LOOK_ONCE);
            extent = self.look(size);
        }
        self.next = Instant::now();
        extent = if self.source.is_live() { self.look(size) } else { extent };
        let mut lines = self.picture(extent, size);
        lines.pop();
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        let painted = |line: &Toned| -> String {
            line.iter().map(|(tone, text)| page.style.paint(*tone, text)).collect()
        };
        lines.iter().map(|line| painted(line).trim_end().to_owned() + "\n").collect()
    }

    fn show(&mut self, screen: &mut Screen) -> std::io::Result<()> {
        while !sys::interrupt::requested() {
            let size = screen.size()?;
            let extent = self.look(size);
            screen.draw(&self.picture(extent, size))?;
            screen.wait(u64::try_from(DRAW_EVERY.as_nanos()).unwrap_or(u64::MAX));
            for action in screen.actions(self.cursor.processes.is_typing)? {
                if action == KeyAction::Quit {
                    return Ok(());
                }
                if action == KeyAction::Moment {
                    self.cursor.go_to_next(&self.moments, &extent);
                    continue;
                }
                let findings =
                    self.explained.as_ref().map(|explained| names(&explained.explanation));
                let findings = findings.unwrap_or_default();
                self.cursor.apply(action, &extent, &findings, self.questions.len());
            }
        }
        Ok(())
    }

    /// Reads what is new, and explains what is looked at where its turn has come.
    fn look(&mut self, size: ScreenSize) -> TimeExtent {
        self.source.advance();
        let is_live = self.source.is_live();
        let extent = self.source.look(|recording| extent(recording, size, is_live));
        self.cursor.keep_within(&extent);
        let window = self.cursor.window(&extent);
        let is_new = self
            .explained
            .as_ref()
            .is_none_or(|explained| (explained.window, explained.is_live) != (window, is_live));
        // What goes on is new each time; what was chosen is waited for.
        let is_due = self.cursor.at_ns.is_some() || !is_live || Instant::now() >= self.next;
        if is_new && is_due && extent.last_ns > extent.first_ns {
            self.explain(window, is_live);
        }
        extent
    }

    fn explain(&mut self, window: Option<(u64, u64)>, is_live: bool) {
        let started = Instant::now();
        let asked = window.map_or(Window::default(), |(from_ns, to_ns)| Window {
            from_ns: Some(from_ns),
            to_ns: Some(to_ns),
        });
        let mut explanation = self.source.look(|recording| explain(recording, asked));
        if is_live {
            explanation.doubts.retain(|doubt| doubt != RECORDING_WAS_CUT);
        }
        self.explained = Some(Explained { window, is_live, explanation });
        let now = Instant::now();
        self.next = started + EXPLAIN_EVERY.max((now - started) * SHARE);
    }

    fn picture(&self, extent: TimeExtent, size: ScreenSize) -> Vec<crate::output::style::Toned> {
        self.source.look(|recording| {
            picture(&Scene {
                recording,
                explanation: self.explained.as_ref().map(|explained| &explained.explanation),
                cursor: &self.cursor,
                extent,
                moments: &self.moments,
                file: self.file.as_deref(),
                questions: &self.questions,
                glyphs: self.glyphs,
                size,
            })
        })
    }
}

fn extent(recording: &Recording, size: ScreenSize, is_live: bool) -> TimeExtent {
    let at_ns = |tick: Option<&model::recording::Tick>| tick.map_or(0, |tick| tick.at_ns);
    let last_ns = if is_live { at_ns(recording.ticks.last()) } else { recording.wall_ns() };
    let first_ns = at_ns(recording.ticks.first());
    TimeExtent { first_ns, last_ns: last_ns.max(first_ns), columns: size.columns(), is_live }
}
