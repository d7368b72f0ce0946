//! Times, rates, sizes and shares as people type them: `20ms`, `440kbit`, `64KiB`, `1%`.

use std::time::Duration;

use tcpwhy_simulate::link::AckHold;
use tcpwhy_simulate::units;

/// `20ms`, `1.5s`, `300us`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds = typed(text, units::seconds, "20ms, 1.5s or 300us")?;
    units::up_to_an_hour(seconds).ok_or_else(|| "longer than an hour".to_owned())
}

/// Bits a second: `440kbit`, `1.5mbit`, `1gbit`.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let bits = typed(text, units::bits_a_second, "440kbit, 1.5mbit or 1gbit")?;
    whole(bits).filter(|bits| *bits > 0).ok_or_else(|| "a link needs at least 1 bit a second".to_owned())
}

/// Bytes: `64000`, `64kB`, `64KiB`.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let bytes = typed(text, units::bytes, "64000, 64kB or 64KiB")?;
    whole(bytes)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a queue needs room for at least a byte".to_owned())
}

/// Bytes of memory or of a disk: `500MB`, `2GiB`.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    const LARGE: [(&str, f64); 2] = [("GB", 1e9), ("GiB", 1_073_741_824.0)];
    let bytes = |text: &str| units::bytes(text).or_else(|| units::number_and_unit(text, &LARGE));
    let bytes = typed(text, bytes, "500MB or 2GB")?;
    if bytes >= 1.0 { Ok(bytes as u64) } else { Err("at least some bytes are needed".to_owned()) }
}

/// `1%`, `0.5%`; 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = typed(text, units::share, "1% or 0.5%")?;
    if share <= 1.0 { Ok(share) } else { Err("more than 100%".to_owned()) }
}

/// `200ms`, `heartbeat:200ms`, `hole-filling:100ms`.
pub(super) fn hold(text: &str) -> Result<AckHold, String> {
    match text.split_once(':') {
        None => time(text).map(AckHold::Delay),
        Some(("heartbeat", period)) => time(period).map(AckHold::Heartbeat),
        Some(("hole-filling", delay)) => time(delay).map(AckHold::HoleFilling),
        Some((kind, _)) => {
            Err(format!("no hold is called {kind}: try 200ms, heartbeat:200ms or hole-filling:200ms"))
        }
    }
}

/// The n-th of something, counted from 1.
pub(super) fn ordinal(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "counted from 1: try 20 for the 20th".to_owned())
}

/// What `read` makes of the text. On a command line it is one word: a space in it was meant to end it.
pub(crate) fn typed(
    text: &str,
    read: impl FnOnce(&str) -> Option<f64>,
    examples: &str,
) -> Result<f64, String> {
    let is_word = !text.contains(char::is_whitespace);
    read(text).filter(|_| is_word).ok_or_else(|| format!("try {examples}"))
}

/// Rounded, where it is a number of things there can be.
fn whole(value: f64) -> Option<u64> {
    (value < 1e15).then(|| value.round() as u64)
}

/// `440 kbit/s`.
pub(super) fn rate_in_words(bits: u64) -> String {
    let (unit, factor) = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)]
        .into_iter()
        .find(|(_, factor)| bits as f64 >= *factor)
        .unwrap_or(("bit/s", 1.0));
    format!("{} {unit}", rounded(bits as f64 / factor))
}

/// `20 ms`, `1.5 s`, `300 µs`.
pub(super) fn time_in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (unit, factor) =
        [("s", 1.0), ("ms", 1e-3)].into_iter().find(|(_, factor)| seconds >= *factor).unwrap_or(("µs", 1e-6));
    format!("{} {unit}", rounded(seconds / factor))
}

/// `0.5 %`.
pub(super) fn share_in_words(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// To three decimals, without zeros at the end.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_people_type_is_understood() {
        assert_eq!((time("20ms"), time("1.5s")), (Ok(ms(20)), Ok(ms(1_500))));
        assert_eq!((time("300us"), time("300µs")), (Ok(ms(3) / 10), Ok(ms(3) / 10)));
        assert_eq!(
            (rate("440kbit"), rate("1.5Mbit/s"), rate("1gbit")),
            (Ok(440_000), Ok(1_500_000), Ok(1_000_000_000))
        );
        assert_eq!((bytes("1500"), bytes("64kB"), bytes("64KiB")), (Ok(1_500), Ok(64_000), Ok(65_536)));
        assert_eq!((share("1%"), share("0.5%"), share("100%")), (Ok(0.01), Ok(0.005), Ok(1.0)));
        assert_eq!(
            (hold("200ms"), hold("heartbeat:200ms")),
            (Ok(AckHold::Delay(ms(200))), Ok(AckHold::Heartbeat(ms(200))))
        );
        assert_eq!(hold("hole-filling:100ms"), Ok(AckHold::HoleFilling(ms(100))));
        assert_eq!(ordinal("20"), Ok(20));
    }

    #[test]
    fn what_cannot_be_meant_is_answered_with_an_example() {
        for text in ["", "20", "ms", "-20ms", "20 ms", "1.2.3s", "20msec", "1e3s", "7200s"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(time("20").expect_err("no unit").contains("20ms"));
        for text in ["440", "440k", "0kbit", "440kB", "9999999gbit"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["1", "0.01", "101%", "-1%"] {
            assert!(share(text).is_err(), "{text}");
        }
        for text in ["0", "-5", "5ms"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(hold("200").is_err() && hold("beat:200ms").is_err());
        assert!(ordinal("0").is_err() && ordinal("x").is_err());
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!((memory("500MB"), memory("2GiB"), memory("96")), (Ok(500_000_000), Ok(2 << 30), Ok(96)));
        for wrong in ["", "0", "-1", "2G", "GiB", "1 GiB", "nanGB"] {
            memory(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn words_are_short() {
        assert_eq!(rate_in_words(440_000), "440 kbit/s");
        assert_eq!(rate_in_words(1_500_000), "1.5 Mbit/s");
        assert_eq!(rate_in_words(100), "100 bit/s");
        assert_eq!(
            (time_in_words(ms(20)), time_in_words(ms(1_500))),
            ("20 ms".to_owned(), "1.5 s".to_owned())
        );
        assert_eq!(time_in_words(ms(3) / 10), "300 µs");
        assert_eq!(share_in_words(0.005), "0.5 %");
    }
}
