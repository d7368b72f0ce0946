//! Socket calls: `setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0`.

use super::cursor::{Cursor, Result, is_word};
use super::syntax::{Call, Value};

/// Deepest nesting of values. A message header with control data needs five.
const DEEPEST: usize = 16;

/// A call with its result; the cursor is at its name.
pub(super) fn call(cursor: &mut Cursor<'_>, returns: Option<u64>) -> Result<Call> {
    let name = cursor.word()?.to_owned();
    cursor.need("(")?;
    let arguments = values(cursor, ")", 0)?;
    cursor.need("=")?;
    let result = value(cursor, 0)?;
    let errno = errno(cursor)?;
    note(cursor)?;
    Ok(Call { name, arguments, returns, result, errno })
}

/// The name of an error after the result. Steps begin with a time, so a word there is nothing else.
fn errno(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    cursor.skip()?;
    let is_name = cursor.peek().is_some_and(|c| c.is_ascii_alphabetic());
    Ok(if is_name { Some(cursor.word()?.to_owned()) } else { None })
}

/// What strace prints in parentheses for the reader.
fn note(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.take("(")? {
        cursor.until(")")?;
    }
    Ok(())
}

/// Values between commas, up to `close`, which is taken.
fn values(cursor: &mut Cursor<'_>, close: &str, depth: usize) -> Result<Vec<Value>> {
    let mut list = Vec::new();
    if cursor.take(close)? {
        return Ok(list);
    }
    loop {
        list.push(value(cursor, depth + 1)?);
        if cursor.take(close)? {
            return Ok(list);
        }
        cursor.need(",")?;
    }
}

/// One value, or several joined by `|`.
fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value> {
    let first = single(cursor, depth)?;
    if !cursor.take("|")? {
        return Ok(first);
    }
    let mut parts = vec![first];
    loop {
        parts.push(single(cursor, depth)?);
        if !cursor.take("|")? {
            return Ok(Value::Flags(parts));
        }
    }
}

fn single(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value> {
    cursor.skip()?;
    if depth > DEEPEST {
        return Err(cursor.expected(format!("values nested at most {DEEPEST} deep")));
    }
    if cursor.take("...")? {
        return Ok(Value::Any);
    }
    match cursor.peek() {
        Some('[') => {
            cursor.advance(1);
            Ok(Value::List(values(cursor, "]", depth)?))
        }
        Some('{') => {
            cursor.advance(1);
            Ok(Value::Record(members(cursor, depth)?))
        }
        Some('"') => {
            let text = cursor.quoted('"')?.to_owned();
            // "abc"... is a string whose end does not matter.
            cursor.take("...")?;
            Ok(Value::Text(text))
        }
        Some(c) if c.is_ascii_digit() || c == '-' => Ok(Value::Int(cursor.integer()?)),
        Some(c) if is_word(c) => named(cursor, depth),
        _ => Err(cursor.expected("a value")),
    }
}

/// A constant, or a function of values such as `htons(80)`.
fn named(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value> {
    let name = cursor.word()?.to_owned();
    if cursor.take("(")? {
        return Ok(Value::Apply(name, values(cursor, ")", depth)?));
    }
    Ok(Value::Word(name))
}

/// `name=value`, `name(count)=value` or bare values, up to `}`, which is taken.
fn members(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<(String, Value)>> {
    let mut list = Vec::new();
    if cursor.take("}")? {
        return Ok(list);
    }
    loop {
        let first = value(cursor, depth + 1)?;
        list.push(match first {
            Value::Word(name) | Value::Apply(name, _) if cursor.take("=")? => {
                (name, value(cursor, depth + 1)?)
            }
            Value::Word(name) => (String::new(), Value::Word(name)),
            Value::Apply(name, arguments) => (String::new(), Value::Apply(name, arguments)),
            other => (String::new(), other),
        });
        if cursor.take("}")? {
            return Ok(list);
        }
        cursor.need(",")?;
    }
}
