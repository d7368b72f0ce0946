//! What is going on, on standard error, while an experiment runs.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tcpwhy_lab::lab::Progress;
use tcpwhy_report::plain::plain;

use super::keys::Keys;

/// What a shell reports for a program that SIGINT ended: 128 + 2.
const INTERRUPTED: i32 = 130;

/// Time between two redraws: the clock in the bar moves while a run lasts.
const REDRAW: Duration = Duration::from_millis(200);

/// A bar that says which run is being made. indicatif itself shows nothing where standard error is no terminal.
pub(super) struct Watch {
    bar: ProgressBar,
    keys: Keys,
}

impl Watch {
    /// `of` is the experiment's place among those that run, from 1, and their number.
    pub(super) fn new(experiment: &str, of: (usize, usize)) -> Self {
        let name = if of.1 > 1 { format!("{experiment} ({}/{})", of.0, of.1) } else { experiment.to_owned() };
        let bar = ProgressBar::new(0).with_prefix(name);
        let bar = match ProgressStyle::with_template("{prefix}  {bar:20} {pos}/{len}  {elapsed}  {wide_msg}")
        {
            Ok(style) => bar.with_style(style.progress_chars("━╸─")),
            Err(_) => bar,
        };
        bar.enable_steady_tick(REDRAW);
        let keys = Keys::default();
        end_on_ctrl_c(&bar, &keys);
        Self { bar, keys }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.keys.release();
        self.bar.finish_and_clear();
    }
}

impl Progress for Watch {
    fn runs(&self, all: u64) {
        self.bar.set_length(all);
    }

    fn run(&self, what: &str) {
        self.bar.set_message(plain(what).into_owned());
    }

    fn voided(&self, what: &str) {
        self.line(&format!("void: the emulated link was late in {what}; made again"));
    }

    fn done(&self) {
        self.bar.inc(1);
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| {
            // That standard error cannot be written is the one thing nobody can be told.
            let _ = writeln!(io::stderr(), "{}", plain(text));
        });
    }

    fn key(&self) -> Option<char> {
        if io::stderr().is_terminal() { self.keys.pressed() } else { None }
    }
}

/// Ctrl-C takes the bar off the screen, gives the keyboard back and ends the program; namespaces and devices have
/// no names and are gone with it.
fn end_on_ctrl_c(bar: &ProgressBar, keys: &Keys) {
    use std::sync::{Mutex, OnceLock, PoisonError};
    type Now = Arc<Mutex<(ProgressBar, Keys)>>;
    static NOW: OnceLock<Now> = OnceLock::new();
    let fresh = (bar.clone(), keys.clone());
    if let Some(now) = NOW.get() {
        *now.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        return;
    }
    let now = NOW.get_or_init(|| Arc::new(Mutex::new(fresh))).clone();
    // Where no handler can be set, Ctrl-C ends the program all the same.
    let _ = ctrlc::set_handler(move || {
        let (bar, keys) = &*now.lock().unwrap_or_else(PoisonError::into_inner);
        keys.release();
        bar.finish_and_clear();
        process::exit(INTERRUPTED);
    });
}
