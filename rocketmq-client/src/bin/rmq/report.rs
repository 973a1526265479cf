//! What the user sees while messages are sent, and at the end.

use std::{
    io::{self, BufWriter, IsTerminal as _, Stdout, Write as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    args::Output,
    outcome::{Outcome, SendEvent},
    tally::{Ending, Goal, Tally},
};

/// Writes each send's end in the form that was asked for, and counts.
#[derive(Debug)]
pub(crate) struct Report {
    form: Output,
    out: BufWriter<Stdout>,
    progress: ProgressBar,
    tally: Tally,
    /// What ended the writing to standard output.
    broken: Option<io::Error>,
}

impl Report {
    /// A report in the given form. `expected` is the number of messages, where it is known; the bar is shown
    /// only if standard error is a terminal and nothing else is written there.
    pub(crate) fn new(form: Output, goal: Goal, expected: Option<u64>, log: Log) -> Self {
        let apart = form == Output::Text || !io::stdout().is_terminal();
        let progress = match log {
            Log::Off if apart && io::stderr().is_terminal() => bar(expected),
            Log::Off | Log::On => ProgressBar::hidden(),
        };
        Self {
            form,
            out: BufWriter::with_capacity(OUT_BYTES, io::stdout()),
            progress,
            tally: Tally::new(goal),
            broken: None,
        }
    }

    /// Takes in the end of a send whose body has `bytes` bytes.
    pub(crate) fn ended(&mut self, event: &SendEvent, bytes: usize) {
        match &event.outcome {
            Outcome::Stored(_) | Outcome::Written(_) => self.tally.done(bytes, event.elapsed_us),
            Outcome::Failed(failed) => self.tally.failed(failed.stage, failed.certainty),
        }
        self.progress.inc(1);
        match (self.form, &event.outcome) {
            (Output::Json, _) => self.line(event),
            (Output::Text, Outcome::Stored(_) | Outcome::Written(_)) => {}
            (Output::Text, Outcome::Failed(failed)) => self.failure(event.seq, &failed.message),
        }
    }

    /// Hands over what is buffered, so that a reader sees it while nothing ends.
    pub(crate) fn flush(&mut self) {
        self.write(|out| out.flush());
    }

    /// Whether the report has ended before the run, for example because nobody reads it.
    pub(crate) const fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// A remark on the run itself, for people.
    pub(crate) fn remark(&self, text: &str) {
        self.progress.suspend(|| to_stderr(text));
    }

    /// Writes the summary; returns how many messages have failed, or what kept the
    /// report from being written.
    pub(crate) fn finish(mut self, ending: Ending) -> io::Result<u64> {
        self.progress.finish_and_clear();
        let summary = self.tally.summary(ending);
        match self.form {
            Output::Json => self.line(&summary),
            Output::Text => self.write(|out| writeln!(out, "{summary}")),
        }
        self.flush();
        self.broken.map_or(Ok(self.tally.failures()), Err)
    }

    /// One line for each of the first failures; the others are in the summary.
    fn failure(&self, seq: u64, message: &str) {
        match self.tally.failures() {
            count if count < SHOWN_FAILURES => self.remark(&format!("message {seq} failed: {message}")),
            SHOWN_FAILURES => {
                self.remark(&format!("message {seq} failed: {message}"));
                self.remark("further failures are only counted; --output json lists every one");
            }
            _ => {}
        }
    }

    fn line(&mut self, value: &impl serde::Serialize) {
        self.write(|out| {
            serde_json::to_writer(&mut *out, value)?;
            out.write_all(b"\n")
        });
    }

    /// After the first failure nothing more is written: what was left out would not be noticed.
    fn write(&mut self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) {
        if self.broken.is_none() {
            self.broken = write(&mut self.out).err();
        }
    }
}

/// Tells people; where nobody listens any more, nothing is lost.
pub(crate) fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether a log is written to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    On,
    Off,
}

fn bar(expected: Option<u64>) -> ProgressBar {
    let template = match expected {
        Some(_) => "{wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
        None => "{spinner} {human_pos} {per_sec} {elapsed}",
    };
    let style = ProgressStyle::with_template(template).expect("the template has only known keys");
    let bar = ProgressBar::with_draw_target(expected, ProgressDrawTarget::stderr()).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Text mode lists so many failures one by one.
const SHOWN_FAILURES: u64 = 20;
const OUT_BYTES: usize = 64 << 10;
/// How often the bar is drawn while nothing ends.
const TICK: Duration = Duration::from_millis(250);
