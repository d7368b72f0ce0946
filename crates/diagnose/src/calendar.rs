//! Instants as the report writes them.

use jiff::Timestamp;

const DAY: i64 = 86_400_000_000_000;

/// RFC 3339 in UTC with microseconds; without a date, the time of day alone.
pub(crate) fn written(time: i64, has_date: bool) -> String {
    if let (true, Ok(instant)) = (has_date, Timestamp::from_nanosecond(i128::from(time))) {
        return format!("{instant:.6}");
    }
    let micros = time.rem_euclid(DAY) / 1_000;
    let seconds = micros / 1_000_000;
    format!("{:02}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        assert_eq!(written(0, true), "1970-01-01T00:00:00.000000Z");
        assert_eq!(written(951_782_400_000_000_000, true), "2000-02-29T00:00:00.000000Z");
        assert_eq!(written(1_795_000_000_123_456_789, true), "2026-11-18T11:06:40.123456Z");
        assert_eq!(written(75_754_906_526_000, false), "21:02:34.906526");
    }
}
