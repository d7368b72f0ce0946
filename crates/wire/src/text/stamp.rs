//! The times tcpdump prints in front of a packet.

use super::cursor::Cursor;

const SECOND: i64 = 1_000_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

/// Seconds from which a bare number counts as an epoch (March 1973): no capture lasts three years.
const FIRST_EPOCH: i64 = 100_000_000;

/// What a printed time is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `21:02:34.906526`: midnight; or, with `-ttt` and `-ttttt` of recent versions, a packet before.
    Midnight,
    /// `-tt` and `-tttt`: 1970. A local time counts as UTC, since the text does not name its zone.
    Epoch,
    /// `34.565659`: an instant the text does not name.
    Start,
    /// `-ttt` before tcpdump 4.9, bare microseconds (`000142`): the packet before.
    Previous,
}

/// A printed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) origin: Origin,
    /// Nanoseconds since the origin.
    pub(super) nanos: i64,
}

/// Reads a time and steps behind it; without one the cursor stays.
pub(super) fn take(cursor: &mut Cursor) -> Option<Stamp> {
    let mut ahead = *cursor;
    let first = ahead.word().ok()?;
    // Most words of a text are no time: a look at the bytes tells.
    let begins = first.bytes().next()?;
    if !begins.is_ascii_digit() && begins != b'-' {
        return None;
    }
    let stamp = if first.bytes().any(|byte| byte == b':') {
        Stamp { origin: Origin::Midnight, nanos: clock(first)? }
    } else if let Some(days) = date(first) {
        let time = clock(ahead.word().ok()?)?;
        Stamp { origin: Origin::Epoch, nanos: days.checked_mul(DAY)?.checked_add(time)? }
    } else if let Some(nanos) = seconds(first) {
        let origin = if nanos >= FIRST_EPOCH * SECOND { Origin::Epoch } else { Origin::Start };
        Stamp { origin, nanos }
    } else {
        Stamp { origin: Origin::Previous, nanos: old_delta(first, &mut ahead)? }
    };
    *cursor = ahead;
    Some(stamp)
}

/// `21:02:34.906526`, also without a fraction or with a sign (`-ttt` after a clock stepped back).
fn clock(word: &str) -> Option<i64> {
    let (sign, word) = word.strip_prefix('-').map_or((1, word), |rest| (-1, rest));
    let mut parts = word.splitn(3, ':');
    let hours = digits(parts.next()?, 2)?;
    let minutes = digits(parts.next()?, 2)?;
    let seconds_text = parts.next()?;
    let nanos =
        if seconds_text.contains('.') { seconds(seconds_text)? } else { digits(seconds_text, 2)? * SECOND };
    let in_range = minutes < 60 && nanos < 61 * SECOND;
    in_range.then_some(sign * ((hours * 60 + minutes) * 60 * SECOND + nanos))
}

/// `1390168786.105835` to nanoseconds.
fn seconds(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once('.')?;
    let scale = 10_i64.pow(9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
    let fraction = digits(fraction, 9)?;
    digits(whole, 10)?.checked_mul(SECOND)?.checked_add(fraction * scale)
}

/// `000142`, or `2. 000142` from a second on: print-time of tcpdump before 4.9 with `-ttt`.
fn old_delta(first: &str, ahead: &mut Cursor) -> Option<i64> {
    let (whole, micros) = match first.strip_suffix('.') {
        Some(whole) => (digits(whole, 10)?, ahead.word().ok()?),
        None => (0, first),
    };
    if micros.len() != 6 {
        return None;
    }
    whole.checked_mul(SECOND)?.checked_add(digits(micros, 6)? * 1000)
}

/// `2014-01-19`, and `01/19/2014` of old versions, as days since 1970.
fn date(word: &str) -> Option<i64> {
    let (year, month, day) = if word.contains('-') {
        let mut parts = word.splitn(3, '-');
        (parts.next()?, parts.next()?, parts.next()?)
    } else {
        let mut parts = word.splitn(3, '/');
        let (month, day) = (parts.next()?, parts.next()?);
        (parts.next()?, month, day)
    };
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let in_range = (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    in_range.then(|| days_since_1970(year, month, day))
}

/// Days of the Gregorian calendar; the year is shifted to begin in March so that the leap day ends it.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
    shifted_year * 365 + leap_days + day_of_year - 719_468
}

/// A number of one to `most` digits and nothing else.
fn digits(text: &str, most: usize) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Origin, i64)> {
        take(&mut Cursor::new(text)).map(|stamp| (stamp.origin, stamp.nanos))
    }

    #[test]
    fn every_option_of_tcpdump() {
        // Expected values by `date -u -d … +%s`.
        assert_eq!(read("00:01:02.5 IP"), Some((Origin::Midnight, 62_500_000_000)));
        assert_eq!(read("-00:00:00.000000007 IP"), Some((Origin::Midnight, -7)));
        assert_eq!(read("1390168786.105835 IP"), Some((Origin::Epoch, 1_390_168_786_105_835_000)));
        assert_eq!(read("2014-01-19 21:59:46.105835 IP"), Some((Origin::Epoch, 1_390_168_786_105_835_000)));
        assert_eq!(read("01/19/2014 21:59:46.105835 IP"), Some((Origin::Epoch, 1_390_168_786_105_835_000)));
        assert_eq!(read("2000-02-29 00:00:00.0 IP"), Some((Origin::Epoch, 951_782_400_000_000_000)));
        assert_eq!(read("34.565659 a"), Some((Origin::Start, 34_565_659_000)));
        assert_eq!(read("000142 a"), Some((Origin::Previous, 142_000)));
        assert_eq!(read("2. 000142 a"), Some((Origin::Previous, 2_000_142_000)));
    }

    #[test]
    fn other_numbers_are_no_times() {
        for text in [
            "32120 (DF)",
            "1.2.3.4.80: P",
            "0x0000: 4500",
            "12:61:00.0 a",
            "9.1234567890 a",
            "2014-13-01 1:1:1.0",
            "-",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
