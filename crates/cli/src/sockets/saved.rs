//! `--from FILE`: sockets of another machine, or of another time.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use tcpwhy_wire::sockets::{Listing, Source};

use super::Look;
use super::row::{Row, Unknown};
use crate::complaint;
use crate::input::Input;
use crate::stop::Stop;

pub(super) fn look(path: &Path) -> Result<Look> {
    let name = complaint::name(path);
    let unreadable = |error| anyhow!("{name}: {}", complaint::unreadable(&error));
    let stop = Stop::on_ctrl_c();
    let input =
        Input::open_for(path, "what ss -tinem or cat /proc/net/tcp printed", &stop).map_err(unreadable)?;
    let progress = input.progress();
    let read = Listing::read(input);
    progress.clear();
    let Listing { sockets, left_out, source } = read.map_err(unreadable)?;
    let Some(source) = source else {
        bail!("{name}: no line of /proc/net/tcp, ss or netstat in it: try ss -tinem, or cat /proc/net/tcp");
    };
    let rows = sockets.into_iter().map(|socket| {
        let program_unknown = socket.holders.is_empty().then(|| match socket.inode {
            Some(0) => Row::held_by_none(socket.state),
            _ => Unknown::NotTold,
        });
        Row { program_unknown, options_unknown: Some(Unknown::NotTold), ..Row::new(socket) }
    });
    Ok(Look { source: source.name(), rows: rows.collect(), notes: notes(source, left_out) })
}

fn notes(source: Source, left_out: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("{left_out} more sockets were left out."));
    }
    match source {
        Source::Proc => notes.push(
            "/proc/net/tcp tells neither what is unsent nor the windows: ss -tinem shows more. Addresses are read as a \
             little-endian machine writes them."
                .to_owned(),
        ),
        Source::Netstat => {
            notes.push("netstat tells neither what is unsent nor the windows: ss -tinem shows more.".to_owned());
        }
        Source::Ss => {}
    }
    notes
}
