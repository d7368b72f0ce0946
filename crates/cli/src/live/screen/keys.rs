//! What keys do.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::{Model, Page};

/// The keys, as help shows them.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ PgUp PgDn Home End", "choose a connection, or move in its report"),
    ("Enter", "the chosen connection's full report"),
    ("Esc", "back to all connections"),
    ("s", "order: time lost, share lost, packets, latest packet"),
    ("/", "only connections with this text in their addresses, programs or findings"),
    ("space", "freeze: the capture goes on, the screen does not"),
    ("w", "save the packets of the chosen connection that are still kept (pcapng)"),
    ("?", "this list"),
    ("q or Ctrl-C", "end, with the report"),
];

/// Lines that a page of a list has, for the page keys.
const PAGE: usize = 10;

/// The longest text to look for: more than any address and rule have.
const LONGEST: usize = 64;

/// What others have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Save,
}

/// Does what a key asks for, or says who has to.
pub(super) fn pressed(model: &mut Model, event: &Event) -> Option<Wish> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    if *kind == KeyEventKind::Release {
        return None;
    }
    if *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
        return Some(Wish::End);
    }
    model.said = None;
    if model.is_typing {
        typed(model, *code);
        return None;
    }
    match code {
        KeyCode::Char('q') if model.page == Page::Connections => return Some(Wish::End),
        KeyCode::Char('q') | KeyCode::Esc | KeyCode::Backspace if model.page != Page::Connections => {
            model.page = Page::Connections;
        }
        KeyCode::Esc => {
            model.text.clear();
            model.arrange();
        }
        KeyCode::Char('?') => model.page = Page::Help,
        KeyCode::Char(' ') => model.freeze(),
        KeyCode::Char('w') => return Some(Wish::Save),
        KeyCode::Char('s') if model.page == Page::Connections => {
            model.order = model.order.next();
            model.at = 0;
            model.arrange();
        }
        KeyCode::Char('/') => (model.is_typing, model.page) = (true, Page::Connections),
        KeyCode::Enter if model.chosen().is_some() => model.page = Page::Report(0),
        code => moved(model, *code),
    }
    None
}

fn moved(model: &mut Model, code: KeyCode) {
    let (at, most) = match model.page {
        Page::Report(line) => (usize::from(line), usize::from(u16::MAX)),
        _ => (model.at, model.rows.len().saturating_sub(1)),
    };
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at + 1,
        KeyCode::PageUp => at.saturating_sub(PAGE),
        KeyCode::PageDown => at + PAGE,
        KeyCode::Home => 0,
        KeyCode::End => most,
        _ => return,
    };
    let to = to.min(most);
    match &mut model.page {
        Page::Report(line) => *line = u16::try_from(to).unwrap_or(u16::MAX),
        _ => model.at = to,
    }
}

fn typed(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Enter => model.is_typing = false,
        KeyCode::Esc => {
            model.is_typing = false;
            model.text.clear();
        }
        KeyCode::Backspace => {
            model.text.pop();
        }
        KeyCode::Char(c) if model.text.len() < LONGEST && !c.is_control() => model.text.push(c),
        _ => {}
    }
    model.at = 0;
    model.arrange();
}
