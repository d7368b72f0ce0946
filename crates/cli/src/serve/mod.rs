//! `tcpwhy serve [DIR]`: a page for this machine's browser that takes captures, keeps their reports and compares them.

mod access;
mod analysis;
mod answer;
mod connections;
mod folder;
mod jobs;
mod live;
mod routes;
mod store;
mod upload;
mod worker;

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{self, Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueHint;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tcpwhy_report::html::template;
use tcpwhy_report::plain::plain;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::link::quantity::memory;
use crate::relay::address;
use crate::{complaint, create, output};
use access::Access;
use jobs::Jobs;
use live::Live;
use store::Store;

pub(crate) const LONG_ABOUT: &str = "\
Opens a page for this machine's browser: the captures in DIR (right in it, not in its folders) and the reports made of \
them. Captures are analysed one by one, reports kept and compared: the same service before and after a change.

Nobody else gets in: it listens on 127.0.0.1, and the address that it prints has a token in it, without which there is \
no page. It reads nothing outside DIR, and writes what is uploaded or captured there, and reports into \
DIR/.tcpwhy/reports.sqlite. Ctrl-C ends it.";

const EXAMPLES: &str = "\
Examples:
  The captures in this folder:
      tcpwhy serve

  Those of a server that you reach by ssh, in your own browser:
      ssh -L 8000:127.0.0.1:8000 server tcpwhy serve --listen 8000 /var/captures";

/// Where reports are kept, in the folder of captures: whoever moves the folder has both.
const STORE: &str = ".tcpwhy/reports.sqlite";
/// Threads for disks and analyses.
const THREADS: usize = 16;
/// How long threads have to notice that the server has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// `tcpwhy serve`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder of captures
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// A port of this machine, or ADDRESS:PORT [default: any free port of 127.0.0.1]
    ///
    /// On another address than 127.0.0.1 others can connect, and see what passes: it is not encrypted. Without the token
    /// they get nothing.
    #[arg(long, value_name = "ADDR", value_parser = address::listen)]
    listen: Option<SocketAddr>,

    /// Keep reports in this file [default: DIR/.tcpwhy/reports.sqlite]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    store: Option<PathBuf>,

    /// The largest capture it takes: 500MB, 2GB
    ///
    /// The benchmark's captures are 2 GB, and take some seconds; what is dropped by mistake should not fill a disk.
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = memory)]
    upload_limit: u64,

    /// The memory that an analysis may take: 500MB, 4GB
    ///
    /// Two go on at once, each in a process of its own: what needs more ends alone. Connections take half of it at most, about
    /// a kilobyte each; beyond that half of them are forgotten, and the report says so.
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = memory)]
    memory_limit: u64,

    /// Access rights of captures that are uploaded or made: 0640 lets the group read them
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = create::mode)]
    mode: u32,

    /// Be the process that analyses this capture
    #[arg(long, hide = true, value_name = "NAME")]
    report_of: Option<String>,

    /// Open it in the browser
    #[arg(long)]
    open: bool,
}

/// What all requests share.
struct Shared {
    access: Access,
    page: &'static str,
    /// The folder of captures, for people. It is the working directory.
    folder: String,
    store: Mutex<Store>,
    upload_limit: u64,
    /// Bytes that an analysis may take.
    memory_limit: u64,
    /// Access rights of captures.
    mode: u32,
    uploads: Semaphore,
    jobs: Jobs,
    live: Live,
}

impl Shared {
    fn store(&self) -> MutexGuard<'_, Store> {
        // SQLite keeps itself in order.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(capture) = &args.report_of {
        return worker::run(capture, args.memory_limit);
    }
    let page = template::SERVE
        .context("this tcpwhy was built without the page: run `make viewer`, then build again")?;
    let store = args.store.as_deref().map(path::absolute).transpose()?;
    let folder = enter(&args.dir)?;
    upload::tidy();
    let store = Store::open(&match store {
        Some(path) => path,
        None => own_place()?,
    })?;
    let address = args.listen.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS).build()?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| anyhow!("cannot listen on {address}: {}", why(&error)))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            access: Access::new(address)?,
            page,
            folder,
            store: Mutex::new(store),
            upload_limit: args.upload_limit,
            memory_limit: args.memory_limit,
            mode: args.mode,
            uploads: Semaphore::new(upload::MOST_AT_ONCE),
            jobs: Jobs::new(),
            live: Live::new(),
        });
        let ending = on_signals()?;
        announce(args, address, &shared)?;
        connections::serve(listener, routes::router(Arc::clone(&shared)), ending).await;
        shared.live.end_now();
        shared.jobs.end().await;
        Ok(ExitCode::SUCCESS)
    });
    runtime.shutdown_timeout(LAST_WORDS);
    ended
}

/// Makes the folder the working directory: from then on, names are paths in it. What it is called.
fn enter(folder: &Path) -> Result<String> {
    let name = plain(&folder.to_string_lossy()).into_owned();
    let entered =
        env::set_current_dir(folder).and_then(|()| fs::read_dir(".")).and_then(|_| env::current_dir());
    match entered {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            bail!("{name} is a file: name the folder that it is in")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no folder {name}"),
        Err(error) => Err(error).with_context(|| format!("the folder {name} cannot be read")),
    }
}

/// The folder's own place for reports.
fn own_place() -> Result<PathBuf> {
    /// What is in captures concerns nobody else.
    const OWN: u32 = 0o700;
    let path = Path::new(STORE);
    if let Some(parent) = path.parent() {
        match DirBuilder::new().mode(OWN).create(parent) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                bail!("reports cannot be kept in the folder ({error}): name another file with --store")
            }
            _ => {}
        }
        let is_folder = parent.symlink_metadata()?.is_dir();
        ensure!(is_folder, "{} is no folder: name another file with --store", parent.display());
        // Somebody else's stays as it is; one of an older version is made one's own.
        let _ = fs::set_permissions(parent, Permissions::from_mode(OWN));
    }
    Ok(path.to_owned())
}

/// Says where the page is.
fn announce(args: &Args, address: SocketAddr, shared: &Shared) -> Result<()> {
    // Who listens everywhere is at home here, too.
    let shown =
        if address.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, address.port()).into() } else { address };
    let url = format!("http://{shown}/?token={}", shared.access.token());
    complaint::say(&format!("captures in {}; Ctrl-C ends it", shared.folder));
    if !address.ip().is_loopback() {
        complaint::say(&format!("others can connect to {address}, and what passes is not encrypted"));
    }
    let mut out = output::stdout();
    writeln!(out, "{url}").and_then(|()| out.flush()).map_err(output::failed)?;
    if args.open {
        let browser = Command::new(OPENER)
            .arg(&url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = browser {
            complaint::say(&format!(
                "no browser could be opened ({OPENER}: {error}): open the address yourself"
            ));
        }
    }
    Ok(())
}

#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Becomes true when somebody asks for the end; who asks twice does not wait.
fn on_signals() -> Result<watch::Receiver<bool>> {
    let (end, ending) = watch::channel(false);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if end.send_replace(true) {
                process::exit(128 + signal);
            }
        }
    });
    Ok(ending)
}

/// Why nobody can listen there, and what to try.
fn why(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program listens there: try another port".to_owned(),
        ErrorKind::AddrNotAvailable => "no address of this machine".to_owned(),
        ErrorKind::PermissionDenied => "permission denied: ports below 1024 are root's, try 8000".to_owned(),
        _ => error.to_string(),
    }
}
