//! Numbers as people read them: three digits that matter, the unit that fits, and no rounding that lies.
//! A number and its unit are glued: no line ends between them.

// Counts look as they do in the texts of findings.
pub(crate) use tcpwhy_diagnose::detectors::counted as plural;
pub use tcpwhy_diagnose::detectors::grouped as count;

use crate::page::{GLUE, glued};

const US_PER_MS: f64 = 1e3;
const MS_PER_S: f64 = 1e3;
const S_PER_MIN: u64 = 60;
const S_PER_H: u64 = 3_600;
const S_PER_DAY: u64 = 86_400;
/// Below this, seconds alone are easier to compare than minutes and seconds.
const SECONDS_UNTIL: f64 = 119.5;

/// A length of time given in ms: `210 µs`, `1.23 ms`, `63.9 s`, `2 min 05 s`, `3 h 07 min`.
pub fn duration(ms: f64) -> String {
    if !ms.is_finite() {
        return "?".to_owned();
    }
    if ms < 0.0 {
        return format!("-{}", duration(-ms));
    }
    let us = ms * US_PER_MS;
    let s = ms / MS_PER_S;
    if us < 0.5 {
        glued("0 ms")
    } else if us < 999.5 {
        format!("{us:.0}{GLUE}µs")
    } else if ms < 999.5 {
        format!("{}{GLUE}ms", three_digits(ms))
    } else if s < SECONDS_UNTIL {
        format!("{}{GLUE}s", three_digits(s))
    } else {
        whole_seconds(s.round() as u64)
    }
}

fn whole_seconds(s: u64) -> String {
    let (left, high) = if s < S_PER_H {
        (format!("{:02} s", s % S_PER_MIN), format!("{} min", s / S_PER_MIN))
    } else if s < 2 * S_PER_DAY {
        (format!("{:02} min", s % S_PER_H / S_PER_MIN), format!("{} h", s / S_PER_H))
    } else {
        (format!("{:02} h", s % S_PER_DAY / S_PER_H), format!("{} d", count(s / S_PER_DAY)))
    };
    glued(&format!("{high} {left}"))
}

/// `value` (0 to 1000) with three digits, as many of them after the point as fit.
fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A moment given in ms, as seconds to the microsecond: what Wireshark and `tcpdump -ttttt` show.
pub(crate) fn moment(ms: f64) -> String {
    format!("{:.6}{GLUE}s", ms / MS_PER_S)
}

/// The share of `part` in `whole`. `100 %` and `0 %` mean exactly that; what only rounds to them is
/// `>99 %` and `<1 %`.
pub fn percent(part: f64, whole: f64) -> String {
    let share = 100.0 * part / whole;
    if !share.is_finite() {
        return "?".to_owned();
    }
    // Sums of floating point numbers miss their total by their last digits.
    const SAME: f64 = 1e-7;
    if share <= SAME {
        glued("0 %")
    } else if share < 0.995 {
        glued("<1 %")
    } else if share > 99.0 && share < 100.0 - SAME {
        if share < 99.5 { glued("99 %") } else { glued(">99 %") }
    } else {
        format!("{share:.0}{GLUE}%")
    }
}

/// Bytes in decimal units: `372 B`, `1.20 kB`, `3.40 GB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1_000 {
        return format!("{n}{GLUE}B");
    }
    let mut value = n as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{}{GLUE}{}", three_digits(value), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits_and_change_unit_after_rounding() {
        let cases = [
            (0.0, "0 ms"),
            (0.001, "1 µs"),
            (0.9994, "999 µs"),
            (0.9996, "1.00 ms"),
            (9.994, "9.99 ms"),
            (9.996, "10.0 ms"),
            (142.4, "142 ms"),
            (999.4, "999 ms"),
            (999.6, "1.00 s"),
            (63_940.0, "63.9 s"),
            (99_960.0, "100 s"),
            (119_400.0, "119 s"),
            (119_600.0, "2 min 00 s"),
            (125_000.0, "2 min 05 s"),
            (3_599_400.0, "59 min 59 s"),
            (3_599_600.0, "1 h 00 min"),
            (11_220_000.0, "3 h 07 min"),
            (172_800_000.0, "2 d 00 h"),
            (-40.0, "-40.0 ms"),
            (f64::NAN, "?"),
        ];
        for (ms, text) in cases {
            assert_eq!(duration(ms), glued(text), "{ms} ms");
        }
    }

    #[test]
    fn percentages_never_round_to_all_or_nothing() {
        let cases = [
            (0.0, "0 %"),
            (0.0004, "<1 %"),
            (0.99, "<1 %"),
            (1.0, "1 %"),
            (63.4, "63 %"),
            (98.6, "99 %"),
            (99.4, "99 %"),
            (99.96, ">99 %"),
            (99.999_999_999_9, "100 %"),
            (100.0, "100 %"),
        ];
        for (part, text) in cases {
            assert_eq!(percent(part, 100.0), glued(text), "{part} of 100");
        }
        assert_eq!(percent(0.0, 0.0), "?");
    }

    #[test]
    fn counts_have_their_thousands_set_apart() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (4_812, "4,812"), (1_234_567, "1,234,567")];
        for (n, text) in cases {
            assert_eq!(count(n), text);
        }
        assert_eq!(plural(1, "packet"), "1 packet");
        assert_eq!(plural(0, "packet"), "0 packets");
    }

    #[test]
    fn bytes_are_decimal() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (10_010, "10.0 kB"),
            (999_600, "1.00 MB"),
            (1_650_000_000, "1.65 GB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), glued(text));
        }
    }

    #[test]
    fn moments_read_like_wireshark() {
        assert_eq!(moment(1_234.567), glued("1.234567 s"));
    }
}
