//! What the transport is held to, and whether it was met.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use crate::{
    rounds::{Cell, Figure, Rounds},
    spread::Spread,
    transport::{ALONE, CROWDED, Figures, MANY_PENDING, OURS},
};

/// The cells of the grid that targets ask for.
pub(crate) const CELLS: [Cell; 5] = [ONE, FEW, MOST, TWO_WORKERS, LARGE];
const ONE: Cell = Cell::new(1, 128, 1);
const FEW: Cell = Cell::new(16, 128, 1);
/// The one of most of them.
pub(crate) const MOST: Cell = Cell::new(256, 128, 1);
const TWO_WORKERS: Cell = Cell::new(256, 128, 2);
const LARGE: Cell = Cell::new(256, 16_384, 1);

/// One figure and its bounds.
pub(crate) struct Target {
    figure: Cow<'static, str>,
    must: f64,
    goal: f64,
    measured: Option<Spread>,
}

impl Target {
    pub(crate) fn new(
        figure: impl Into<Cow<'static, str>>,
        must: f64,
        goal: f64,
        measured: Option<Spread>,
    ) -> Self {
        Self { figure: figure.into(), must, goal, measured }
    }

    /// One without a goal beyond its bound.
    pub(crate) fn bound(figure: impl Into<Cow<'static, str>>, must: f64, measured: Option<Spread>) -> Self {
        Self::new(figure, must, must, measured)
    }

    /// A goal above the must is one to be reached from below.
    fn reaches(&self, bound: f64) -> bool {
        let Some(Spread { median, .. }) = self.measured else { return false };
        let median = rounded(median);
        if self.goal > self.must { median >= bound } else { median <= bound }
    }

    fn verdict(&self) -> Verdict {
        match self.measured {
            None => Verdict::NotMeasured,
            Some(_) if self.goal != self.must && self.reaches(self.goal) => Verdict::Goal,
            Some(_) if self.reaches(self.must) => Verdict::Must,
            Some(_) => Verdict::Missed,
        }
    }
}

enum Verdict {
    Goal,
    Must,
    Missed,
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Goal => "goal",
            Self::Must => "must",
            Self::Missed => "**no**",
            Self::NotMeasured => "not measured",
        })
    }
}

/// The targets as a table in Markdown.
pub(crate) fn table(targets: &[Target]) -> String {
    let mut out = "| figure | must | goal | measured | quartiles | least to most | met |\n".to_owned();
    out.push_str("|---|---|---|---|---|---|---|\n");
    for target in targets {
        let Target { figure, must, goal, measured } = target;
        let (median, quartiles, range) = match measured {
            Some(Spread { median, lower_quartile, upper_quartile, least, most }) => (
                number(*median),
                format!("{} – {}", number(*lower_quartile), number(*upper_quartile)),
                format!("{} – {}", number(*least), number(*most)),
            ),
            None => Default::default(),
        };
        let verdict = target.verdict();
        // Writing to a text does not fail.
        let _ =
            writeln!(out, "| {figure} | {must} | {goal} | {median} | {quartiles} | {range} | {verdict} |");
    }
    out
}

/// With as many digits as say something.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// Digits behind the point that say something.
const fn digits(value: f64) -> usize {
    match value {
        100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        _ => 4,
    }
}

/// The number that is shown, by which a target is judged.
fn rounded(value: f64) -> f64 {
    let unit = 10_f64.powi(digits(value) as i32);
    (value * unit).round() / unit
}

/// Those of the transport.
pub(crate) fn of_transport(figures: &Figures) -> Vec<Target> {
    let ratio = |cell, to, figure| in_cell(&figures.grid, cell)?.ratio(OURS, to, figure);
    let counted = |cell, figure| in_cell(&figures.counted, cell)?.figure(OURS, figure);
    let crowded = figures.crowded.ratio(CROWDED, ALONE, Figure::Cpu);
    let codec = |place: usize| figures.codec.get(place).map(|comparison| comparison.ratio);
    let held = figures.held.iter().find(|(pending, _)| *pending == MANY_PENDING);
    let per_pending = held.and_then(|(_, rounds)| rounds.figure(OURS, Figure::HeapPerPending));
    let row = |figure: &'static str, must, goal, measured| Target::new(figure, must, goal, measured);
    vec![
        row(
            "requests/s at 256 in flight, 1 worker, ÷ raw-full",
            0.85,
            1.1,
            ratio(MOST, "raw-full", Figure::Rate),
        ),
        row("the same, ÷ rocketmq-transport 1.0.0", 10.0, 15.0, ratio(MOST, "published", Figure::Rate)),
        row("at 256, 2 workers, ÷ raw", 0.55, 0.75, ratio(TWO_WORKERS, "raw", Figure::Rate)),
        row("at 16 in flight, ÷ raw", 0.6, 0.75, ratio(FEW, "raw", Figure::Rate)),
        row("16 KiB bodies at 256, ÷ raw", 0.6, 0.8, ratio(LARGE, "raw", Figure::Rate)),
        row("p50 at 1 in flight, ÷ ping-pong", 1.25, 1.15, ratio(ONE, "ping-pong", Figure::P50)),
        row("CPU per request at 256, ÷ raw", 2.2, 1.6, ratio(MOST, "raw", Figure::Cpu)),
        row(
            "p99 at 256, ÷ own p50",
            2.0,
            1.8,
            in_cell(&figures.grid, MOST).and_then(|rounds| rounds.figure(OURS, Figure::Tail)),
        ),
        row("socket writes per request at 256", 0.05, 0.02, counted(MOST, Figure::Writes)),
        row("socket writes per request at 16", 0.25, 0.15, counted(FEW, Figure::Writes)),
        row("allocations per request", 4.0, 3.0, counted(MOST, Figure::Allocations)),
        row("heap bytes per pending request, its task included, body shared", 900.0, 600.0, per_pending),
        row("bytes of the call future", 512.0, 384.0, Spread::of([figures.call_future_bytes as f64])),
        row("CPU per request with 100 k pending on one connection, ÷ with 1", 1.15, 1.08, crowded),
        row("JSON encode of a send, ÷ a hand-rolled writer", 1.6, 1.1, codec(0)),
        row("JSON decode of its response, ÷ a one-pass parser", 1.6, 1.2, codec(1)),
    ]
}

fn in_cell(rounds: &[Rounds], cell: Cell) -> Option<&Rounds> {
    rounds.iter().find(|rounds| rounds.cell == cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(must: f64, goal: f64, measured: Option<f64>) -> String {
        Target::new("", must, goal, Spread::of(measured)).verdict().to_string()
    }

    #[test]
    fn a_target_is_judged_by_the_number_that_is_shown() {
        assert_eq!(verdict(0.85, 1.1, Some(1.2)), "goal");
        assert_eq!(verdict(0.85, 1.1, Some(0.846)), "must");
        assert_eq!(verdict(0.85, 1.1, Some(0.844)), "**no**");
        assert_eq!(verdict(4.0, 3.0, Some(3.0003)), "goal");
        assert_eq!(verdict(4.0, 3.0, Some(3.1)), "must");
        assert_eq!(verdict(4.0, 3.0, Some(4.1)), "**no**");
        assert_eq!(verdict(4.0, 3.0, None), "not measured");
        assert_eq!(verdict(4.0, 4.0, Some(3.0)), "must");
    }
}
