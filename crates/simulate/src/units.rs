//! Numbers with units as people write them: `22 ms`, `440kbit`, `64 KiB`, `1 %`.
//!
//! Scenarios and command lines read them here; which values they take, and what they say of others, is theirs.

use std::time::Duration;

/// What links, programs and receivers take is shorter; longer is a slip of the keyboard.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A time in seconds: `22 ms`, `1.5s`, `300 us`. `None` as in [`number_and_unit`].
pub fn seconds(text: &str) -> Option<f64> {
    number_and_unit(text, &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)])
}

/// So many seconds; `None` if they are more than an hour.
pub fn up_to_an_hour(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= LONGEST)
}

/// A rate in bits a second: `440 kbit`, `1.5Mbit/s`, in the powers of ten that links are sold in, whatever the letters'
/// case. `None` as in [`number_and_unit`].
pub fn bits_a_second(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let units = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    number_and_unit(lower.trim_end_matches("/s"), &units)
}

/// A size in bytes: `12`, `12 B`, `100 kB`, `64KiB`. `None` as in [`number_and_unit`].
pub fn bytes(text: &str) -> Option<f64> {
    let units = [
        ("", 1.0),
        ("B", 1.0),
        ("bytes", 1.0),
        ("byte", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("KiB", 1_024.0),
        ("MB", 1e6),
        ("MiB", 1_048_576.0),
    ];
    number_and_unit(text, &units)
}

/// A share of a whole, 0 to 1, written in percent: `1 %`, `0.5%`. It may be more than the whole. `None` as in
/// [`number_and_unit`].
pub fn share(text: &str) -> Option<f64> {
    number_and_unit(text, &[("%", 1.0)]).map(|percent| percent / 100.0)
}

/// The number that `text` begins with, times what the unit behind it stands for; white space before, between and behind
/// them does not matter. `None` where it is not written so: the number has digits and a point alone, no sign, and its
/// unit is one of `units`, each with what it stands for.
pub fn number_and_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_may_be_apart() {
        assert_eq!(
            (seconds("1.5s"), seconds(" 1.5 s "), seconds("22ms")),
            (Some(1.5), Some(1.5), Some(0.022))
        );
        assert_eq!((bits_a_second("440kbit"), bits_a_second("1.5 Mbit/s")), (Some(440e3), Some(1.5e6)));
        assert_eq!((bytes("12"), bytes("64 KiB"), bytes("100kB")), (Some(12.0), Some(65_536.0), Some(1e5)));
        assert_eq!((share("1 %"), share("250%")), (Some(0.01), Some(2.5)));
    }

    #[test]
    fn all_else_is_nothing() {
        for text in ["", "s", "5", "-5 s", "+5 s", "1e3 s", "1.2.3 s", "5 S", "5 s 5", "inf s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        let hour = Duration::from_secs(3_600);
        assert_eq!((up_to_an_hour(3_600.0), up_to_an_hour(3_600.001)), (Some(hour), None));
        assert_eq!((up_to_an_hour(f64::INFINITY), up_to_an_hour(1e300)), (None, None));
    }
}
