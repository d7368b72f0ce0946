//! The relay with real sockets over loopback.

mod behaviour;
mod storm;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use tcpwhy_host::relay::{Connection, Event, Relay, Settings, Stop, Summary};

/// A relay on a thread of its own.
struct Running {
    address: SocketAddr,
    stop: Stop,
    events: Receiver<Event>,
    thread: JoinHandle<Summary>,
}

impl Running {
    fn start(settings: Settings) -> Self {
        let relay = Relay::new(settings).expect("a relay");
        let (address, stop) = (relay.address(), relay.stop());
        let (told, events) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            relay.run(&mut |event| {
                let _ = told.send(event);
            })
        });
        Self { address, stop, events, thread }
    }

    /// The next connection that ends.
    fn ended(&self) -> Connection {
        loop {
            match self.events.recv().expect("a relay that runs") {
                Event::Ended(connection) => return *connection,
                other => assert!(matches!(other, Event::Full(_)), "{other:?}"),
            }
        }
    }

    fn stop(self) -> Summary {
        self.stop.stop();
        self.thread.join().expect("no panic")
    }
}

/// Any free port of this machine.
fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn listener() -> TcpListener {
    TcpListener::bind(anywhere()).expect("a free port")
}

/// From a free port to that target.
fn to(target: SocketAddr) -> Settings {
    let host = target.ip().to_string();
    Settings { listen: anywhere(), host, port: target.port(), nagle: false, most: usize::MAX }
}
