//! Prints the hand-made reports as a terminal shows them, to look at the design:
//! `cargo run -p tcpwhy-report --example samples -- [NAME|crowd] [WIDTH]`.

#[path = "../tests/samples/mod.rs"]
mod samples;

use tcpwhy_diagnose::report::Source;
use tcpwhy_report::terminal::{self, Options};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next();
    let width = args.next().and_then(|width| width.parse().ok()).unwrap_or(80);
    let mut options = Options { width, color: true, ..Options::default() };
    let mut out = std::io::stdout().lock();
    if name.as_deref() == Some("crowd") {
        return terminal::write(&mut out, &samples::Crowd { connections: 1_000_000 }, &options);
    }
    for (_, sample) in
        samples::all().iter().filter(|(known, _)| name.as_deref().is_none_or(|name| name == *known))
    {
        terminal::write(&mut out, sample as &dyn Source, &options)?;
        options.follows = true;
    }
    Ok(())
}
