//! What one connection does through the relay.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::SockRef;
use tcpwhy_host::relay::{End, Event, Passed, Relay, Settings, Side};

use super::{Running, listener, to};

/// Updates that are sent one by one, and the time between two: fewer than the initial congestion window of ten segments
/// (RFC 6928) leave while the receiver delays its ACK (40 ms on Linux).
const UPDATES: u64 = 60;
const EVERY: Duration = Duration::from_millis(5);

fn connect(running: &Running, target: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(running.address).expect("the relay listens");
    let (served, _) = target.accept().expect("the relay connects");
    (client, served)
}

fn vanish(socket: TcpStream) {
    SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("an option");
    drop(socket);
}

/// Runs until the machine lets ACKs come in time: delayed by more than ten updates' time, one leaves the congestion window
/// full, and TCP itself puts together what waits for it.
const ATTEMPTS: usize = 5;

/// The same until it came as it was sent, and left as is expected.
fn updates_as(nagle: bool, is_expected: impl Fn(&Passed) -> bool) -> Passed {
    let mut up = updates(nagle);
    for _ in 1..ATTEMPTS {
        if up.segments_in == Some(UPDATES) && is_expected(&up) {
            break;
        }
        up = updates(nagle);
    }
    up
}

/// Sends updates of 10 bytes to a target that reads only at the end, so that its kernel delays its ACKs: what reads at once
/// and never answers lets Linux ACK at once (`tcp_cleanup_rbuf`). What the relay counted of them.
fn updates(nagle: bool) -> Passed {
    let target = listener();
    let settings = Settings { nagle, ..to(target.local_addr().expect("an address")) };
    let running = Running::start(settings);
    let (mut client, mut served) = connect(&running, &target);
    client.set_nodelay(true).expect("an option");
    for _ in 0..UPDATES {
        client.write_all(b"an update!").expect("the relay reads");
        // The updates' own beat, not a wait for something to happen.
        std::thread::sleep(EVERY);
    }
    drop(client);
    assert_eq!(served.read_to_end(&mut Vec::new()).expect("updates") as u64, 10 * UPDATES);
    drop(served);
    let ended = running.ended();
    assert_eq!(ended.end, End::Finished);
    running.stop();
    ended.up
}

#[test]
#[cfg(target_os = "linux")]
fn updates_leave_one_by_one() {
    let up = updates_as(false, |up| up.segments_out == Some(up.writes));
    assert_eq!((up.bytes, up.bytes_written), (10 * UPDATES, 10 * UPDATES));
    assert_eq!(up.segments_in, Some(UPDATES));
    // A busy machine may let two come before one is read. Whatever was written left as a segment of its own.
    assert_eq!(up.segments_out, Some(up.writes), "{up:?}");
    assert_eq!(up.sent_together(), Some(0));
    assert_eq!(up.read_together(), Some(UPDATES - up.reads));
}

#[test]
#[cfg(target_os = "linux")]
fn nagle_merges_them() {
    let up = updates_as(true, |_| true);
    assert_eq!((up.bytes_written, up.segments_in), (10 * UPDATES, Some(UPDATES)));
    // Eight updates come during one delayed ACK of 40 ms; Linux delays none of about the first 16.
    assert!(up.sent_together().is_some_and(|merged| merged > up.writes / 4), "{up:?}");
}

#[test]
fn each_half_closes_by_itself() {
    let target = listener();
    let running = Running::start(to(target.local_addr().expect("an address")));
    let (mut client, mut served) = connect(&running, &target);
    client.write_all(b"question").expect("a relay");
    client.shutdown(Shutdown::Write).expect("a socket");
    let mut question = String::new();
    served.read_to_string(&mut question).expect("the question, and its end");
    served.write_all(b"answer").expect("the other half is open");
    drop(served);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the answer, and its end");
    assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
    let ended = running.ended();
    assert_eq!((ended.end, ended.up.bytes, ended.down.bytes), (End::Finished, 8, 6));
    assert!(ended.up.finished && ended.down.finished);
    let summary = running.stop();
    assert_eq!((summary.connections, summary.finished, summary.most_open), (1, 1, 1));
}

#[test]
fn a_reset_arrives_as_a_reset_behind_what_was_sent() {
    for by in [Side::Client, Side::Target] {
        let target = listener();
        let running = Running::start(to(target.local_addr().expect("an address")));
        let (client, served) = connect(&running, &target);
        let (mut leaves, mut stays) = if by == Side::Client { (client, served) } else { (served, client) };
        leaves.write_all(b"last words").expect("a relay");
        let mut words = [0; 10];
        stays.read_exact(&mut words).expect("the words");
        vanish(leaves);
        let error = stays.read(&mut words).expect_err("no end of a stream, but a reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(running.ended().end, End::Reset { by });
        running.stop();
    }
}

#[test]
fn a_reset_after_a_half_close_arrives_too() {
    let target = listener();
    let running = Running::start(to(target.local_addr().expect("an address")));
    let (client, mut served) = connect(&running, &target);
    client.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(served.read(&mut [0]).expect("the end"), 0);
    vanish(client);
    assert_eq!(running.ended().end, End::Reset { by: Side::Client });
    // The end of the stream was read above; what tells of the reset now is writing.
    let refused = (0..).find_map(|_| served.write_all(b"answer").err()).expect("nobody is there");
    assert!(matches!(refused.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{refused}");
    running.stop();
}

#[test]
fn a_part_is_not_taken_for_the_whole() {
    // The client takes no more and is reset; its question ended before. The target must not see a FIN of the client's
    // making after that, nor the client one of the target's.
    let target = listener();
    let running = Running::start(to(target.local_addr().expect("an address")));
    let (mut client, served) = connect(&running, &target);
    let writer = std::thread::spawn(move || {
        let mut served = served;
        let chunk = vec![7; 1 << 16];
        (0..).find_map(|_| served.write_all(&chunk).err()).expect("a reset")
    });
    client.read_exact(&mut [0; 1000]).expect("something");
    vanish(client);
    let error = writer.join().expect("a writer");
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert_eq!(running.ended().end, End::Reset { by: Side::Client });
    running.stop();
}

#[test]
fn who_is_not_read_cannot_send_on() {
    const ALL: usize = 64 << 20;
    /// More than all buffers on the way may have: 4 MiB of the sender's, 6 MiB of a receiver's (Linux: `tcp_wmem`,
    /// `tcp_rmem`), twice, and the relay's own 64 KiB.
    const MOST: usize = 32 << 20;
    let target = listener();
    let running = Running::start(to(target.local_addr().expect("an address")));
    let (mut client, mut served) = connect(&running, &target);
    client.set_write_timeout(Some(Duration::from_millis(500))).expect("an option");
    let chunk = vec![7; 1 << 16];
    let (mut sent, mut refused) = (0, 0);
    // The first time, it may be the relay that a busy machine has stopped.
    while sent < ALL && refused < 3 {
        match client.write(&chunk) {
            Ok(length) => (sent, refused) = (sent + length, 0),
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
                refused += 1;
            }
        }
    }
    assert!(sent > 0 && sent < MOST, "{sent} bytes were taken for a target that does not read");
    client.shutdown(Shutdown::Write).expect("a socket");
    let mut got = Vec::new();
    served.read_to_end(&mut got).expect("all of it");
    assert_eq!(got.len(), sent);
    drop((client, served));
    let up = running.ended().up;
    assert!(up.blocked > 0 && up.blocked_ms >= 400.0 && up.longest_hold_ms >= 400.0, "{up:?}");
    running.stop();
}

#[test]
fn an_unreachable_target_resets_the_client() {
    let nobody = listener().local_addr().expect("an address");
    let running = Running::start(to(nobody));
    let mut client = TcpStream::connect(running.address).expect("the relay listens");
    let error = client.read(&mut [0]).expect_err("no end of a stream, but a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let ended = running.ended();
    assert!(matches!(&ended.end, End::Unreached { error } if error.contains("refused")), "{ended:?}");
    assert_eq!(running.stop().unreached, 1);
}

#[test]
fn who_comes_when_all_places_are_taken_waits() {
    let target = listener();
    let settings = Settings { most: 2, ..to(target.local_addr().expect("an address")) };
    let running = Running::start(settings);
    let first = connect(&running, &target);
    let second = connect(&running, &target);
    let mut third = TcpStream::connect(running.address).expect("the kernel's queue");
    third.write_all(b"3").expect("the kernel's buffer");
    assert!(matches!(running.events.recv(), Ok(Event::Full(2))));
    drop(first);
    let (mut served, _) = target.accept().expect("now it is let in");
    served.read_exact(&mut [0]).expect("its byte");
    drop((second, third, served));
    for _ in 0..3 {
        running.ended();
    }
    let summary = running.stop();
    assert_eq!((summary.connections, summary.most_open), (3, 2));
}

#[test]
fn stopping_resets_what_is_open() {
    let target = listener();
    let running = Running::start(to(target.local_addr().expect("an address")));
    let (mut client, mut served) = connect(&running, &target);
    client.write_all(b"x").expect("a relay");
    served.read_exact(&mut [0]).expect("the byte");
    let summary = running.stop();
    assert_eq!((summary.stopped, summary.up.bytes), (1, 1));
    for side in [&mut client, &mut served] {
        let error = side.read(&mut [0]).expect_err("no end of a stream, but a reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn wrong_addresses_are_refused() {
    let taken = listener();
    let address = taken.local_addr().expect("an address");
    let error = Relay::new(Settings { listen: address, ..to(address) }).expect_err("an address in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    drop(taken);
    for host in ["127.0.0.1", "0.0.0.0"] {
        let settings = Settings { listen: address, host: host.to_owned(), ..to(address) };
        let error = Relay::new(settings).expect_err("a relay to itself");
        assert!(error.to_string().contains("itself"), "{error}");
    }
    let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
    let error = Relay::new(Settings { listen: everywhere, ..to(address) }).expect_err("a relay to itself");
    assert!(error.to_string().contains("itself"), "{error}");
}
