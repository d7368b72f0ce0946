//! Sockets of the calling thread's network namespace, as `/proc` lists them.

use std::fs;

use tcpwhy_wire::sockets::{State, TcpSocket};

/// Whether somebody waits for connections, or for datagrams.
pub(super) fn listening() -> bool {
    let listens = |socket: &TcpSocket| socket.state == State::Listen;
    tcp().iter().any(listens) || !sockets("udp").is_empty() || !sockets("udp6").is_empty()
}

/// Whether a connection has something to send or has not ended. Those whose program does not close its side are
/// not waited for.
pub(super) fn talking() -> bool {
    tcp().iter().any(|socket| match socket.state {
        State::Listen | State::TimeWait => false,
        State::CloseWait => socket.send_queue > 0,
        _ => true,
    })
}

fn tcp() -> Vec<TcpSocket> {
    [sockets("tcp"), sockets("tcp6")].concat()
}

/// The sockets in one of the kernel's lists; none where there is no such list.
fn sockets(list: &str) -> Vec<TcpSocket> {
    // /proc/net is the main thread's.
    let text = fs::read_to_string(format!("/proc/thread-self/net/{list}")).unwrap_or_default();
    text.lines().filter_map(TcpSocket::of_proc_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        assert!(listening());
        drop(listener);
    }
}
