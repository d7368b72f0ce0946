//! What a fix would have saved, in a sentence.

use tcpwhy_diagnose::report::{Awaited, WhatIf};

use crate::number::duration;

/// Fewer packets more or less than this share are the same number.
const SAME: f64 = 0.005;
/// Times are compared no more exactly than this share.
const LEAST_WITHIN: f64 = 0.01;

/// What the fix would have saved, and its price: the fix, as a sentence begins with it, and the rest of the sentence.
pub fn sentence(what_if: &WhatIf) -> (String, String) {
    let (unchanged, with_it) = (&what_if.unchanged, &what_if.with_it);
    let [before, after] = [unchanged.p50_ms, with_it.p50_ms].map(|ms| duration(ms.0));
    let (saved, total, price) = (saved(what_if), duration(unchanged.total_ms.0), price(what_if));
    let rest = match what_if.awaited {
        // Its time is the whole.
        Awaited::Exchanges if what_if.likeness.compared == 1 => {
            format!("would have saved {saved} of {total}{price}.")
        }
        Awaited::Exchanges => {
            format!("would have saved {saved} of {total} (median exchange {before} → {after}){price}.")
        }
        Awaited::Updates => format!(
            "would have kept updates from being late for {saved} of {total} (median of an update's way {before} → \
             {after}){price}."
        ),
    };
    (capitalized(&what_if.title), rest)
}

/// How well the unchanged replay matches the capture, in a sentence.
pub fn likeness(what_if: &WhatIf) -> String {
    let likeness = &what_if.likeness;
    let things = match what_if.awaited {
        Awaited::Exchanges => "exchanges",
        Awaited::Updates => "updates",
    };
    let (whole, most) = (percent(likeness.total), percent(likeness.latency_p90.max(LEAST_WITHIN)));
    match likeness.compared {
        1 => format!("Predicted: the unchanged replay is {whole} off the capture."),
        _ => format!(
            "Predicted: the unchanged replay is {whole} off the capture, nine in ten {things} within {most}."
        ),
    }
}

/// `1.87 s`, or `1.80 s to 1.90 s` where it is not known exactly.
fn saved(what_if: &WhatIf) -> String {
    match what_if.saved_ms_bounds.map(|(least, most)| (duration(least.0), duration(most.0))) {
        Some((least, most)) if least != most => format!("{least} to {most}"),
        _ => duration(what_if.saved_ms.0),
    }
}

/// In packets: most of what a small one costs does not depend on its size.
fn price(what_if: &WhatIf) -> String {
    let (Some(before), Some(more)) = (what_if.unchanged.packets, what_if.more_packets) else {
        return String::new();
    };
    let share = more as f64 / before.max(1) as f64;
    if share.abs() < SAME {
        ", for the same number of packets".to_owned()
    } else if share > 0.0 {
        format!(", for {} more packets", percent(share))
    } else {
        format!(", with {} fewer packets", percent(-share))
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A share (0.05 is 5 %) with a digit behind the point where that matters.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (0.05..9.95).contains(&percent) { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use tcpwhy_diagnose::report::{Likeness, Ms, Played, Side};

    use super::*;

    fn played(total: f64, p50: f64, packets: u64) -> Played {
        Played {
            total_ms: Ms(total),
            p50_ms: Ms(p50),
            p99_ms: Ms(p50),
            packets: Some(packets),
            bytes: Some(1_000),
        }
    }

    fn nodelay(awaited: Awaited) -> WhatIf {
        WhatIf {
            fix: "nodelay".to_owned(),
            title: "TCP_NODELAY".to_owned(),
            side: Some(Side::Server),
            awaited,
            saved_ms: Ms(1_800.0),
            saved_ms_bounds: None,
            unchanged: played(2_000.0, 80.0, 100),
            with_it: played(200.0, 20.0, 145),
            more_packets: Some(45),
            more_bytes: Some(0),
            likeness: Likeness {
                compared: 30,
                latency_p50: 0.0,
                latency_p90: 0.045,
                total: 0.007,
                segments: 0.0,
                packets: 0.0,
            },
        }
    }

    fn told(what_if: &WhatIf) -> String {
        let (fix, rest) = sentence(what_if);
        format!("{fix} {rest}").replace('\u{a0}', " ")
    }

    #[test]
    fn exchanges_end_sooner() {
        let mut what_if = nodelay(Awaited::Exchanges);
        let expected = "TCP_NODELAY would have saved 1.80 s of 2.00 s (median exchange 80.0 ms → 20.0 ms), for 45 % \
                        more packets.";
        assert_eq!(told(&what_if), expected);
        let trust =
            "Predicted: the unchanged replay is 0.7 % off the capture, nine in ten exchanges within 4.5 %.";
        assert_eq!(likeness(&what_if), trust);
        what_if.likeness.compared = 1;
        assert_eq!(told(&what_if), "TCP_NODELAY would have saved 1.80 s of 2.00 s, for 45 % more packets.");
        assert_eq!(likeness(&what_if), "Predicted: the unchanged replay is 0.7 % off the capture.");
    }

    #[test]
    fn updates_are_late_for_less_time_within_bounds() {
        let mut what_if = nodelay(Awaited::Updates);
        what_if.saved_ms_bounds = Some((Ms(1_700.0), Ms(1_900.0)));
        what_if.more_packets = Some(-10);
        let expected = "TCP_NODELAY would have kept updates from being late for 1.70 s to 1.90 s of 2.00 s (median of an \
                        update's way 80.0 ms → 20.0 ms), with 10 % fewer packets.";
        assert_eq!(told(&what_if), expected);
    }

    #[test]
    fn a_price_that_is_not_known_is_not_told() {
        let mut what_if = nodelay(Awaited::Exchanges);
        what_if.more_packets = Some(0);
        assert!(told(&what_if).ends_with(", for the same number of packets."));
        what_if.more_packets = None;
        assert!(told(&what_if).ends_with("→ 20.0 ms)."));
    }
}
