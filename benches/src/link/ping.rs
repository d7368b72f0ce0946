//! Round trips of ICMP echoes.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use nix::sys::socket::sockopt::{ReceiveTimeout, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, connect,
    recvmsg, send, setsockopt, socket,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use tcpwhy_lab::place::{Path, Place, join};

/// Pings of one measurement.
const PINGS: u16 = 1000;
/// ICMP's header and a time.
const ECHO: usize = 8 + 16;
const ECHO_REQUEST: u8 = 8;
/// Between two of them. Many are under way at once on a long link.
const INTERVAL: Duration = Duration::from_millis(5);
/// After so many seconds, an answer is lost.
const LOST_AFTER: i64 = 5;

/// The heading of [`row`].
pub(super) fn heading() -> String {
    format!("{:<28}{:>9}{:>9}{:>9}   the link's own lateness", "", "p50", "p99", "max")
}

/// Measures a path: how much longer than `round_trip` its round trips take, beside what was set.
pub(super) fn row(name: &str, path: &Path, round_trip: Duration) -> Result<String> {
    let recording = super::run(path, |place| pings(place, server(place)?))?;
    let lateness = recording.lateness.map_or_else(String::new, |lateness| {
        format!("   {:.0}, {:.0}, {:.0}", lateness.p50_us, lateness.p99_us, lateness.max_us)
    });
    Ok(errors(name, &recording.value, round_trip) + &lateness)
}

/// The errors of round trips, as columns.
pub(super) fn errors(name: &str, took: &[Duration], round_trip: Duration) -> String {
    let mut errors: Vec<_> = took.iter().map(|took| took.saturating_sub(round_trip)).collect();
    errors.sort_unstable();
    let at = |share: f64| {
        let index = (errors.len().saturating_sub(1) as f64 * share) as usize;
        errors.get(index).map_or(0.0, |error| error.as_secs_f64() * 1e6)
    };
    format!("{name:<28}{:>9.0}{:>9.0}{:>9.0}", at(0.5), at(0.99), at(1.0))
}

fn server(place: &Place) -> Result<Ipv4Addr> {
    match place.server.address() {
        std::net::IpAddr::V4(address) => Ok(address),
        std::net::IpAddr::V6(_) => anyhow::bail!("pings are IPv4"),
    }
}

/// Sends pings to an address of the server, on time whether answers come or not, and returns how long each answer
/// took. The server's kernel answers, and the client's kernel notes when the answer arrived: no program has to wake
/// up in between, so what is measured is the path.
pub(super) fn pings(place: &Place, server: Ipv4Addr) -> Result<Vec<Duration>> {
    // Ping sockets are for groups within this range; nobody's by default.
    place.client.set("net.ipv4.ping_group_range", "0 2147483647")?;
    join(place.client.spawn(move || {
        let kind = (AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp);
        let socket = socket(kind.0, kind.1, kind.2, kind.3).context("no ping socket")?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(LOST_AFTER))?;
        connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(server, 0)))?;
        let answers = socket.try_clone()?;
        let reader = std::thread::spawn(move || read(&answers));
        let start = Instant::now();
        for number in 0..PINGS {
            sleep((INTERVAL * number.into()).saturating_sub(start.elapsed()));
            send(socket.as_raw_fd(), &echo_request(number, since_epoch()), MsgFlags::empty())?;
        }
        join(reader)
    }))
}

/// An ICMP echo request (RFC 792) that carries when it was sent; the kernel fills in identifier and checksum.
fn echo_request(number: u16, sent: Duration) -> [u8; ECHO] {
    let mut packet = [0; ECHO];
    packet[0] = ECHO_REQUEST;
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    packet[8..].copy_from_slice(&sent.as_nanos().to_be_bytes());
    packet
}

/// Reads all answers: what each took, by the kernel's time of arrival.
fn read(socket: &OwnedFd) -> Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(PINGS.into());
    let (mut packet, mut control) = ([0; ECHO], nix::cmsg_space!(TimeSpec));
    for _ in 0..PINGS {
        let mut into = [IoSliceMut::new(&mut packet)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), MsgFlags::empty())?;
        let arrived = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let sent = u128::from_be_bytes(packet[8..].try_into()?);
        let sent = Duration::from_nanos(u64::try_from(sent)?);
        took.push(arrived.context("an answer has no time")?.saturating_sub(sent));
    }
    Ok(took)
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
