//! Words of the texts to numbers and addresses.

/// Longest address with its port that is believed: a host name has at most 253 letters.
const LONGEST_ADDRESS: usize = 300;

/// `ip:port` as ss and netstat write it: `127.0.0.1:80`, `[::1]:80`, `*:80`, `:::80`, `::1:80`, `fe80::1%eth0:22`,
/// or with names. IPv6 gets its brackets.
pub(super) fn address(word: &str) -> Option<String> {
    let (host, port) = word.rsplit_once(':')?;
    let is_port = port == "*" || (!port.is_empty() && port.chars().all(is_name));
    let is_host = !host.is_empty() && host.chars().all(|c| is_name(c) || ".:[]%*".contains(c));
    if !is_port || !is_host || word.len() > LONGEST_ADDRESS {
        return None;
    }
    let needs_brackets = host.contains(':') && !host.starts_with('[');
    Some(if needs_brackets { format!("[{host}]:{port}") } else { word.to_owned() })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The number that `word` begins with: `1240ms`, `34bps`, `1240ms(100.0%)`.
pub(super) fn leading(word: &str) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    word[..end].parse().ok()
}

/// Milliseconds with digits after the point, in µs: `0.047` is 47.
pub(super) fn ms_as_us(word: &str) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let us = word[..end].parse::<f64>().ok()? * 1e3;
    // Longer than the age of the universe is a mistake, and no float beyond it is exact.
    (us < 1e18).then_some(us.round() as u64)
}

/// Bits a second in bytes a second: `576283534880bps`, `23.6Mbps` as ss wrote before 2019.
pub(super) fn rate(word: &str) -> Option<u64> {
    const BITS: f64 = 8.0;
    let number = word.strip_suffix("bps")?;
    let prefixes = [("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let prefixed = prefixes.iter().find_map(|(prefix, factor)| Some((number.strip_suffix(prefix)?, *factor)));
    let (number, factor) = prefixed.unwrap_or((number, 1.0));
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_plain)? * factor / BITS;
    (bytes < 1e18).then_some(bytes as u64)
}

/// How ss prints when a timer ends, in ms: `204ms`, `58sec`, `1min59sec`, and `1.204ms`, which is 1,204 ms
/// (`print_ms_timer` in iproute2's `misc/ss.c` writes seconds, a point and the rest).
pub(super) fn timer_ms(word: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = ["min", "sec", "ms", "."].into_iter().find(|unit| rest.starts_with(unit))?;
        let ms = match unit {
            "min" => 60_000,
            "ms" => 1,
            _ => 1_000,
        };
        total = total.checked_add(number.checked_mul(ms)?)?;
        rest = &rest[unit.len()..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_tools() {
        let same = ["127.0.0.1:80", "[::1]:80", "*:80", "0.0.0.0:*", "[fe80::1]%eth0:22", "db-7:postgresql"];
        for word in same {
            assert_eq!(address(word).as_deref(), Some(word));
        }
        assert_eq!(address(":::9125").as_deref(), Some("[::]:9125"));
        assert_eq!(address("::1:9124").as_deref(), Some("[::1]:9124"));
        for word in ["", "80", "127.0.0.1:", ":", "http://x", "a b:1", "x:\u{1b}1"] {
            assert_eq!(address(word), None, "{word}");
        }
        assert_eq!(address(&format!("{}:1", "a".repeat(400))), None);
    }

    #[test]
    fn times_of_ss() {
        assert_eq!(timer_ms("204ms"), Some(204));
        assert_eq!(timer_ms("58sec"), Some(58_000));
        assert_eq!(timer_ms("1min59sec"), Some(119_000));
        assert_eq!(timer_ms("1.204ms"), Some(1_204));
        assert_eq!((timer_ms("soon"), timer_ms("5")), (None, None));
        assert_eq!(timer_ms("99999999999999999999min"), None);
        assert_eq!(
            (ms_as_us("0.047"), ms_as_us("4.718"), ms_as_us("204")),
            (Some(47), Some(4_718), Some(204_000))
        );
        assert_eq!((ms_as_us("x"), ms_as_us("9".repeat(30).as_str())), (None, None));
        assert_eq!((rate("178226499864bps"), rate("23.6Mbps")), (Some(22_278_312_483), Some(2_950_000)));
        assert_eq!((rate("fastbps"), rate("infbps"), rate("5")), (None, None, None));
        assert_eq!((leading("1240ms(100.0%)"), leading("ms")), (Some(1240), None));
    }
}
