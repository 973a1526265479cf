//! How far a run is, on standard error.

use std::{
    cell::Cell,
    fmt::Display,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// Time passed beside the time that the run is expected to take: a bar on a terminal, elsewhere a line for each step.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    expected: Duration,
    /// What the steps so far were expected to take.
    done: Cell<Duration>,
}

impl Progress {
    pub(crate) fn new(expected: Duration) -> Self {
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template is sound");
        let bar = ProgressBar::new(expected.as_millis() as u64).with_style(style);
        bar.set_prefix(HumanDuration(expected).to_string());
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { bar, started: Instant::now(), expected, done: Cell::default() }
    }

    /// One without steps known before, and without a bar.
    pub(crate) fn hidden() -> Self {
        let (started, expected) = (Instant::now(), Duration::ZERO);
        Self { bar: ProgressBar::hidden(), started, expected, done: Cell::default() }
    }

    /// Says what is done next.
    pub(crate) fn step(&self, what: impl Display) {
        if self.bar.is_hidden() && !self.expected.is_zero() {
            let [elapsed, expected] = [self.started.elapsed(), self.expected].map(|time| time.as_secs());
            eprintln!("{elapsed:>5} s of about {expected} s: {what}");
        }
        self.bar.set_message(what.to_string());
    }

    /// Notes that a part is done that was expected to take `expected`.
    pub(crate) fn advance(&self, expected: Duration) {
        self.done.set(self.done.get() + expected);
        self.bar.set_position(self.done.get().as_millis() as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

const TEMPLATE: &str = "{elapsed} of about {prefix} [{bar:30}] {msg}";
