//! What the public scripts write, and what is no script.

use tcpwhy_simulate::script::{Action, Call, EcnBits, Options, Script, Segment, Value, When, parse};
use tcpwhy_wire::TcpFlags;

const MS: u64 = 1_000_000;

fn one(text: &str) -> (When, Action) {
    let script = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let [event] = script.events.as_slice() else { panic!("{text}: {} events", script.events.len()) };
    (event.when, event.action.clone())
}

fn segment(text: &str) -> Segment {
    match one(text).1 {
        Action::Receive(segment) | Action::Send(segment) => segment,
        other => panic!("{text}: {other:?}"),
    }
}

fn call(text: &str) -> Call {
    match one(text).1 {
        Action::Call(call) => call,
        other => panic!("{text}: {other:?}"),
    }
}

fn word(text: &str) -> Value {
    Value::Word(text.into())
}

#[test]
fn times() {
    for (text, when) in [
        ("0", When::At(0)),
        ("0.100", When::At(100 * MS)),
        (".5", When::At(500 * MS)),
        ("1", When::At(1000 * MS)),
        ("+0", When::After(0)),
        ("+.05", When::After(50 * MS)),
        ("+0.000001", When::After(1_000)),
        ("*", When::Any),
        ("0.1~0.2", When::Within(100 * MS, 200 * MS)),
        ("+.1~+.2", When::AfterWithin(100 * MS, 200 * MS)),
        ("+.3 ~ .31", When::AfterWithin(300 * MS, 310 * MS)),
    ] {
        assert_eq!(one(&format!("{text} close(3) = 0")).0, when, "{text}");
    }
}

#[test]
fn segments() {
    let syn = segment("0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>");
    assert_eq!((syn.flags.0, syn.seq, syn.window, syn.ack), (TcpFlags::SYN, 0, Some(32_792), None));
    let Options::Listed { known, others } = &syn.options else { panic!() };
    assert_eq!((known.mss, known.window_scale, known.sack_permitted), (Some(1000), Some(7), true));
    assert!(others.is_empty());

    let data = segment("+0 > P. 1:1001(1000) ack 1 <nop,nop,TS val 100 ecr 200>");
    assert_eq!((data.flags.0, data.payload_len, data.ack), (TcpFlags::PSH | TcpFlags::ACK, 1000, Some(1)));
    assert_eq!(data.window, None);
    let Options::Listed { known, .. } = &data.options else { panic!() };
    assert_eq!(known.timestamps, Some((100, 200)));

    let sack = segment("+0 < . 1:1(0) ack 1 win 257 <sack 1001:2001 3001:4001,nop,nop>");
    let Options::Listed { known, .. } = &sack.options else { panic!() };
    assert_eq!(known.sack.as_slice(), [(1001, 2001), (3001, 4001)]);

    assert_eq!(segment("0 > S. 0:0(0) ack 1 <...>").options, Options::Any);
    assert_eq!(segment("0 > R 5:5(0)").flags.0, TcpFlags::RST);
    assert_eq!(segment("0 < - 5:5(0) win 0").flags.0, 0);
    assert_eq!(segment("0 < FP. 4294967295:9(10) ack 1 win 0").seq, u32::MAX);
    assert_eq!(segment("0 > [ect0] W. 1:2(1) ack 1").ecn, Some(EcnBits::Ect0));
    assert_eq!(segment("0 < [ce] . 1:2(1) ack 1 win 5").ecn, Some(EcnBits::Ce));
    assert_eq!(segment("0 > (tos 0x1) . 1:1(0) ack 1").ecn, Some(EcnBits::Ect1));
    assert_eq!(segment("0 > SEW 0:0(0)").flags.0, TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR);
    assert_eq!(segment("0 > A5. 1:1(0) ack 1").accurate_ecn.as_deref(), Some("A5"));
    assert_eq!(segment("0 < U. 1:2(1) ack 1 win 5 urg 1").urgent, Some(1));
    let cookie = segment("0 < S 0:0(0) win 9 <mss 1000,FO 0123456789abcdef,nop,nop>");
    let Options::Listed { others, .. } = cookie.options else { panic!() };
    assert_eq!(others, ["FO 0123456789abcdef"]);
}

#[test]
fn other_packets_are_kept_as_text() {
    for text in [
        "< icmp unreachable frag_needed mtu 1200 [1:1461(1460)]",
        "> udp (1000)",
        "< 8080 > 4000 S 0:0(0) win 5",
        "< ipv4 192.0.2.1 > 192.0.2.2: gre: ipv4 1.1.1.1 > 2.2.2.2 : . 1:1(0) ack 1 win 5",
    ] {
        assert_eq!(one(&format!("0 {text}\n")).1, Action::Foreign(text.into()));
    }
    let script = parse("0 < icmp unreachable host_unreachable [1:2(1)]\n+0 close(3) = 0").unwrap();
    assert_eq!(script.events.len(), 2);
}

#[test]
fn calls() {
    let plain = call("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
    assert_eq!(plain.arguments, [Value::Any, word("SOCK_STREAM"), word("IPPROTO_TCP")]);
    assert_eq!((plain.result, plain.errno), (Value::Int(3), None));

    let failed = call("0 read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)");
    assert_eq!((failed.result, failed.errno.as_deref()), (Value::Int(-1), Some("EAGAIN")));

    let flags = call("0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0x0 (flags O_RDWR)");
    assert_eq!(flags.arguments[2], Value::Flags(vec![word("O_RDWR"), word("O_NONBLOCK")]));

    let blocking = call("0.1...0.25 connect(3, {sa_family = AF_INET, sin_port = htons(8080)}, ...) = 0");
    assert_eq!(blocking.returns, Some(250 * MS));
    let port = Value::Apply("htons".into(), vec![Value::Int(8080)]);
    let address = Value::Record(vec![("sa_family".into(), word("AF_INET")), ("sin_port".into(), port)]);
    assert_eq!(blocking.arguments[1], address);

    let message = call(
        "0 sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10}, {..., 20}], msg_flags=0}, MSG_MORE) = 30",
    );
    let Value::Record(members) = &message.arguments[1] else { panic!() };
    assert_eq!(members[0], ("msg_name".into(), Value::Any));
    assert_eq!(members[1].0, "msg_iov");
    assert_eq!(
        call("0 setsockopt(3, SOL_TCP, TCP_CONGESTION, \"reno\", 4) = 0").arguments[3],
        Value::Text("reno".into())
    );
}

#[test]
fn everything_around_the_events() {
    let text = "#!/usr/bin/env packetdrill\n\
        // tcpwhy: stack=bsd-4.4\n\
        --tolerance_usecs=10000 --strict_segments\n\
        /* a comment\n over lines */\n\
        `../common/defaults.sh\n ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0`\n\
        0 socket(..., SOCK_STREAM,\n   IPPROTO_TCP) = 3 // note\n\
        +0 `sysctl -q net.ipv4.tcp_ecn=1`\n\
        +0 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd\n print(1) }%\n\
        `/tmp/sysctl_restore_${PPID}.sh`\n";
    let script: Script = parse(text).unwrap();
    assert_eq!(script.stack.as_deref(), Some("bsd-4.4"));
    let settings = [("tolerance_usecs", "10000"), ("strict_segments", "")].map(|(a, b)| (a.into(), b.into()));
    assert_eq!(script.settings, settings);
    assert_eq!((script.commands.len(), script.cleanup.len()), (1, 1));
    let lines: Vec<u32> = script.events.iter().map(|event| event.line).collect();
    assert_eq!(lines, [8, 10, 11]);
    assert!(matches!(&script.events[2].action, Action::Code(code) if code.contains("print")));
}

#[test]
fn an_error_says_where_and_what() {
    for (text, place) in [
        ("0 close(3)\n+1 close(4) = 0", "line 2, column 1: expected '='"),
        ("0 close(3) = 0\n   +x close(4) = 0", "line 2, column 5: expected a time in seconds"),
        ("0 < S 0:0(0)", "line 1, column 13: expected win N"),
        ("0 < S 0:1(0) win 5", "line 1, column 7: expected FIRST:NEXT(LENGTH)"),
        ("0 < . 1:1(0) win 5", "line 1, column 14: expected ack N"),
        ("0 > Q 1:1(0)", "line 1, column 5: expected flags"),
        ("0 > S 0:0(0) <mss 70000>", "line 1, column 19: expected a number that fits 16 bits"),
        ("0 > S 0:0(0) <mss 1460", "expected ','"),
        ("0 > [ect7] . 1:1(0) ack 1", "line 1, column 6: expected noecn"),
        ("0 `sysctl", "line 1, column 3: expected a closing `"),
        ("0 %{ assert 1", "expected a closing }%"),
        ("/* x", "expected */"),
        ("0 write(3, \"abc, 3) = 3", "expected a closing \""),
        ("9999999999999999999999 close(3) = 0", "a time of at most 1000000 s"),
        ("0.3~0.2 close(3) = 0", "a range whose end is not before"),
        ("0.3...0.2 read(3, ..., 1) = 1", "a call that returns after it began"),
        ("// tcpwhy: stak=linux-6", "line 1, column 1: expected stack=NAME"),
        ("0 close(3) = 0\n`x`\n+0 close(3) = 0", "line 3, column 1: expected the end"),
        ("--=3", "expected the name of a setting"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(place), "{text}\n{error}");
    }
}
