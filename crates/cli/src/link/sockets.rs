//! Sockets of the calling thread's network namespace, as `/proc` lists them (`proc_net_tcp` in the kernel's
//! documentation).

use std::fs;

/// Whether somebody waits for connections, or for datagrams.
pub(super) fn listening() -> bool {
    states("tcp").chain(states("tcp6")).any(|socket| socket.state == LISTEN)
        || states("udp").chain(states("udp6")).next().is_some()
}

/// Whether a connection has something to send or has not ended. Those whose program does not close its side are
/// not waited for.
pub(super) fn talking() -> bool {
    states("tcp").chain(states("tcp6")).any(|socket| match socket.state {
        LISTEN | TIME_WAIT => false,
        CLOSE_WAIT => socket.unsent,
        _ => true,
    })
}

// States as `include/net/tcp_states.h` numbers them.
const TIME_WAIT: u8 = 6;
const CLOSE_WAIT: u8 = 8;
const LISTEN: u8 = 10;

struct Socket {
    state: u8,
    /// Whether there are bytes that the peer has not acknowledged.
    unsent: bool,
}

/// The sockets in one of the kernel's lists; none where there is no such list.
fn states(list: &str) -> impl Iterator<Item = Socket> + use<> {
    // /proc/net is the main thread's.
    let text = fs::read_to_string(format!("/proc/thread-self/net/{list}")).unwrap_or_default();
    text.lines().skip(1).filter_map(socket).collect::<Vec<_>>().into_iter()
}

fn socket(line: &str) -> Option<Socket> {
    // sl, local address, remote address, state, tx_queue:rx_queue, …
    let mut fields = line.split_whitespace().skip(3);
    let state = u8::from_str_radix(fields.next()?, 16).ok()?;
    let (unsent, _) = fields.next()?.split_once(':')?;
    Some(Socket { state, unsent: unsent.bytes().any(|digit| digit != b'0') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line =
            "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1";
        let read = socket(line).expect("a socket");
        assert_eq!((read.state, read.unsent), (LISTEN, false));
        let line =
            "   1: 0100007F:1F40 0100007F:A2B0 08 0000000A:00000000 01:00000000 00000000     0        0 1";
        let read = socket(line).expect("a socket");
        assert_eq!((read.state, read.unsent), (CLOSE_WAIT, true));
        assert!(socket("  sl  local_address").is_none() && socket("").is_none());
    }

    #[test]
    fn a_listener_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        assert!(listening());
        drop(listener);
    }
}
