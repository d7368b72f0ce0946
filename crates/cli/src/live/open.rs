//! What needs rights: the ring, and the file to write. Both are opened, then the rights are given up.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tcpwhy_host::filter::{self, Instruction};
use tcpwhy_host::interface;
use tcpwhy_host::privileges;
use tcpwhy_host::ring::{Ring, Settings, Wanted};
use tcpwhy_report::plain::plain;
use tcpwhy_simulate::units;
use tcpwhy_wire::container::{Origin, Writer};

use super::Args;
use super::holders::Holders;
use super::names::{Looking, Names};
use crate::link::quantity::typed;
use crate::{complaint, create};

/// All interfaces at once.
const ANY: &str = "any";

/// A file that packets are written into.
pub(super) type Output = Writer<BufWriter<File>>;

/// A capture that may begin.
pub(super) struct Opened {
    pub(super) ring: Ring,
    /// The interface's name, or `any`.
    pub(super) interface: String,
    /// The filter as it was typed; empty where there is none.
    pub(super) filter: String,
    pub(super) snaplen: u32,
    pub(super) writer: Option<Output>,
    /// The same file, to be read again: who goes on may not see its folder.
    pub(super) written: Option<File>,
    pub(super) names: Names,
    /// Fills `names` for as long as it is kept.
    pub(super) looking: Option<Looking>,
}

/// `10s`, `5min`, `2h`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 2] = [("min", 60.0), ("h", 3600.0)];
    let seconds = |text: &str| {
        let long = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        match long {
            Some((number, unit)) => number.parse::<f64>().ok().map(|number| number * unit),
            None => units::seconds(text),
        }
    };
    let seconds = typed(text, seconds, "10s, 5min or 2h")?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "no length of time".to_owned())?;
    if time.is_zero() { Err("longer than nothing, please".to_owned()) } else { Ok(time) }
}

/// Opens what the arguments ask for, and gives up the rights.
pub(super) fn open(args: &Args) -> Result<Opened> {
    let filter = args.filter.join(" ");
    let program =
        filter::compile(&filter).map_err(|error| anyhow!("filter \"{}\": {error}", plain(&filter)))?;
    let interface = match &args.interface {
        Some(name) => name.clone(),
        None => {
            let outwards = interface::of_default_routes().into_iter().next();
            outwards.context("there is no default route: name an interface with -i")?
        }
    };
    let ring = ring(args, &interface, &program)?;
    let heir = privileges::heir();
    let writer = args.write.as_deref().map(|path| {
        writer(path, args.mode)
            .with_context(|| format!("{} cannot be written", plain(&path.to_string_lossy())))
    });
    let writer = writer.transpose()?;
    let written = args.write.as_deref().and_then(regular);
    let holders = Holders::start();
    privileges::drop_all(heir).context("the rights cannot be given up")?;
    let names = Names::default();
    let looking = holders.and_then(|holders| names.follow(holders));
    if let Err(error) = &looking {
        complaint::say(&format!("programs will have no names: {error}"));
    }
    Ok(Opened {
        ring,
        interface,
        filter,
        snaplen: args.snaplen,
        writer,
        written,
        names,
        looking: looking.ok(),
    })
}

fn ring(args: &Args, interface: &str, program: &[Instruction]) -> Result<Ring> {
    let settings = Settings {
        interface: (interface != ANY).then_some(interface),
        snaplen: args.snaplen,
        wanted: Wanted::All,
        filter: program,
        promiscuous: args.promiscuous,
    };
    let opened = Ring::open_with(&settings).and_then(|ring| ring.wait(AT_ONCE).map(|_| ring));
    opened.or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            bail!(
                "capturing needs rights that you do not have: run sudo tcpwhy live …, or allow it once with \
                 sudo setcap cap_net_raw+ep {}",
                program_path()
            )
        }
        _ if error.raw_os_error() == Some(NO_DEVICE) || interface.len() >= LONGEST_NAME => {
            bail!("there is no interface {}: try {}", plain(interface), names())
        }
        _ if error.raw_os_error() == Some(DOWN) => bail!("interface {} is down", plain(interface)),
        _ => Err(error).with_context(|| format!("cannot capture on {}", plain(interface))),
    })
}

/// A wait in which the kernel says that the interface is down, which it does not say when a socket is bound to it.
const AT_ONCE: Duration = Duration::from_nanos(1);

/// `ENODEV`.
const NO_DEVICE: i32 = 19;
/// `ENETDOWN`.
const DOWN: i32 = 100;
/// `IFNAMSIZ`: names are shorter.
const LONGEST_NAME: usize = 16;

fn program_path() -> String {
    let path = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    path.unwrap_or_else(|_| "tcpwhy".to_owned())
}

/// The interfaces there are.
fn names() -> String {
    let all = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<_> =
        all.map(|entry| plain(&entry.file_name().to_string_lossy()).into_owned()).collect();
    names.sort_unstable();
    names.push(ANY.to_owned());
    names.join(", ")
}

/// The file, to read what will be in it, unless it is a pipe or the like.
fn regular(path: &Path) -> Option<File> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| File::open(path).ok()).flatten()
}

fn writer(path: &Path, mode: u32) -> io::Result<Output> {
    let file = create::emptied(create::capture(path, mode)?)?;
    let application = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));
    Writer::new(BufWriter::with_capacity(1 << 18, file), &Origin { application, ..Origin::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(time("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(time("1.5h"), Ok(Duration::from_secs(5_400)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "10", "0s", "-1s", "s", "h", "nanh", "infh", "1e300h", "10 s"] {
            time(wrong).expect_err(wrong);
        }
    }
}
