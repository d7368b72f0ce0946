//! That a script fails where it should, and says why.

use tcpwhy_simulate::script::{Outcome, Verdict, parse, run};
use tcpwhy_simulate::tcp::eras;

const ACCEPTED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
    +0 bind(3, ..., ...) = 0\n\
    +0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n\
    +0 > S. 0:0(0) ack 1 <...>\n\
    +.05 < . 1:1(0) ack 1 win 257\n\
    +0 accept(3, ..., ...) = 4\n";

fn outcome(text: &str) -> Outcome {
    run(&parse(&format!("{ACCEPTED}{text}")).unwrap(), &eras::linux_6())
}

/// The fields that differ, with the line.
fn fields(text: &str) -> (u32, Vec<&'static str>) {
    match outcome(text).verdict {
        Verdict::Failed(failure) => {
            (failure.line, failure.differences.iter().map(|difference| difference.field).collect())
        }
        other => panic!("{text}: {other:?}"),
    }
}

const WRITE: &str = "+0 write(4, ..., 100) = 100\n";

#[test]
fn every_field_of_a_segment_is_compared() {
    for (line, field) in [
        ("+0 > . 1:101(100) ack 1", "flags"),
        ("+0 > P. 2:102(100) ack 1", "seq"),
        ("+0 > P. 1:91(90) ack 1", "payload bytes"),
        ("+0 > P. 1:101(100) ack 2", "ack"),
        ("+0 > P. 1:101(100) ack 1 win 1", "win"),
        ("+0 > [ect0] P. 1:101(100) ack 1", "ecn"),
        ("+0 > P. 1:101(100) ack 1 <nop,nop,TS val 1 ecr 2>", "options"),
        ("+0 > P. 1:101(100) ack 1 <nop,nop,sack 1:2>", "options"),
        ("+.01 > P. 1:101(100) ack 1", "time"),
        ("+.01~+.02 > P. 1:101(100) ack 1", "time"),
    ] {
        assert_eq!(fields(&format!("{WRITE}{line}")), (9, vec![field]), "{line}");
    }
    for line in ["+0 > P. 1:101(100) ack 1", "+.004 > P. 1:101(100) ack 1", "* > P. 1:101(100) ack 1 <...>"] {
        let outcome = outcome(&format!("{WRITE}{line}"));
        assert!(outcome.passed(), "{outcome}");
    }
}

#[test]
fn a_segment_that_does_not_come_fails() {
    assert_eq!(fields("+0 > P. 1:101(100) ack 1"), (8, vec!["segment"]));
}

/// A segment is compared with the next one the script has, also when it left long before.
#[test]
fn a_segment_that_the_script_forgot_fails_at_the_next() {
    let (line, fields) =
        fields(&format!("{WRITE}+.02 < . 1:1(0) ack 101 win 257\n{WRITE}+0 > P. 101:201(100) ack 1"));
    assert_eq!((line, fields), (11, vec!["seq", "time"]));
}

#[test]
fn what_is_left_at_the_end_is_told() {
    let outcome = outcome(WRITE);
    assert!(outcome.passed());
    assert_eq!(outcome.unread, ["0.050000 > P. 1:101(100) ack 1 win 502"]);
}

#[test]
fn results_and_values_are_compared() {
    for (line, field) in [
        ("+0 write(4, ..., 100) = 99", "result"),
        ("+0 read(4, ..., 100) = 0", "result"),
        ("+0 read(9, ..., 100) = -1 EAGAIN", "result"),
        ("+0 setsockopt(9, SOL_TCP, TCP_NODELAY, [1], 4) = 0", "result"),
        ("+0 ioctl(4, SIOCINQ, [5]) = 0", "value"),
        ("+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLIN}], 1, 0) = 1", "value"),
        ("+0...+.1 read(4, ..., 100) = 5", "result"),
        ("+0 %{ assert tcpi_snd_cwnd == 11 }%", "assert"),
    ] {
        assert_eq!(fields(line), (8, vec![field]), "{line}");
    }
    let late = "+0...+.100 read(4, ..., 100) = 5\n+.02 < . 1:6(5) ack 1 win 257\n+0 > . 1:1(0) ack 6";
    assert_eq!(fields(late), (8, vec!["return"]));
}

#[test]
fn what_cannot_be_run_or_checked_is_said() {
    for line in [
        "+0 < icmp unreachable host_unreachable [1:1(0)]",
        "+0 epoll_create(1) = 5",
        "+0 sendfile(4, 5, [0], 10) = 10",
        "+0 < P. 1:2(1) ack 1 win 5 <md5 00112233445566778899aabbccddeeff>",
        "+0 > A. 1:1(0) ack 1",
        "+0 send(4, ..., 1, MSG_OOB) = 1",
    ] {
        let Verdict::Unsupported(note) = outcome(line).verdict else { panic!("{line}") };
        assert_eq!(note.line, 8, "{line}");
    }
    let outcome = outcome(
        "+0 `sysctl -q net.ipv4.tcp_tso_win_divisor=4; tc qdisc add dev tun0 root fq`\n\
         +0 setsockopt(4, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0\n\
         +0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1000], [4]) = 0\n\
         +0 %{ assert tcpi_pacing_rate > 0 }%\n",
    );
    assert!(outcome.passed());
    let lines =
        |notes: &[tcpwhy_simulate::script::Note]| notes.iter().map(|note| note.line).collect::<Vec<_>>();
    assert_eq!(lines(&outcome.ignored), [8, 8, 9]);
    assert_eq!(lines(&outcome.unchecked), [10, 11]);
}

#[test]
fn a_failure_is_shown_in_the_scripts_numbers() {
    let text = outcome(&format!("{WRITE}+0 > P. 1:91(90) ack 1")).to_string();
    let wanted = "failed: line 9\n  payload bytes: expected 90, actual 100\n  \
                  script: 0.050000 > P. 1:91(90) ack 1\n  actual: 0.050000 > P. 1:101(100) ack 1 win 502";
    assert_eq!(text, wanted);
}

/// packetdrill joins segments in a row where the script has one large segment, and does not with
/// `--strict_segments`.
#[test]
fn several_segments_stand_for_a_large_one() {
    let text = "+0 write(4, ..., 2500) = 2500\n+0 > P. 1:2501(2500) ack 1";
    assert!(outcome(text).passed());
    let strict = format!("--strict_segments\n{ACCEPTED}{text}");
    let strict = run(&parse(&strict).unwrap(), &eras::linux_6());
    let Verdict::Failed(failure) = strict.verdict else { panic!() };
    assert!(failure.differences.iter().any(|difference| difference.field == "payload bytes"));
}
