//! The form tcpdump printed before version 4.0, line by line.

use super::capture;

#[test]
fn a_handshake_with_options() {
    let trace = capture(
        "10:00:00.000001 rtsg.1023 > csam.login: S 768512:768512(0) win 4096 <mss 1024>\n\
         10:00:00.000002 csam.login > rtsg.1023: S 947648:947648(0) ack 768513 win 4096 <mss 1024,nop,wscale 0,nop,nop,timestamp 7 0,sackOK> (DF)\n\
         10:00:00.000003 rtsg.1023 > csam.login: . ack 1 win 4096\n\
         10:00:00.000004 rtsg.1023 > csam.login: FP 1:2(1) ack 1 win 4096 urg 1 (DF) [tos 0x10] (ttl 64, id 7)\n\
         10:00:00.000005 csam.login > rtsg.1023: R [tcp sum ok] 1:1(0) ack 3 win 0\n",
    );
    assert_eq!((trace.source(0).as_str(), trace.destination(0).as_str()), ("rtsg:1023", "csam:513"));
    let flags: Vec<u16> = (0..5).map(|index| trace.tcp(index).flags.0).collect();
    // S; S and ACK; ACK; F, P, URG and ACK; R and ACK.
    assert_eq!(flags, [0x02, 0x12, 0x10, 0x39, 0x14]);
    let options = trace.tcp(1).options;
    assert_eq!((options.mss, options.window_scale, options.timestamps), (Some(1024), Some(0), Some((7, 0))));
    assert!(options.sack_permitted);
    assert_eq!((trace.tcp(3).seq, trace.tcp(3).ack, trace.tcp(3).payload_len), (768_513, 947_649, 1));
    assert_eq!((trace.tcp(4).seq, trace.tcp(4).ack), (947_649, 768_515));
    assert_eq!(trace.end.notes, Vec::<String>::new());
}

#[test]
fn with_ip_in_front_and_ecn_in_brackets() {
    let trace = capture(
        "1390168786.000001 IP 10.0.0.1.5 > 10.0.0.2.80: SWE 1:1(0) win 5840 <mss 1460,sackOK,timestamp 1 0,nop,wscale 7>\n\
         1390168786.000002 IP 10.0.0.2.80 > 10.0.0.1.5: . [ECN-Echo,CWR] 2:2(0) ack 2 win 5840\n",
    );
    assert_eq!((trace.tcp(0).flags.0, trace.tcp(1).flags.0), (0xc2, 0xd0));
    assert!(trace.start.has_date);
}

#[test]
fn old_link_levels_and_deltas() {
    let trace = capture(
        "000000 0:0:c0:6f:2d:40 8:0:20:c:1b:7e ip 60: idda.1033 > nestor.4566: . ack 1541 win 33580\n\
         199900 8:0:20:c:1b:7e 0:0:c0:6f:2d:40 ip 66: nestor.4566 > idda.1033: P 1541:1553(12) ack 72 win 32120 (DF)\n\
         2. 000100 8:0:20:c:1b:7e ff:ff:ff:ff:ff:ff arp 60: arp who-has idda tell nestor\n\
         000001 nestor.1024 > idda.11337: udp 16 (DF)\n",
    );
    let times: Vec<i64> = trace.packets.iter().map(|packet| packet.time).collect();
    assert_eq!(times, [0, 199_900_000, 2_200_001_000]);
    let numbers: Vec<u64> = trace.packets.iter().map(|packet| packet.number).collect();
    assert_eq!(numbers, [1, 2, 4]);
    assert_eq!((trace.packets[0].frame_len, trace.packets[1].frame_len), (60, 66));
    assert_eq!(trace.payload_lens(), [0, 12, 16]);
}

#[test]
fn udp_in_all_its_forms() {
    let trace = capture(
        "12:00:00.1 a.1024 > b.11337: udp 16\n\
         12:00:00.2 a.1024 > b.11337: [udp sum ok] udp 17 (DF) (ttl 64, id 3, len 45)\n\
         12:00:00.3 IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length: 18\n\
         12:00:00.4 IP 10.0.0.1.5 > 10.0.0.2.6: [bad udp cksum 0xfe20 -> 0x1f0a!] UDP, length 19\n\
         12:00:00.5 IP 10.0.0.1.5353 > 10.0.0.2.domain: 4660+ A? example.com. (29)\n\
         12:00:00.6 IP 10.0.0.2.domain > 10.0.0.1.5353: 4660 1/0/0 A 10.0.0.9 (45)\n\
         12:00:00.7 IP 10.0.0.1.ntp > 10.0.0.2.ntp: NTPv4, Client, length 48\n\
         12:00:00.8 eth0  In  IP 10.0.0.1.5 > 10.0.0.2.6: UDP, bad length 4000 > 1472\n",
    );
    assert_eq!(trace.payload_lens(), [16, 17, 18, 19, 29, 45, 48, 4000]);
    assert_eq!(trace.destination(4), "10.0.0.2:53");
    assert_eq!(trace.end.notes, Vec::<String>::new());
}
