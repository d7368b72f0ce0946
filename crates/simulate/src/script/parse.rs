//! Text to [`Script`]: settings, times and the kinds of steps.
//!
//! The grammar is that of packetdrill's parser (github.com/google/packetdrill, `gtests/net/packetdrill`): events
//! are not bound to lines, so a step ends where the next one's time begins.

use super::cursor::{Cursor, Error, Result, is_word};
use super::syntax::{Action, Command, Event, Script, When};
use super::{parse_call, parse_segment};

/// No step lies further ahead than this (11 days): sums of times cannot overflow.
const LATEST_S: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Decimal places of a second that count: ns.
const PLACES: usize = 9;

/// Reads a packetdrill script.
///
/// # Errors
/// Where the text is no script: the first place that could not be read, with what a script has there.
pub fn parse(text: &str) -> Result<Script> {
    let mut cursor = Cursor::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut script = Script::default();
    let mut line = 1;
    let mut mark = 0;
    loop {
        cursor.skip()?;
        line += cursor.lines_since(mark);
        mark = cursor.position();
        if cursor.peek().is_none() {
            break;
        }
        item(&mut cursor, line, &mut script)?;
    }
    for (line, directive) in cursor.directives {
        direct(line, directive, &mut script)?;
    }
    Ok(script)
}

/// A setting, a command without a time, or a step.
fn item(cursor: &mut Cursor<'_>, line: u32, script: &mut Script) -> Result<()> {
    if cursor.rest().starts_with("--") && script.events.is_empty() {
        script.settings.push(setting(cursor)?);
        return Ok(());
    }
    if cursor.peek() == Some('`') {
        let text = cursor.quoted('`')?.to_owned();
        let list = if script.events.is_empty() { &mut script.commands } else { &mut script.cleanup };
        list.push(Command { line, text });
        return Ok(());
    }
    if let Some(late) = script.cleanup.first() {
        return Err(cursor.expected(format!("the end: the command of line {} has no time", late.line)));
    }
    let when = when(cursor)?;
    let action = action(cursor, when)?;
    script.events.push(Event { line, when, action });
    Ok(())
}

fn setting(cursor: &mut Cursor<'_>) -> Result<(String, String)> {
    cursor.advance("--".len());
    let name = cursor.run(is_word);
    if name.is_empty() {
        return Err(cursor.expected("the name of a setting"));
    }
    let value = if cursor.rest().starts_with('=') {
        cursor.advance(1);
        cursor.run(|c| !c.is_whitespace())
    } else {
        ""
    };
    Ok((name.to_owned(), value.to_owned()))
}

fn direct(line: u32, directive: &str, script: &mut Script) -> Result<()> {
    match directive.split_once('=') {
        Some(("stack", name)) => script.stack = Some(name.trim().to_owned()),
        _ => return Err(Error { line, column: 1, expected: "stack=NAME after 'tcpwhy:'".into() }),
    }
    Ok(())
}

fn when(cursor: &mut Cursor<'_>) -> Result<When> {
    if cursor.take("*")? {
        return Ok(When::Any);
    }
    let relative = cursor.take("+")?;
    let start = seconds(cursor)?;
    if !cursor.take("~")? {
        return Ok(if relative { When::After(start) } else { When::At(start) });
    }
    // The plus sign of a range's end is for the reader's eye: both ends count from the same instant.
    cursor.take("+")?;
    let end = seconds(cursor)?;
    if end < start {
        return Err(cursor.expected("a range whose end is not before its beginning"));
    }
    Ok(if relative { When::AfterWithin(start, end) } else { When::Within(start, end) })
}

/// A decimal number of seconds, in ns. What follows may be `...`, so a point counts only before a digit.
pub(super) fn seconds(cursor: &mut Cursor<'_>) -> Result<u64> {
    cursor.skip()?;
    let wanted = cursor.expected("a time in seconds (0.1, +0.1, * or 0.1~0.2)");
    let whole = cursor.run(|c| c.is_ascii_digit());
    let mut after = cursor.rest().chars();
    let has_fraction = after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit());
    let fraction = if has_fraction {
        cursor.advance(1);
        cursor.run(|c| c.is_ascii_digit())
    } else {
        ""
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(wanted);
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u64::MAX) };
    if whole > LATEST_S {
        return Err(Error { expected: format!("a time of at most {LATEST_S} s"), ..wanted });
    }
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(PLACES).collect();
    let fraction: u64 = digits.parse().map_err(|_| wanted)?;
    Ok(whole * NS_PER_S + fraction)
}

fn action(cursor: &mut Cursor<'_>, when: When) -> Result<Action> {
    let returns = if cursor.take("...")? {
        cursor.take("+")?;
        Some(seconds(cursor)?)
    } else {
        None
    };
    cursor.skip()?;
    let rest = cursor.rest();
    match rest.chars().next() {
        Some('<' | '>') => parse_segment::packet(cursor),
        Some('`') => Ok(Action::Command(cursor.quoted('`')?.to_owned())),
        Some('%') if rest.starts_with("%{") => {
            cursor.advance(2);
            Ok(Action::Code(cursor.until("}%")?.to_owned()))
        }
        Some(c) if c.is_ascii_alphabetic() => {
            let call = parse_call::call(cursor, returns)?;
            let starts = match when {
                When::At(start) | When::Within(start, _) => start,
                When::After(start) | When::AfterWithin(start, _) => start,
                When::Any => 0,
            };
            if call.returns.is_some_and(|returns| returns < starts) {
                return Err(cursor.expected("a call that returns after it began"));
            }
            Ok(Action::Call(call))
        }
        _ => Err(cursor.expected("a packet (< or >), a call, a `command` or %{ code }%")),
    }
}
