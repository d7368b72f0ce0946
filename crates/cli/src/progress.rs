//! How far reading has come, shown on standard error once it takes longer than a second.

use std::cell::{Cell, OnceCell};
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use tcpwhy_report::plain::plain;

/// What takes less needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// Bytes and packets of one input. indicatif itself shows nothing where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    name: String,
    /// Size in bytes; `None` for a stream.
    size: Option<u64>,
    bytes: Cell<u64>,
    packets: Cell<u64>,
    started: Instant,
    redraw_at: Cell<Duration>,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(path: &Path, size: Option<u64>) -> Self {
        Self {
            name: plain(&path.to_string_lossy()).into_owned(),
            size,
            bytes: Cell::new(0),
            packets: Cell::new(0),
            started: Instant::now(),
            redraw_at: Cell::new(PATIENCE),
            bar: OnceCell::new(),
        }
    }

    /// Counts bytes as they are stored: compressed ones compressed.
    pub(crate) fn add_bytes(&self, count: u64) {
        self.bytes.set(self.bytes.get() + count);
        self.tick();
    }

    pub(crate) fn set_packets(&self, packets: u64) {
        self.packets.set(packets);
    }

    /// Redraws if it is time to.
    pub(crate) fn tick(&self) {
        let elapsed = self.started.elapsed();
        if elapsed < self.redraw_at.get() {
            return;
        }
        self.redraw_at.set(elapsed + REDRAW);
        let bar = self.bar.get_or_init(|| self.new_bar());
        let packets = self.packets.get();
        let rate = (packets as f64 / elapsed.as_secs_f64()) as u64;
        bar.set_position(self.bytes.get());
        bar.set_message(format!("{} packets, {}/s", HumanCount(packets), HumanCount(rate)));
        bar.tick();
    }

    fn new_bar(&self) -> ProgressBar {
        let (bar, template) = match self.size {
            Some(size) => (
                ProgressBar::new(size),
                format!("{{prefix}} {{bar:20}} {{percent:>3}}% of {}  {{msg}}", HumanBytes(size)),
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {bytes} read  {msg}  (Ctrl-C for the report)".to_owned(),
            ),
        };
        // The template is ours: where it were wrong, the default style is no harm.
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.set_prefix(self.name.clone());
        bar
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
