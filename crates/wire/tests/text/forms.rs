//! Forms of the new kind that the stored captures do not have.

use super::capture;

#[test]
fn interfaces_labels_and_rare_flags() {
    let trace = capture(
        "12:00:00.1 eth0  In  IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [P.], seq 1:3, ack 1, win 64, length 2\n\
         12:00:00.2 eth0  Out ifindex 2 02:00:00:00:00:02 ethertype IPv4 (0x0800), length 74: 10.0.0.2.80 > 10.0.0.1.5000: Flags [.], ack 3, win 64, length 0\n\
         12:00:00.3 IP truncated-ip - 12 bytes missing! 10.0.0.1.5000 > 10.0.0.2.80: Flags [P.], seq 3:5, ack 1, win 64, length 2\n\
         12:00:00.4 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [P.U], seq 5:7, ack 1, win 64, urg 1, options [mptcp 12 dss ack 1 seq 2, nop], length 2: HTTP\n\
         12:00:00.5 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [none], seq 7:8, win 64, length 1\n\
         12:00:00.6 MPLS (label 16, exp 0, [S], ttl 63) IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [.e], ack 1, win 64, length 0\n",
    );
    let flags: Vec<u16> = (0..6).map(|index| trace.tcp(index).flags.0).collect();
    assert_eq!(flags, [0x18, 0x10, 0x18, 0x38, 0x00, 0x10]);
    assert_eq!(trace.payload_lens(), [2, 0, 2, 2, 1, 0]);
    assert_eq!(trace.packets[1].frame_len, 74);
    // The last pure ACK stands behind the byte of packet 5.
    assert_eq!(trace.tcp(5).seq, 8);
    assert_eq!(trace.end.notes, Vec::<String>::new());
}

#[test]
fn ipv6_with_its_header() {
    let trace = capture(
        "12:00:00.6 IP6 (flowlabel 0x12345, hlim 64, next-header TCP (6) payload length: 32) fe80::1.443 > fe80::2.50: Flags [.], cksum 0x1234 (correct), seq 1, ack 1, win 64, options [nop,nop,TS val 1 ecr 2], length 0\n",
    );
    assert_eq!((trace.source(0).as_str(), trace.packets[0].frame_len), ("[fe80::1]:443", 72));
    assert_eq!(trace.tcp(0).options.timestamps, Some((1, 2)));
}

#[test]
fn other_protocols_are_counted() {
    let trace = capture(
        "12:00:00.1 ARP, Request who-has 10.0.0.2 tell 10.0.0.1, length 28\n\
         12:00:00.2 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64\n\
         12:00:00.3 IP client.5000 > server.https: Flags [S], seq 1, win 64, options [mss 1460,tfo  cookiereq,nop,nop], length 0\n\
         12:00:00.4 IP 10.0.0.1.5000 > 10.0.0.2.4789: VXLAN, flags [I] (0x08), vni 42\n\
         IP 10.1.0.1.5000 > 10.1.0.2.80: Flags [.], ack 1, win 64, length 0\n\
         12:00:00.5 IP 10.0.0.1 > 10.0.0.2: udp\n\
         12:00:00.6 a > b: icmp: echo request (DF)\n",
    );
    assert_eq!((trace.packets.len(), trace.packets[0].number, trace.end.packets), (1, 3, 6));
    assert_eq!((trace.source(0).as_str(), trace.destination(0).as_str()), ("client:5000", "server:443"));
    assert_eq!(trace.end.notes, ["5 packets are neither TCP nor UDP and were left out."]);
}

#[test]
fn hidden_names_with_and_without_colon_are_the_same_hosts() {
    let trace = capture(
        "12:00:00.1 IP [CLIENT] > [SERVER] Flags [S], seq 100, win 64, length 0\n\
         12:00:00.2 IP [SERVER] > [CLIENT]: Flags [S.], seq 500, ack 101, win 64, length 0\n",
    );
    assert_eq!(trace.packets[0].source, trace.packets[1].destination);
    assert_eq!((trace.source(1).as_str(), trace.packets[1].source.port), ("SERVER", 0));
}
