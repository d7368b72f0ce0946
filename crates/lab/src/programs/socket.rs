//! Sockets with the options that the stories turn on.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size, set_socket_send_buffer_size, set_socket_timeout,
    set_tcp_congestion, set_tcp_cork, set_tcp_nodelay, set_tcp_quickack,
};
use rustix::net::{AddressFamily, SendFlags, SocketType, connect, send, socket};
use serde::Serialize;

/// A program that waits this long for its peer has lost it: the run fails instead of hanging.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What a program sets on its sockets. The default sets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Options {
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK`, never taken off.
    pub cork: bool,
    /// `MSG_MORE` on each write, also on a message's last.
    pub more: bool,
    /// `TCP_QUICKACK` after each read.
    pub quick_ack: bool,
    /// `SO_SNDBUF` in bytes; the kernel doubles it.
    pub send_buffer: Option<usize>,
    /// `SO_RCVBUF` in bytes, before the handshake; the kernel doubles it.
    pub receive_buffer: Option<usize>,
    /// `TCP_CONGESTION`.
    pub congestion: Option<&'static str>,
}

impl Options {
    /// A listening socket on a free port.
    pub fn listen(&self, address: IpAddr) -> Result<TcpListener> {
        let listener = TcpListener::bind((address, 0)).context("cannot listen")?;
        if let Some(bytes) = self.receive_buffer {
            // Before the SYN arrives: the window scale is agreed on in the handshake.
            set_socket_recv_buffer_size(&listener, bytes)?;
        }
        set_socket_timeout(&listener, Timeout::Recv, Some(PATIENCE))?;
        Ok(listener)
    }

    /// A connection from `listener`.
    pub fn accept(&self, listener: &TcpListener) -> Result<TcpStream> {
        let (stream, _) = listener.accept().context("nobody came")?;
        self.set_on(&stream)?;
        Ok(stream)
    }

    /// A connection to `server`.
    pub fn connect(&self, server: SocketAddr) -> Result<TcpStream> {
        let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let open = socket(family, SocketType::STREAM, None)?;
        if let Some(bytes) = self.receive_buffer {
            set_socket_recv_buffer_size(&open, bytes)?;
        }
        if let Some(name) = self.congestion {
            set_tcp_congestion(&open, name)?;
        }
        // connect() waits no longer than a send would (socket(7), SO_SNDTIMEO).
        set_socket_timeout(&open, Timeout::Send, Some(PATIENCE))?;
        connect(&open, &server).with_context(|| format!("cannot connect to {server}"))?;
        let stream = TcpStream::from(open);
        self.set_on(&stream)?;
        Ok(stream)
    }

    fn set_on(&self, stream: &TcpStream) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        set_tcp_nodelay(stream, self.nodelay)?;
        if self.cork {
            set_tcp_cork(stream, true)?;
        }
        if let Some(bytes) = self.send_buffer {
            set_socket_send_buffer_size(stream, bytes)?;
        }
        if let Some(name) = self.congestion {
            set_tcp_congestion(stream, name)?;
        }
        Ok(())
    }

    /// Hands all of `bytes` to TCP.
    pub fn write(&self, mut stream: &TcpStream, bytes: &[u8]) -> Result<()> {
        if !self.more {
            return Ok(stream.write_all(bytes)?);
        }
        let mut sent = 0;
        while sent < bytes.len() {
            sent += send(stream, &bytes[sent..], SendFlags::MORE | SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// Reads what is there, at most as much as fits; 0 at the end.
    pub fn read(&self, mut stream: &TcpStream, buffer: &mut [u8]) -> Result<usize> {
        let length = stream.read(buffer)?;
        if self.quick_ack {
            set_tcp_quickack(stream, true)?;
        }
        Ok(length)
    }

    /// Reads `length` bytes; `false` if the peer has closed instead.
    pub fn read_message(&self, stream: &TcpStream, length: usize) -> Result<bool> {
        let mut buffer = vec![0; length.min(READ_AT_ONCE)];
        let mut missing = length;
        while missing > 0 {
            let room = missing.min(buffer.len());
            match self.read(stream, &mut buffer[..room])? {
                0 => return Ok(false),
                read => missing -= read,
            }
        }
        Ok(true)
    }
}

/// Bytes that programs read at a time unless their story says otherwise.
pub const READ_AT_ONCE: usize = 256 * 1024;

/// Closes the writing half and waits for the peer's end, so that both FINs are in the capture.
pub fn hang_up(stream: &TcpStream) -> Result<()> {
    stream.shutdown(Shutdown::Write)?;
    wait_for_end(stream)
}

/// Reads until the peer has closed its writing half.
pub fn wait_for_end(mut stream: &TcpStream) -> Result<()> {
    let mut rest = [0; 4096];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
