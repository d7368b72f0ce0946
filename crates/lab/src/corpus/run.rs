//! One run of a pair of programs over a path.

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::place::{Path, Place, join};
use crate::programs::chat::Chat;
use crate::programs::message::Message;
use crate::programs::socket::Options;
use crate::programs::stream::Stream;
use crate::programs::transfer::Transfer;
use crate::recording::{self, Recording, Setup};

/// Bytes kept of each packet: IP's and TCP's headers with all options.
const SNAPLEN: u32 = 100;

/// Least, first and largest receive buffer, bytes: the first one takes all that a transfer here has in it.
const WIDE: &str = "4096 16777216 33554432";

/// What the programs do.
#[derive(Clone, Debug, Serialize)]
pub enum Traffic {
    /// Requests and answers.
    Chat(Chat),
    /// Messages at a pace.
    Stream(Stream),
    /// Bulk.
    Transfer(Transfer),
}

/// Everything that decides what a run looks like.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The programs.
    pub traffic: Traffic,
    /// What joins them.
    pub path: Path,
    /// The congestion window, in segments, with which the client's connections begin; the kernel's own
    /// without.
    pub initial_window: Option<u32>,
    /// Whether receive windows begin as large as any transfer here, instead of as small as the kernel begins.
    pub wide_windows: bool,
    /// The congestion control of sockets that name none; the kernel's own without.
    pub congestion: Option<&'static str>,
    /// Whether the hosts keep their congestion windows while nothing is sent.
    pub keeps_window: bool,
    /// Whether both hosts ask for ECN.
    pub ecn: bool,
    /// Whether the server refuses SACK, so that the client's kernel repairs as NewReno does.
    pub no_sack: bool,
    /// Seed of the link's chances.
    pub seed: u64,
}

impl Run {
    /// Records it: the captures, and the programs' messages.
    pub fn record(&self) -> Result<Recording<Vec<Message>>> {
        let setup = Setup { path: self.path.clone(), seed: self.seed, snaplen: SNAPLEN, middle: false };
        recording::record(&setup, |place| self.play(place))
    }

    /// A name for what it does: equal runs have equal keys.
    pub fn key(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    fn play(&self, place: &Place) -> Result<Vec<Message>> {
        if self.wide_windows {
            for seat in [&place.client, &place.server] {
                seat.set("net.ipv4.tcp_rmem", WIDE)?;
            }
        }
        for seat in [&place.client, &place.server] {
            if self.keeps_window {
                seat.set("net.ipv4.tcp_slow_start_after_idle", "0")?;
            }
            if self.ecn {
                seat.set("net.ipv4.tcp_ecn", "1")?;
            }
        }
        if let Some(name) = self.congestion {
            for seat in [&place.client, &place.server] {
                seat.set("net.ipv4.tcp_congestion_control", name)?;
            }
        }
        if self.no_sack {
            place.server.set("net.ipv4.tcp_sack", "0")?;
        }
        if let Some(segments) = self.initial_window {
            place.client.set_initial_window(place.server.address(), segments)?;
        }
        match &self.traffic {
            Traffic::Chat(chat) => {
                let (ask, answer) = (chat.clone(), chat.clone());
                let (messages, ()) = pair(
                    place,
                    &chat.server,
                    move |server| ask.client(server),
                    move |listener| answer.server(listener),
                )?;
                Ok(messages)
            }
            Traffic::Stream(stream) => {
                let (near, far) = (stream.clone(), stream.clone());
                let (client, server) = pair(
                    place,
                    &stream.server,
                    move |server| near.client(server),
                    move |listener| far.server(listener),
                )?;
                Ok(Stream::messages(&client, &server))
            }
            Traffic::Transfer(transfer) => {
                let (near, far) = (transfer.clone(), transfer.clone());
                let (client, server) = pair(
                    place,
                    &transfer.server,
                    move |server| near.client(server),
                    move |listener| far.server(listener),
                )?;
                Ok(transfer.messages(client, server))
            }
        }
    }
}

/// Runs a client and its server, each on its host, to their ends.
fn pair<C: Send + 'static, S: Send + 'static>(
    place: &Place,
    options: &Options,
    client: impl FnOnce(SocketAddr) -> Result<C> + Send + 'static,
    server: impl FnOnce(&TcpListener) -> Result<S> + Send + 'static,
) -> Result<(C, S)> {
    let (told, listens) = mpsc::channel();
    let (address, options) = (place.server.address(), options.clone());
    let server = place.server.spawn(move || {
        let listener = options.listen(address)?;
        told.send(listener.local_addr()?).context("nobody waits for the server")?;
        server(&listener)
    });
    let Ok(address) = listens.recv() else {
        join(server)?;
        anyhow::bail!("the server did not listen");
    };
    let client = join(place.client.spawn(move || client(address)))?;
    Ok((client, join(server)?))
}
