//! Options of sockets of this very process, switched and put back.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt::{set_tcp_nodelay, tcp_nodelay};
use tcpwhy_host::process::{Descriptor, Refused};
use tcpwhy_host::switch::{Switched, TcpOption};

fn pair_at(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (client, listener.accept().expect("its other end").0)
}

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener")
}

fn descriptor(socket: &(impl AsFd + AsRawFd)) -> Descriptor {
    let inode = rustix::fs::fstat(socket).expect("a status").st_ino;
    Descriptor { pid: std::process::id(), fd: socket.as_raw_fd(), inode }
}

fn nodelay(socket: impl AsFd) -> bool {
    tcp_nodelay(socket).expect("an option")
}

#[test]
fn what_was_there_is_put_back_when_it_is_dropped() {
    let (client, _server) = pair_at(&listener());
    for before in [false, true] {
        set_tcp_nodelay(&client, before).expect("an option set");
        let mut switched = Switched::new(descriptor(&client), TcpOption::NoDelay).expect("our own");
        for on in [true, false, true, !before] {
            switched.set(on).expect("our own");
            assert_eq!((nodelay(&client), switched.now()), (on, Ok(on)));
        }
        drop(switched);
        assert_eq!(nodelay(&client), before);
    }
}

#[test]
fn a_panic_puts_back_too() {
    let (client, _server) = pair_at(&listener());
    let descriptor = descriptor(&client);
    let end = std::thread::spawn(move || {
        let mut switched = Switched::new(descriptor, TcpOption::NoDelay).expect("our own");
        switched.set(true).expect("our own");
        assert_eq!(switched.now(), Ok(false), "it is on, so this panics");
    });
    end.join().expect_err("a panic");
    assert!(!nodelay(&client));
}

#[test]
fn what_is_kept_stays() {
    let (client, _server) = pair_at(&listener());
    let mut switched = Switched::new(descriptor(&client), TcpOption::NoDelay).expect("our own");
    switched.set(true).expect("our own");
    switched.keep();
    drop(switched);
    assert!(nodelay(&client));
}

#[test]
fn what_the_program_sets_itself_meanwhile_is_respected() {
    let (client, _server) = pair_at(&listener());
    let mut switched = Switched::new(descriptor(&client), TcpOption::NoDelay).expect("our own");
    switched.set(false).expect("our own");
    set_tcp_nodelay(&client, true).expect("the program's choice");
    switched.set(false).expect("our own");
    assert_eq!((switched.overruled(), switched.before()), (1, true));
    drop(switched);
    assert!(nodelay(&client));
    // Its choice after the last switch counts too.
    let mut switched = Switched::new(descriptor(&client), TcpOption::NoDelay).expect("our own");
    switched.set(true).expect("our own");
    set_tcp_nodelay(&client, false).expect("the program's choice");
    switched.put_back().expect("our own");
    assert!(!nodelay(&client));
}

#[test]
fn a_socket_that_moved_to_another_descriptor_is_found() {
    let (client, _server) = pair_at(&listener());
    let mut switched = Switched::new(descriptor(&client), TcpOption::NoDelay).expect("our own");
    switched.set(true).expect("our own");
    let moved = client.try_clone().expect("another descriptor");
    drop(client);
    switched.put_back().expect("found");
    assert!(!nodelay(&moved));
    switched.set(true).expect("our own");
    drop(moved);
    assert_eq!(switched.set(false), Err(Refused::Gone));
    assert_eq!(switched.put_back(), Err(Refused::Gone));
}

#[test]
fn accepted_connections_inherit_the_listeners_option() {
    let listener = listener();
    let (_client, before) = pair_at(&listener);
    let mut switched = Switched::new(descriptor(&listener), TcpOption::NoDelay).expect("our own");
    switched.set(true).expect("our own");
    let (_client, during) = pair_at(&listener);
    drop(switched);
    let (_client, after) = pair_at(&listener);
    assert_eq!((nodelay(before), nodelay(during), nodelay(after)), (false, true, false));
}
