//! TCP options as tcpdump lists them, with the bytes they took.

use crate::packet::TcpOptions;

/// Options of one segment, and how long they were in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// The options; SACK blocks as printed, so relative where tcpdump's numbers are.
    pub(super) options: TcpOptions,
    /// Bytes in the header, padded to whole words.
    pub(super) header_len: u32,
}

/// Reads `mss 1460,nop,wscale 0,nop,nop,TS val 1 ecr 0,sackOK,sack 1 {100:200},eol`, in any order.
///
/// Options that do not matter here, or are damaged, are skipped.
pub(super) fn read(list: &str) -> Listed {
    let mut listed = Listed::default();
    let mut bytes = 0;
    for option in list.split(',') {
        bytes += take(option.trim(), &mut listed.options);
    }
    // RFC 9293 section 3.1: the header is a whole number of 32-bit words and at most 60 bytes long.
    listed.header_len = bytes.next_multiple_of(4).min(40);
    listed
}

/// Notes one option and returns its length in the header.
fn take(option: &str, into: &mut TcpOptions) -> u32 {
    let mut words = option.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let mut number = || words.find_map(|word| word.parse::<u32>().ok());
    match kind {
        "" => 0,
        "nop" | "eol" => 1,
        "sackOK" => {
            into.sack_permitted = true;
            2
        }
        "mss" => {
            into.mss = number().and_then(|mss| u16::try_from(mss).ok());
            4
        }
        "wscale" => {
            into.window_scale = number().and_then(|shift| u8::try_from(shift).ok());
            3
        }
        // `TS val 1 ecr 2` since tcpdump 4.0, `timestamp 1 2` before.
        "TS" | "timestamp" => {
            into.timestamps = number().zip(number());
            10
        }
        // Before tcpdump 4.0 the word was printed twice: `sack sack 1 {100:200}`.
        "sack" => 2 + 8 * sack_blocks(option, into),
        // Any other option: its kind and length, at least.
        _ => 2,
    }
}

/// Reads `{100:200}{300:400}` and counts the blocks.
fn sack_blocks(option: &str, into: &mut TcpOptions) -> u32 {
    let mut count = 0;
    for block in option.split('{').skip(1).take(4) {
        let edges = block.split_once('}').and_then(|(edges, _)| edges.split_once(':'));
        let edges =
            edges.and_then(|(left, right)| Some((left.trim().parse().ok()?, right.trim().parse().ok()?)));
        if let Some((left, right)) = edges {
            into.sack.push(left, right);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_of_linux_fills_twenty_bytes() {
        let listed = read("mss 1460,sackOK,TS val 415343776 ecr 0,nop,wscale 7");
        assert_eq!(listed.header_len, 20);
        assert_eq!(listed.options.mss, Some(1460));
        assert_eq!(listed.options.window_scale, Some(7));
        assert_eq!(listed.options.timestamps, Some((415_343_776, 0)));
        assert!(listed.options.sack_permitted);
    }

    #[test]
    fn sack_in_both_spellings() {
        for list in ["nop,nop,sack 2 {1:2}{3:4}", "nop,nop,sack sack 2 {1:2}{3:4} "] {
            let listed = read(list);
            assert_eq!(listed.options.sack.as_slice(), &[(1, 2), (3, 4)]);
            assert_eq!(listed.header_len, 20);
        }
    }

    #[test]
    fn damage_is_skipped() {
        let listed = read("mss 99999,wscale x,TS val 1,sack 1 {5},unknown-30 0x00,,");
        assert_eq!(listed.options, TcpOptions::default());
        assert!(listed.header_len <= 40);
    }
}
