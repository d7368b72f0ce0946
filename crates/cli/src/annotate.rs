//! `tcpwhy annotate IN -o OUT`: the same packets with what was found as comments on them, for Wireshark.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueHint;
use tcpwhy_report::annotate::Comments;
use tcpwhy_report::number::count;
use tcpwhy_wire::container::{self, Annotated, Opened, Reader};
use tempfile::NamedTempFile;

use crate::calls::Located;
use crate::drive::{self, Analyzed, Trouble};
use crate::input::Input;
use crate::stop::Stop;
use crate::{complaint, create, output};

pub(crate) const LONG_ABOUT: &str = "\
Copies a capture and writes what tcpwhy finds into it, as comments that Wireshark and tshark show: on each packet that is \
evidence what it shows, and on the file the verdict and the findings.

Packets and their times stay as they are, byte by byte, and so does whatever else is in a pcapng file. The copy is pcapng, \
whatever the input is. The input is read twice, so it has to be a file.";

const EXAMPLES: &str = "\
Examples:
  Mark the evidence, then look only at that:
      tcpwhy annotate slow.pcap -o marked.pcapng
      wireshark -Y 'frame.comment contains \"tcpwhy\"' marked.pcapng
      tshark -r marked.pcapng -Y frame.comment -T fields -e frame.number -e frame.comment

Exit status: 0; 2 if there is no copy. A file that is cut short or damaged is copied up to there, which is said.";

/// Bytes that are written at once.
const BUFFER: usize = 256 << 10;

const NO_PACKETS: &str = "has no packets to copy: what tcpdump printed is not what it saw. \
                          Record with tcpdump -w slow.pcap, then annotate that";

/// `tcpwhy annotate`.
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A capture: pcap or pcapng, plain, .gz or .zst
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Where to write the copy, a pcapng file; - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_ctrl_c();
    let name = complaint::name(&args.file);
    check(args)?;
    // Before the analysis, which also reads what cannot be copied.
    reader(&args.file, &stop).context(name.clone())?;
    let comments = comments(&args.file, &stop).context(name.clone())?;
    let target = Target::at(&args.output)?;
    stop.reading(true);
    let copied = copy(&args.file, &comments, target, &stop);
    stop.reading(false);
    let done = match copied {
        Err(error) if is_broken_pipe(&error) => return Ok(ExitCode::SUCCESS),
        copied => {
            copied.with_context(|| format!("{name}: cannot write {}", complaint::name(&args.output)))?
        }
    };
    for note in &done.notes {
        complaint::about(&args.file, note);
    }
    if comments.left_out > 0 {
        let what = format!("{} comments left out, those of the least findings", count(comments.left_out));
        complaint::about(&args.file, &what);
    }
    tell(&args.output, &done)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses what cannot be done before anything is read.
fn check(args: &Args) -> Result<()> {
    let Args { file, output } = args;
    if file == Path::new("-") {
        bail!(
            "standard input cannot be read twice: save it first (tcpdump -w slow.pcap), then annotate that"
        );
    }
    let metadata = fs::metadata(file).map_err(|error| anyhow!("{}", complaint::unreadable(&error)));
    let metadata = metadata.context(complaint::name(file))?;
    if !metadata.is_file() && !metadata.is_dir() {
        bail!("{}: a pipe cannot be read twice: save it first, then annotate that", complaint::name(file));
    }
    let both = fs::canonicalize(file).ok().zip(fs::canonicalize(output).ok());
    if both.is_some_and(|(input, output)| input == output) {
        bail!("{}: is the input: write the copy beside it, with another name", complaint::name(output));
    }
    let extension = output.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if matches!(extension.as_str(), "gz" | "zst") {
        bail!("{}: the copy is not compressed: name it .pcapng", complaint::name(output));
    }
    Ok(())
}

/// The capture, from its beginning.
fn reader(path: &Path, stop: &Stop) -> Result<Reader<Input>> {
    let input = Input::open(path, stop).map_err(|error| anyhow!("{}", complaint::unreadable(&error)))?;
    match container::open(input) {
        Ok(Opened::Capture(reader)) => Ok(reader),
        Ok(Opened::Other(other)) => {
            let mut start = Vec::new();
            let _ = other.take(drive::START).read_to_end(&mut start);
            if start.contains(&0) {
                bail!(complaint::no_text(&start));
            }
            // What has no packets at all is something else.
            analyzed(path, stop, &mut |_| Ok(()))?;
            bail!(NO_PACKETS)
        }
        Err(error) => bail!("{}", complaint::no_capture(&error)),
    }
}

/// What is to be said of the capture.
fn comments(path: &Path, stop: &Stop) -> Result<Comments> {
    let mut comments = Comments::default();
    let take = &mut |Analyzed { diagnosis, recorded, .. }: Analyzed| {
        let located = recorded.as_ref().map(|recorded| Located::new(&diagnosis, recorded));
        comments = match &located {
            Some(located) => Comments::of(located, env!("CARGO_PKG_VERSION")),
            None => Comments::of(&diagnosis, env!("CARGO_PKG_VERSION")),
        };
        Ok(())
    };
    analyzed(path, stop, take).map(|()| comments)
}

/// Hands over the captures in the file.
fn analyzed(path: &Path, stop: &Stop, take: drive::Taker<'_>) -> Result<()> {
    match drive::captures(&path.into(), None, None, stop, take) {
        Ok(()) if stop.requested() => bail!("stopped with Ctrl-C: there is no copy"),
        Ok(()) => Ok(()),
        Err(Trouble::Input(what)) => bail!(what),
        Err(Trouble::Output(error)) => Err(output::failed(error)),
    }
}

/// Copies the capture; where that fails, what stood at the target stands there still.
fn copy(path: &Path, comments: &Comments, mut target: Target, stop: &Stop) -> Result<Annotated> {
    let reader = reader(path, stop)?;
    let out = BufWriter::with_capacity(BUFFER, target.writer());
    let done = container::annotate(reader, &comments.summary, &comments.packets, out)?;
    if stop.requested() {
        bail!("stopped with Ctrl-C");
    }
    target.finish()?;
    Ok(done)
}

/// Where a copy goes.
enum Target {
    /// Where nothing can be replaced: standard output, a device, a pipe.
    Stream(Box<dyn Write>),
    /// A new file, which takes the place of what is there once it is whole.
    File(NamedTempFile, PathBuf),
}

impl Target {
    fn at(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stream(Box::new(io::stdout())));
        }
        let what = || format!("cannot write {}", complaint::name(path));
        create::refuse_link(path).with_context(what)?;
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if is_special {
            let file = File::options().write(true).open(path).with_context(what)?;
            return Ok(Self::Stream(Box::new(file)));
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tcpwhy-");
        // As any new file: what the user's mask leaves of this.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self::File(builder.tempfile_in(folder).with_context(what)?, path))
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stream(stream) => stream,
            Self::File(file, _) => file,
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Stream(mut stream) => Ok(stream.flush()?),
            Self::File(file, path) => Ok(file.persist(path).map(drop)?),
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Says what there is now, unless the copy itself goes to standard output.
fn tell(path: &Path, done: &Annotated) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let Annotated { frames, commented, comments, .. } = done;
    let (name, frames) = (complaint::name(path), count(*frames));
    let text = match commented {
        0 => format!("{name}: {frames} packets, none of them evidence of anything"),
        _ => format!(
            "{name}: {frames} packets, {} comments on {} of them",
            count(*comments),
            count(*commented)
        ),
    };
    output::print(|out| writeln!(out, "{}", tcpwhy_report::plain::plain(&text)))
}
