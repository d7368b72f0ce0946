//! A relay: what one side sends is read and written to the other, with a thread for each direction.
//!
//! Not the product's (`tcpwhy_host::relay`), since the experiments set the option on each of its sockets by itself.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde::Serialize;

use super::socket;
use crate::place::Seat;

/// Bytes read at a time.
const AT_ONCE: usize = 16 << 10;

/// What the relay sets on its two sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Options {
    /// `TCP_NODELAY` towards the client.
    pub nodelay_near: bool,
    /// `TCP_NODELAY` towards the server.
    pub nodelay_far: bool,
}

impl Options {
    /// The option on both sockets.
    pub const BOTH: Self = Self { nodelay_near: true, nodelay_far: true };
}

/// Starts a relay for one connection on that host; where the client reaches it, and the thread it ends with.
pub fn start(
    seat: &Seat,
    server: SocketAddr,
    options: Options,
) -> Result<(SocketAddr, JoinHandle<Result<()>>)> {
    let listener = super::listen(seat)?;
    let address = listener.local_addr()?;
    Ok((address, seat.spawn(move || relay(&listener, server, options))))
}

fn relay(listener: &TcpListener, server: SocketAddr, options: Options) -> Result<()> {
    let with = |nodelay| socket::Options { nodelay, ..socket::Options::default() };
    let near = with(options.nodelay_near).accept(listener)?;
    let far = with(options.nodelay_far).connect(server).context("the relay")?;
    // A side that is silent for long is still there.
    near.set_read_timeout(None)?;
    far.set_read_timeout(None)?;
    let (up_from, up_to) = (near.try_clone()?, far.try_clone()?);
    let up = std::thread::spawn(move || copy(up_from, up_to));
    copy(far, near);
    // Its sockets are closed on one side by now, which ends it too.
    let _ = up.join();
    Ok(())
}

/// Passes on what comes until its end. An end by an error is one as well: the other side learns of it by a FIN.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        match from.read(&mut buffer) {
            Ok(length @ 1..) if to.write_all(&buffer[..length]).is_ok() => {}
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
