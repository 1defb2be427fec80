//! The terminal while a picture stands on it: its lines drawn, and its own state given back however
//! the program ends, but for SIGKILL.
//!
//! Colours are the terminal's own sixteen and the background stays as it is, so that dark and light
//! ones suit alike.

use super::{KeyAction, ScreenSize};
use crate::output::clean::spaced;
use crate::output::style::{Tone, Toned};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Widget;
use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::time::Duration;

/// A picture of 200 columns and 60 lines with its colours is written at once.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// A terminal that shows pictures. Its methods fail if the terminal is gone.
#[derive(Debug)]
pub struct Screen {
    /// Never dropped: it would print to a terminal that is gone, which panics. What it would
    /// do is done by [`give_back`].
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    coloured: bool,
}

impl Screen {
    /// Takes over the terminal; a panic restores it before its message is printed.
    pub fn open(coloured: bool) -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        force_color_output(coloured);
        enable_raw_mode()?;
        let opened = Self::opened(coloured);
        if opened.is_err() {
            give_back();
        }
        opened
    }

    fn opened(coloured: bool) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(WRITTEN_AT_ONCE, stdout());
        // Not by `Terminal::clear`, which asks the terminal where its cursor is and waits for an
        // answer.
        execute!(out, EnterAlternateScreen, Clear(ClearType::All))?;
        // Now, so that a change of its size is noticed from here on.
        event::poll(Duration::ZERO)?;
        Ok(Self {
            terminal: ManuallyDrop::new(Terminal::new(CrosstermBackend::new(out))?),
            coloured,
        })
    }

    /// How large it is now.
    pub fn size(&self) -> io::Result<ScreenSize> {
        let size = self.terminal.size()?;
        Ok(ScreenSize { width: size.width.into(), height: size.height.into() })
    }

    /// Draws the lines from the top.
    pub fn draw(&mut self, lines: &[Toned]) -> io::Result<()> {
        let lines = Lines { lines, coloured: self.coloured };
        let drawn = self.terminal.draw(|frame| frame.render_widget(lines, frame.area()));
        drawn.map(drop)
    }

    /// Waits for a key, a change of the size or a signal, at most so long.
    pub fn wait(&self, limit_ns: u64) {
        let stdin = io::stdin();
        let _ = sys::poll::readable([Some(stdin.as_fd())], Some(limit_ns));
    }

    /// The actions of the keys pressed since the last call. While `is_typing` keys are letters of
    /// the filter.
    pub fn actions(&mut self, mut is_typing: bool) -> io::Result<Vec<KeyAction>> {
        // crossterm would read its end for ever.
        if sys::poll::is_hung_up(io::stdin().as_fd()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut actions = Vec::new();
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                let action = action_of(key, is_typing);
                match action {
                    Some(KeyAction::Filter) => is_typing = true,
                    Some(KeyAction::FilterKept | KeyAction::FilterDropped) => is_typing = false,
                    _ => {}
                }
                actions.extend(action);
            }
        }
        Ok(actions)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back. One that is gone needs nothing.
fn give_back() {
    let _ = disable_raw_mode();
    let mut out = stdout();
    let _ = execute!(out, LeaveAlternateScreen, Show);
    let _ = out.flush();
}

fn action_of(key: KeyEvent, is_typing: bool) -> Option<KeyAction> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(KeyAction::Quit);
    }
    if is_typing && let Some(action) = typed(key.code) {
        return Some(action);
    }
    Some(match key.code {
        KeyCode::Left | KeyCode::Char('h') => KeyAction::Earlier,
        KeyCode::Right | KeyCode::Char('l') => KeyAction::Later,
        KeyCode::PageUp => KeyAction::PageEarlier,
        KeyCode::PageDown => KeyAction::PageLater,
        KeyCode::Home => KeyAction::Oldest,
        KeyCode::End => KeyAction::Newest,
        KeyCode::Up | KeyCode::Char('k') => KeyAction::Up,
        KeyCode::Down | KeyCode::Char('j') => KeyAction::Down,
        KeyCode::Char(' ') => KeyAction::Pause,
        KeyCode::Tab => KeyAction::Question,
        KeyCode::Char('+' | '=') => KeyAction::Closer,
        KeyCode::Char('-') => KeyAction::Farther,
        KeyCode::Char('<' | ',') => KeyAction::SortLeft,
        KeyCode::Char('>' | '.') => KeyAction::SortRight,
        KeyCode::Char('r') => KeyAction::Reverse,
        KeyCode::Char('p') => KeyAction::Panes,
        KeyCode::Char('m') => KeyAction::Moment,
        KeyCode::Char('/') => KeyAction::Filter,
        KeyCode::Char('?') => KeyAction::Help,
        KeyCode::Char('q') | KeyCode::Esc => KeyAction::Quit,
        _ => return None,
    })
}

/// What a key does to the filter while it is typed; `None` for keys that do what they always do.
fn typed(key: KeyCode) -> Option<KeyAction> {
    match key {
        KeyCode::Char(letter) => Some(KeyAction::Letter(letter)),
        KeyCode::Backspace => Some(KeyAction::Erase),
        KeyCode::Enter => Some(KeyAction::FilterKept),
        KeyCode::Esc => Some(KeyAction::FilterDropped),
        _ => None,
    }
}

/// Lines of toned text, as ratatui draws them.
struct Lines<'a> {
    lines: &'a [Toned],
    coloured: bool,
}

impl Widget for Lines<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for (row, line) in (area.top()..area.bottom()).zip(self.lines) {
            let mut column = area.left();
            for (tone, text) in line {
                // A name may hold line ends and worse; the screen stays a screen.
                let text = text.replace('\u{a0}', " ");
                let clean = spaced(&text);
                let room = usize::from(area.right().saturating_sub(column));
                let style = style(*tone, self.coloured);
                (column, _) = buffer.set_stringn(column, row, clean, room, style);
            }
        }
    }
}

fn style(tone: Tone, coloured: bool) -> Style {
    let style = Style::new();
    let colour = |colour: Color| if coloured { style.fg(colour) } else { style };
    match tone {
        Tone::Plain => style,
        Tone::Strong => style.add_modifier(Modifier::BOLD),
        Tone::Dim => style.add_modifier(Modifier::DIM),
        Tone::Warn => colour(Color::Yellow),
        Tone::Busy => colour(Color::Green),
        Tone::Device => colour(Color::Cyan),
        Tone::Unknown => colour(Color::Magenta),
        Tone::Marked => style.add_modifier(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::backend::TestBackend;

    fn drawn(width: u16, height: u16, coloured: bool) -> Buffer {
        let lines = [
            vec![(Tone::Warn, "ab".to_owned()), (Tone::Marked, "c\n\u{1b}d".to_owned())],
            vec![(Tone::Plain, "0123456789".to_owned())],
            vec![(Tone::Plain, "third".to_owned())],
        ];
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let lines = Lines { lines: &lines, coloured };
        terminal.draw(|frame| frame.render_widget(lines, frame.area())).unwrap();
        terminal.backend().buffer().clone()
    }

    #[test]
    fn lines_are_drawn_and_clipped_and_clean() {
        let buffer = drawn(8, 2, true);
        let row = |row: u16| (0..8).map(|at| buffer[(at, row)].symbol()).collect::<String>();
        assert_eq!((row(0).as_str(), row(1).as_str()), ("abc \\x1b", "01234567"));
        assert_eq!(buffer[(0, 0)].fg, Color::Yellow);
        assert!(buffer[(2, 0)].modifier.contains(Modifier::REVERSED));
    }

    #[test]
    fn without_colour_nothing_has_one_and_the_background_is_the_terminal_s() {
        for coloured in [true, false] {
            let buffer = drawn(8, 3, coloured);
            for cell in buffer.content() {
                assert_eq!(cell.bg, Color::Reset);
                assert!(coloured || cell.fg == Color::Reset);
            }
        }
    }

    #[test]
    fn keys_are_actions() {
        let key = |code, modifiers| action_of(KeyEvent::new(code, modifiers), false);
        let none = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('q'), none), Some(KeyAction::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(KeyAction::Quit));
        assert_eq!(key(KeyCode::Char('m'), none), Some(KeyAction::Moment));
        assert_eq!(key(KeyCode::Char('c'), none), None);
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::CONTROL), None);
    }

    #[test]
    fn letters_of_a_filter_are_no_commands_but_for_ctrl_c() {
        let key = |code, modifiers| action_of(KeyEvent::new(code, modifiers), true);
        let none = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('q'), none), Some(KeyAction::Letter('q')));
        assert_eq!(key(KeyCode::Enter, none), Some(KeyAction::FilterKept));
        assert_eq!(key(KeyCode::Esc, none), Some(KeyAction::FilterDropped));
        assert_eq!(key(KeyCode::Left, none), Some(KeyAction::Earlier));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(KeyAction::Quit));
    }
}
