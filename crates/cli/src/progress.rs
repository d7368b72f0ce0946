//! How far reading has come, shown on standard error once it takes longer than a second.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tcpwhy_report::plain::plain;

use crate::complaint;

/// What takes less needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);

/// How far the reading of an input has come, for other threads.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Bytes that the input has, as they are stored; 0 where that is not known.
    pub(crate) size: AtomicU64,
    /// Bytes of it that were read.
    pub(crate) bytes: AtomicU64,
    pub(crate) packets: AtomicU64,
    /// How often it was begun to read.
    pub(crate) passes: AtomicU64,
}

/// Bytes and packets of one input. indicatif itself shows nothing where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    name: String,
    /// Size in bytes; `None` for a stream.
    size: Cell<Option<u64>>,
    bytes: Cell<u64>,
    packets: Cell<u64>,
    started: Instant,
    redraw_at: Cell<Duration>,
    bar: RefCell<Option<ProgressBar>>,
    /// Who looks on instead of a terminal.
    seen: Option<Arc<Seen>>,
}

impl Progress {
    pub(crate) fn new(path: &Path, size: Option<u64>, seen: Option<Arc<Seen>>) -> Self {
        if let Some(seen) = &seen {
            seen.size.store(size.unwrap_or_default(), Ordering::Relaxed);
            seen.bytes.store(0, Ordering::Relaxed);
            seen.packets.store(0, Ordering::Relaxed);
            seen.passes.fetch_add(1, Ordering::Relaxed);
        }
        Self {
            name: plain(&complaint::name(path)).into_owned(),
            size: Cell::new(size),
            bytes: Cell::new(0),
            packets: Cell::new(0),
            started: Instant::now(),
            redraw_at: Cell::new(PATIENCE),
            bar: RefCell::default(),
            seen,
        }
    }

    /// The input goes on in another file of that size.
    pub(crate) fn add_size(&self, more: u64) {
        let size = self.size.get().map(|size| size + more);
        self.size.set(size);
        if let (Some(bar), Some(size)) = (&*self.bar.borrow(), size) {
            bar.set_length(size);
        }
    }

    /// Counts bytes as they are stored: compressed ones compressed.
    pub(crate) fn add_bytes(&self, count: u64) {
        self.bytes.set(self.bytes.get() + count);
        self.tick();
    }

    pub(crate) fn set_packets(&self, packets: u64) {
        self.packets.set(packets);
        if let Some(seen) = &self.seen {
            seen.packets.store(packets, Ordering::Relaxed);
        }
    }

    /// Redraws if it is time to.
    pub(crate) fn tick(&self) {
        if let Some(seen) = &self.seen {
            seen.bytes.store(self.bytes.get(), Ordering::Relaxed);
            return;
        }
        let elapsed = self.started.elapsed();
        if elapsed < self.redraw_at.get() {
            return;
        }
        self.redraw_at.set(elapsed + REDRAW);
        let mut bar = self.bar.borrow_mut();
        let bar = bar.get_or_insert_with(|| self.new_bar());
        let packets = self.packets.get();
        let rate = (packets as f64 / elapsed.as_secs_f64()) as u64;
        bar.set_position(self.bytes.get());
        bar.set_message(format!("{} packets, {}/s  {}", HumanCount(packets), HumanCount(rate), self.name));
    }

    fn new_bar(&self) -> ProgressBar {
        // The message is cut to the terminal's width: a line that wraps cannot be redrawn.
        let (bar, template) = match self.size.get() {
            Some(size) => (ProgressBar::new(size), "{bar:24} {percent:>3}%  {wide_msg}"),
            None => (ProgressBar::no_length(), "Ctrl-C for the report  {bytes}, {wide_msg}"),
        };
        // The template is ours: where it were wrong, the default style is no harm.
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    /// Takes the bar off the screen, until the next redraw.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
