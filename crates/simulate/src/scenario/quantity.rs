//! Times, rates, sizes and shares as people write them: `22 ms`, `440 kbit`, `100 KB`, `1 %`.

use std::fmt;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{Error, Visitor};

use crate::units;

/// More is a slip of the keyboard, and every segment of it takes memory. Bytes.
const MOST_BYTES: u64 = 100_000_000;

/// `22 ms`, `1.5 s`, `300 us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

/// Bits a second: `440 kbit`, `1.5 mbit/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(pub(super) u64);

/// Bytes: `12`, `"12 B"`, `"100 KB"`, `"64 KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) u64);

/// `1 %`; 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share(pub(super) f64);

/// Reads a value of a type from text; the error says what to try.
pub(super) trait Written: Sized {
    fn read(text: &str) -> Result<Self, String>;
}

impl Written for Time {
    fn read(text: &str) -> Result<Self, String> {
        let seconds = units::seconds(text).ok_or_else(|| wrong(text, "22 ms, 1.5 s or 300 us"))?;
        units::up_to_an_hour(seconds).map(Self).ok_or_else(|| format!("{text} is longer than an hour"))
    }
}

impl Written for Rate {
    fn read(text: &str) -> Result<Self, String> {
        let bits = units::bits_a_second(text).ok_or_else(|| wrong(text, "440 kbit, 1.5 mbit or 1 gbit"))?;
        // A hundred gigabits are more than any simulated endpoint needs.
        let most = 1e11;
        if (1.0..=most).contains(&bits) { Ok(Self(bits as u64)) } else { Err(format!("no link has {text}")) }
    }
}

impl Written for Bytes {
    fn read(text: &str) -> Result<Self, String> {
        let bytes = units::bytes(text).ok_or_else(|| wrong(text, "12 B, 100 KB or 64 KiB"))?;
        let most = MOST_BYTES as f64;
        let is_fit = (1.0..=most).contains(&bytes);
        if is_fit { Ok(Self(bytes.round() as u64)) } else { Err("from 1 B to 100 MB".to_owned()) }
    }
}

impl Written for Share {
    fn read(text: &str) -> Result<Self, String> {
        let share = units::share(text).ok_or_else(|| wrong(text, "1 % or 0.5 %"))?;
        if share <= 1.0 { Ok(Self(share)) } else { Err(format!("{text} is more than all")) }
    }
}

fn wrong(text: &str, examples: &str) -> String {
    format!("`{}` is not understood: try {examples}", text.trim().chars().take(40).collect::<String>())
}

struct Text(&'static str);

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text like {}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// Reads text, or a bare whole number.
pub(super) fn from_text_like<'de, T: Written, D: Deserializer<'de>>(
    from: D,
    example: &'static str,
) -> Result<T, D::Error> {
    let text = from.deserialize_any(Text(example))?;
    T::read(&text).map_err(D::Error::custom)
}

macro_rules! from_text {
    ($($name:ident: $example:literal),*) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                crate::scenario::quantity::from_text_like(from, $example)
            }
        }
    )*};
}
pub(super) use from_text;

from_text!(Time: "\"22 ms\"", Rate: "\"440 kbit\"", Bytes: "\"100 KB\"", Share: "\"1 %\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_understood() {
        let ms = Duration::from_millis;
        assert_eq!((Time::read("22 ms"), Time::read("1.5s")), (Ok(Time(ms(22))), Ok(Time(ms(1_500)))));
        assert_eq!(Rate::read("440 kbit"), Ok(Rate(440_000)));
        assert_eq!(Rate::read("1.5 Mbit/s"), Ok(Rate(1_500_000)));
        assert_eq!((Bytes::read("100 KB"), Bytes::read("64 KiB")), (Ok(Bytes(100_000)), Ok(Bytes(65_536))));
        assert_eq!(Share::read("1 %"), Ok(Share(0.01)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(
            ["", "22", "ms", "-1 ms", "2 h", "7200 s", "1.2.3 s"]
                .iter()
                .all(|text| Time::read(text).is_err())
        );
        assert!(["440", "0 bit", "1e9 bit", "9999 gbit"].iter().all(|text| Rate::read(text).is_err()));
        assert!(["0", "-5", "5 ms", "101 MB"].iter().all(|text| Bytes::read(text).is_err()));
        assert!(["1", "101 %"].iter().all(|text| Share::read(text).is_err()));
    }
}
