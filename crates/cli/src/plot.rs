//! `tcpwhy plot FILE -o PICTURE`: one connection's time-sequence plot.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ValueEnum, ValueHint};
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Connection, Side, Source};
use tcpwhy_report::plot::{self, Arrangement, Panel, Picture};
use tcpwhy_report::{number, terminal};
use tcpwhy_simulate::units;

use crate::drive::{self, Analyzed, Trouble};
use crate::filter::Filter;
use crate::link::quantity;
use crate::narrowed::Narrowed;
use crate::stop::Stop;
use crate::{complaint, create, output};

const EXAMPLES: &str = "\
Examples:
  tcpwhy plot slow.pcap -o slow.svg
  tcpwhy plot big.pcapng --connection 12 -o x.png

How to read the picture: --help.";

const LONG_EXAMPLES: &str = "\
Examples:
  The only connection of a capture, and one of many by its number in the report:
      tcpwhy plot slow.pcap -o slow.svg
      tcpwhy plot big.pcapng --connection 12 -o x.png

  What happened there? Times are those of the report's evidence:
      tcpwhy plot slow.pcap -o x.svg --from 1.2s --to 1.5s

  What client and server sent, above each other:
      tcpwhy plot slow.pcap -o x.png --direction both --size 1600x1000

How to read the picture:
  Time goes to the right, the bytes of one direction upwards. A segment is a
  bar from its first byte to its last: blue, or red where it was sent again.
  The green line is what has been ACKed, the grey one up to where the window
  reaches. The sender moves between the two.

  Where both are flat somebody waits, and the colour behind them says for
  what: the legend names the ledger's line. The strip below has all lines,
  also the time of programs and of the path.

  Violet bars are what the receiver has beyond its ACK (SACK), pink boxes what
  it lacks. Rings are the packets that the report's findings name.";

/// Longest and shortest side of a picture, pixels. The longest two make 256 MB of them.
const SIDES: (u32, u32) = (300, 8_000);
/// A side that sent this part of what the other one sent is worth a graph of its own.
const MUCH: u64 = 10;
/// Connections named where the one that was asked for is not there.
const NAMED: usize = 3;

/// `tcpwhy plot`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct Args {
    /// A capture (pcap, pcapng, .gz, .zst) or lines that tcpdump printed; - is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Where to write the picture: x.svg, x.png or, for xplot, x.xpl; - is standard output, as SVG
    #[arg(short, long, value_name = "PICTURE", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Write a time-sequence file for xplot, in tcptrace's language, whatever it is called
    ///
    /// One direction, that of the side which sent more, unless --direction says which.
    #[arg(long)]
    xplot: bool,

    /// The connection's number, as the report numbers it with the same --host and --port
    ///
    /// Not needed where there is only one.
    #[arg(long, value_name = "N")]
    connection: Option<u64>,

    /// Whose data to show: up (the client's), down (the server's) or both; without it what there is much of
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    direction: Option<Direction>,

    /// Begin at this time of the capture, such as 1.2s or 300ms
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    from: Option<f64>,

    /// End at this time of the capture
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    to: Option<f64>,

    /// Width and height of the picture in pixels
    #[arg(long, value_name = "WxH", default_value = "1200x700", value_parser = size)]
    size: (u32, u32),

    /// Only packets from or to this host
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_hint = ValueHint::Hostname)]
    host: Vec<String>,

    /// Only packets from or to this port
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    port: Vec<u16>,
}

/// Whose data is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    Up,
    Down,
    Both,
}

/// How the picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Png,
}

/// What a plot is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Picture(Format),
    Xplot,
}

impl Kind {
    fn of(args: &Args) -> Result<Self> {
        let is_named = args.output.extension().is_some_and(|name| name.eq_ignore_ascii_case("xpl"));
        match args.xplot || is_named {
            true if args.direction == Some(Direction::Both) => {
                bail!("xplot's files have one direction each: --direction up, and another with down")
            }
            true => Ok(Self::Xplot),
            false => {
                let format = format_of(&args.output);
                format.map(Self::Picture).map_err(|error| anyhow!("{error}, or .xpl for xplot"))
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let kind = Kind::of(args)?;
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from is not before --to");
    }
    let mut search = Search { args, kind, drawn: None, more: 0, missing: String::new() };
    let filter = Filter::new(&args.host, &args.port);
    // One pass, so that standard input will do: the packets of the connection are kept while it is read.
    let recorded = Some(args.connection.unwrap_or(0));
    let take = &mut |analyzed: Analyzed| search.take(analyzed.diagnosis);
    match drive::captures(&args.file.as_path().into(), filter.as_ref(), recorded, &Stop::on_ctrl_c(), take) {
        Ok(()) => {}
        Err(Trouble::Input(what)) => bail!("{}: {what}", complaint::name(&args.file)),
        Err(Trouble::Output(error)) => return Err(output::failed(error)),
    }
    let name = complaint::name(&args.file);
    let drawn = search.drawn.unwrap_or_else(|| Err(anyhow!(search.missing))).context(name)?;
    if search.more > 0 {
        complaint::about(
            &args.file,
            &format!("the first capture in it is drawn; it has {} more", search.more),
        );
    }
    match kind {
        Kind::Picture(format) => write(&args.output, format, drawn)?,
        Kind::Xplot => write_bytes(&args.output, drawn.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a picture as its format wants it; `-` is standard output.
pub(crate) fn write(path: &Path, format: Format, svg: String) -> Result<()> {
    let bytes = match format {
        Format::Svg => svg.into_bytes(),
        Format::Png => plot::png(&svg)?,
    };
    write_bytes(path, &bytes)
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        return output::print(|out| out.write_all(bytes));
    }
    let written = create::report(path).and_then(create::emptied).and_then(|mut file| file.write_all(bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The format that the name of a picture asks for.
pub(crate) fn format_of(path: &Path) -> Result<Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match extension.as_str() {
        _ if path == Path::new("-") => Ok(Format::Svg),
        "svg" => Ok(Format::Svg),
        "png" => Ok(Format::Png),
        _ => bail!("{}: name the picture .svg or .png", path.display()),
    }
}

/// Looks for the connection in the captures of a file, and draws it where it is first found.
struct Search<'a> {
    args: &'a Args,
    kind: Kind,
    drawn: Option<Result<String>>,
    /// Further captures that have a connection of this number too.
    more: u32,
    /// Why nothing was drawn.
    missing: String,
}

impl Search<'_> {
    fn take(&mut self, diagnosis: Diagnosis) -> io::Result<()> {
        let id = self.args.connection.or_else(|| (diagnosis.len() == 1).then_some(0));
        if self.drawn.is_some() {
            self.more += u32::from(id.is_some_and(|id| id < diagnosis.len() as u64));
            return Ok(());
        }
        let Some(id) = id else {
            self.missing = format!("name one with --connection; {}", those_there(&diagnosis));
            return Ok(());
        };
        match Narrowed::new(diagnosis, id) {
            Ok(narrowed) => self.drawn = Some(draw(self.args, self.kind, &narrowed)),
            Err(whole) => self.missing = format!("no connection {id}; {}", those_there(&whole)),
        }
        Ok(())
    }
}

/// Which connections a capture has, the busiest by name.
fn those_there(source: &dyn Source) -> String {
    let mut busiest: Vec<(u64, Connection)> = Vec::new();
    let mut count = 0_u64;
    for connection in source.connections() {
        count += 1;
        busiest.push((connection.packets.to_server + connection.packets.to_client, connection));
        busiest.sort_by_key(|(packets, connection)| (Reverse(*packets), connection.id));
        busiest.truncate(NAMED);
    }
    let named: Vec<_> = busiest
        .iter()
        .map(|(packets, Connection { id, client, server, .. })| {
            format!("{id} ({client} → {server}, {} packets)", number::count(*packets))
        })
        .collect();
    match count {
        0 => "there is none at all".to_owned(),
        1 => format!("there is only {}", named[0]),
        many => format!("it has 0 to {}, the busiest are {}", many - 1, named.join(", ")),
    }
}

/// The picture as SVG, or in xplot's language.
fn draw(args: &Args, kind: Kind, narrowed: &Narrowed<Diagnosis>) -> Result<String> {
    let (diagnosis, connection) = (narrowed.whole(), narrowed.connection());
    let id = connection.id;
    let bookings = diagnosis.bookings(id).unwrap_or_default();
    let panels: Vec<_> = senders(args.direction, connection)
        .iter()
        .filter_map(|sender| Panel::of(diagnosis, &bookings, connection, *sender))
        .collect();
    if panels.is_empty() {
        bail!("connection {id} is a UDP flow: without sequence numbers there is nothing to plot");
    }
    let first = connection.start_ms.0;
    let last = first + connection.duration_ms.0;
    if args.from.is_some_and(|from| from > last) || args.to.is_some_and(|to| to < first) {
        let (first, last) = (first / 1e3, last / 1e3);
        bail!("connection {id} has no packet then: it lasts from {first:.3}s to {last:.3}s of the capture");
    }
    let title = format!("#{id}  {} → {}", connection.client, connection.server);
    if kind == Kind::Xplot {
        return in_xplot(args, &title, busier(connection, &panels));
    }
    Ok(plot::svg(&Picture {
        title,
        subtitle: terminal::verdict(narrowed),
        panels,
        arrangement: Arrangement::Stacked,
        same_bytes: false,
        time: (args.from, args.to),
        size: args.size,
    }))
}

/// The panel of the side that sent more, where there are two.
fn busier<'a, 'b>(connection: &Connection, panels: &'a [Panel<'b>]) -> &'a Panel<'b> {
    let is_up = connection.bytes.to_server >= connection.bytes.to_client;
    if is_up { &panels[0] } else { &panels[panels.len() - 1] }
}

fn in_xplot(args: &Args, title: &str, panel: &Panel<'_>) -> Result<String> {
    let mut text = Vec::new();
    let title = format!("{title}  {}", panel.heading);
    plot::xplot(&mut text, &title, panel, (args.from, args.to))?;
    Ok(String::from_utf8(text)?)
}

/// Whose data is shown: if nobody says, that of both sides where both sent much, else that of the one that did.
fn senders(direction: Option<Direction>, connection: &Connection) -> &'static [Side] {
    let (up, down) = (connection.bytes.to_server, connection.bytes.to_client);
    match direction {
        Some(Direction::Both) => &[Side::Client, Side::Server],
        Some(Direction::Up) => &[Side::Client],
        Some(Direction::Down) => &[Side::Server],
        None if up.min(down) >= up.max(down) / MUCH => &[Side::Client, Side::Server],
        None if up > down => &[Side::Client],
        None => &[Side::Server],
    }
}

/// A moment of the capture, ms.
fn milliseconds(text: &str) -> Result<f64, String> {
    let units = [("us", 1e-3), ("µs", 1e-3), ("ms", 1.0), ("s", 1e3), ("min", 6e4), ("h", 3.6e6)];
    quantity::typed(text, |text| units::number_and_unit(text, &units), "1.2s or 300ms")
}

/// `1200x700`.
fn size(text: &str) -> Result<(u32, u32), String> {
    let (least, most) = SIDES;
    let side = |text: &str| text.parse().ok().filter(|side| (least..=most).contains(side));
    let sides = text.split_once('x').and_then(|(width, height)| side(width).zip(side(height)));
    sides.ok_or_else(|| format!("two numbers from {least} to {most}: try 1200x700"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        assert_eq!((size("1200x700"), size("300x8000")), (Ok((1_200, 700)), Ok((300, 8_000))));
        for text in ["", "1200", "x", "1200x", "1200x99", "8001x700", "-1x700", "1e3x700"] {
            assert!(size(text).expect_err(text).contains("1200x700"), "{text}");
        }
        assert_eq!(
            (milliseconds("1.2s"), milliseconds("300ms"), milliseconds("2min")),
            (Ok(1_200.0), Ok(300.0), Ok(120_000.0))
        );
        assert!(milliseconds("300").is_err() && milliseconds("-1s").is_err());
    }

    #[test]
    fn the_name_tells_the_format() {
        assert_eq!(format_of(Path::new("a.b/x.SVG")).ok(), Some(Format::Svg));
        assert_eq!(format_of(Path::new("x.png")).ok(), Some(Format::Png));
        assert_eq!(format_of(Path::new("-")).ok(), Some(Format::Svg));
        for name in ["x", "x.pdf", "svg", ".svg"] {
            assert!(format_of(Path::new(name)).is_err(), "{name}");
        }
    }
}
