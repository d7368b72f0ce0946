//! A program's step as a line of text: `[on CONDITION] [after TIME] ACTION`.
//!
//! ```text
//! write 100 KB
//! on read 12 B write 42 KB
//! on read 12 B after 5 ms write 1 KB more
//! at 2 s write 100 B
//! on acknowledged close
//! set nodelay
//! ```

use std::time::Duration;

use super::quantity::{Bytes, Time, Written, from_text};
use crate::tcp::SocketOption;
use crate::world::{Act, Step, When};

/// A step that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line(pub(super) Step);

const ACTIONS: &str = "write 100 B, write 100 B more, set nodelay, set nodelay off, shutdown or close";

impl Written for Line {
    fn read(text: &str) -> Result<Self, String> {
        let mut words = Words(text.split_whitespace().collect());
        let when = words.condition()?;
        let delay = if words.take("after") { words.quantity::<Time>()?.0 } else { Duration::ZERO };
        let act = words.action()?;
        Ok(Self(Step { when, delay, act }))
    }
}

from_text!(Line: "\"on read 100 B write 42 KB\"");

struct Words<'a>(Vec<&'a str>);

impl Words<'_> {
    /// Whether the next word is this one, which is then taken.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.0.first() == Some(&word);
        if is_next {
            self.0.remove(0);
        }
        is_next
    }

    fn condition(&mut self) -> Result<When, String> {
        if self.take("at") {
            return Ok(When::At(self.quantity::<Time>()?.0));
        }
        if !self.take("on") {
            return Ok(When::Next);
        }
        if self.take("read") {
            return Ok(When::Read(self.quantity::<Bytes>()?.0));
        }
        if self.take("acknowledged") {
            return Ok(When::Drained);
        }
        if self.take("end") {
            return Ok(When::EndOfFile);
        }
        Err(format!("`{}`: a step waits on read 100 B, on acknowledged or on end", self.0.join(" ")))
    }

    fn action(&mut self) -> Result<Act, String> {
        let all = self.0.join(" ");
        let act = if self.take("write") {
            let bytes = self.quantity::<Bytes>()?.0;
            if self.take("more") { Act::WriteMore(bytes) } else { Act::Write(bytes) }
        } else if self.take("set") {
            Act::Set(self.option()?)
        } else if self.take("shutdown") {
            Act::Shutdown
        } else if self.take("close") {
            Act::Close
        } else {
            return Err(format!("`{all}`: a step ends with {ACTIONS}"));
        };
        if self.0.is_empty() {
            Ok(act)
        } else {
            Err(format!("`{}` is too much: {ACTIONS}", self.0.join(" ")))
        }
    }

    fn option(&mut self) -> Result<SocketOption, String> {
        let name = self.0.first().copied().unwrap_or_default();
        let option = match name {
            "nodelay" => SocketOption::NoDelay,
            "cork" => SocketOption::Cork,
            "quickack" => SocketOption::QuickAck,
            _ => return Err(format!("no option `{name}`: nodelay, cork or quickack")),
        };
        self.0.remove(0);
        let is_off = self.take("off");
        Ok(option(!is_off))
    }

    /// A number, with its unit behind it or in the next word.
    fn quantity<T: Written>(&mut self) -> Result<T, String> {
        let two = self.0.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        if let Ok(value) = T::read(&two) {
            self.0.drain(..2.min(self.0.len()));
            return Ok(value);
        }
        let value = T::read(self.0.first().copied().unwrap_or_default())?;
        self.0.remove(0);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Step {
        Line::read(text).expect(text).0
    }

    #[test]
    fn steps_are_read() {
        let delay = Duration::ZERO;
        assert_eq!(step("write 100 KB"), Step { when: When::Next, delay, act: Act::Write(100_000) });
        let ms = Duration::from_millis(5);
        assert_eq!(
            step("on read 12 B after 5 ms write 1KB more"),
            Step { when: When::Read(12), delay: ms, act: Act::WriteMore(1_000) }
        );
        assert_eq!(
            step("at 2 s set nodelay off"),
            Step {
                when: When::At(Duration::from_secs(2)),
                delay,
                act: Act::Set(SocketOption::NoDelay(false))
            }
        );
        assert_eq!(step("on end close"), Step { when: When::EndOfFile, delay, act: Act::Close });
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "write", "write many", "on monday close", "close now", "after write 1 B", "set speed"]
        {
            assert!(Line::read(text).is_err(), "{text}");
        }
    }
}
