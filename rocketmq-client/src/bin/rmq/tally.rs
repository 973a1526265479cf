//! What all sends together came to.

use std::{collections::BTreeMap, fmt, time::Duration};

use hdrhistogram::Histogram;
use rocketmq_transport::{Certainty, Stage};
use serde::Serialize;

use crate::outcome::{in_order, micros};

/// Counts and times over all sends so far.
#[derive(Debug)]
pub(crate) struct Tally {
    stored: u64,
    failed: u64,
    /// Bytes of the bodies that were stored.
    bytes: u64,
    stages: BTreeMap<Stage, u64>,
    certainties: BTreeMap<&'static str, u64>,
    /// Microseconds from the start of each stored send to its end.
    latency: Histogram<u64>,
}

/// How the run as a whole ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// From the first send to the last end.
    pub(crate) elapsed: Duration,
    /// Whether an interrupt kept some of the input from being sent.
    pub(crate) interrupted: bool,
    /// How many messages were not begun, where that is known.
    pub(crate) not_started: Option<u64>,
}

/// The last line of the report.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    event: &'static str,
    /// Messages sent or tried.
    messages: u64,
    outcome: OutcomeCounts,
    /// Failed messages by the stage they ended in.
    #[serde(serialize_with = "in_order")]
    stage: Vec<(&'static str, u64)>,
    /// Failed messages by what may be assumed of the brokers.
    #[serde(serialize_with = "in_order")]
    certainty: Vec<(&'static str, u64)>,
    interrupted: bool,
    /// Messages of the input that were not begun; null where their number is not known.
    not_started: Option<u64>,
    /// Bytes of the bodies that were stored.
    stored_bytes: u64,
    elapsed_us: u64,
    /// Stored messages per second.
    rate_per_s: f64,
    /// Over the stored messages; null where there are none.
    latency_us: Option<Latency>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct OutcomeCounts {
    stored: u64,
    failed: u64,
}

/// Percentiles in microseconds, within a thousandth.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            stored: 0,
            failed: 0,
            bytes: 0,
            stages: BTreeMap::new(),
            certainties: BTreeMap::new(),
            latency: Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds and digits are in range"),
        }
    }

    /// Counts a message that is stored.
    pub(crate) fn stored(&mut self, bytes: usize, elapsed_us: u64) {
        self.stored += 1;
        self.bytes += bytes as u64;
        self.latency.saturating_record(elapsed_us);
    }

    /// Counts a message that is not stored as far as is known.
    pub(crate) fn failed(&mut self, stage: Stage, certainty: Certainty) {
        self.failed += 1;
        *self.stages.entry(stage).or_default() += 1;
        *self.certainties.entry(certainty.as_str()).or_default() += 1;
    }

    /// How many messages have ended.
    pub(crate) const fn messages(&self) -> u64 {
        self.stored + self.failed
    }

    pub(crate) const fn failures(&self) -> u64 {
        self.failed
    }

    pub(crate) fn summary(&self, ending: Ending) -> Summary {
        let seconds = ending.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 { self.stored as f64 / seconds } else { 0.0 };
        let at = |quantile| self.latency.value_at_quantile(quantile);
        let latency = || Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.latency.max(),
        };
        Summary {
            event: "summary",
            messages: self.messages(),
            outcome: OutcomeCounts { stored: self.stored, failed: self.failed },
            stage: self.stages.iter().map(|(stage, count)| (stage.as_str(), *count)).collect(),
            certainty: self.certainties.iter().map(|(certainty, count)| (*certainty, *count)).collect(),
            interrupted: ending.interrupted,
            not_started: ending.not_started,
            stored_bytes: self.bytes,
            elapsed_us: micros(ending.elapsed),
            rate_per_s: (rate * 10.0).round() / 10.0,
            latency_us: (!self.latency.is_empty()).then(latency),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed_us as f64 / 1e6;
        write!(f, "{} of {} messages stored", self.outcome.stored, self.messages)?;
        write!(f, " ({} bytes) in {seconds:.3} s, {} messages/s", self.stored_bytes, self.rate_per_s)?;
        if let Some(latency) = self.latency_us {
            let ms = |us: u64| us as f64 / 1e3;
            write!(f, "\nlatency ms: p50 {:.3}  p90 {:.3}", ms(latency.p50), ms(latency.p90))?;
            write!(
                f,
                "  p99 {:.3}  p99.9 {:.3}  max {:.3}",
                ms(latency.p99),
                ms(latency.p999),
                ms(latency.max)
            )?;
        }
        if self.outcome.failed > 0 {
            write!(f, "\n{} failed, by stage:", self.outcome.failed)?;
            pairs(f, &self.stage)?;
            f.write_str("; by certainty:")?;
            pairs(f, &self.certainty)?;
        }
        match (self.interrupted, self.not_started) {
            (true, Some(left)) => write!(f, "\ninterrupted; {left} messages were not begun"),
            (true, None) => f.write_str("\ninterrupted; the rest of the input was not sent"),
            (false, _) => Ok(()),
        }
    }
}

fn pairs(f: &mut fmt::Formatter<'_>, pairs: &[(&str, u64)]) -> fmt::Result {
    pairs.iter().enumerate().try_for_each(|(index, (name, count))| {
        write!(f, "{} {name} {count}", if index == 0 { "" } else { "," })
    })
}

/// Longer sends count as this long: an hour.
const LONGEST_US: u64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(elapsed: Duration) -> Ending {
        Ending { elapsed, interrupted: false, not_started: Some(0) }
    }

    #[test]
    fn the_summary_counts_by_outcome_stage_and_certainty() {
        let mut tally = Tally::new();
        for elapsed_us in 1..=100 {
            tally.stored(10, elapsed_us);
        }
        tally.failed(Stage::AwaitingResponse, Certainty::Unknown);
        tally.failed(Stage::Connect, Certainty::NotSent);
        tally.failed(Stage::AwaitingResponse, Certainty::Unknown);
        let summary = tally.summary(ending(Duration::from_secs(2)));
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(
            json,
            r#"{"event":"summary","messages":103,"outcome":{"stored":100,"failed":3},"#.to_owned()
                + r#""stage":{"Connect":1,"AwaitingResponse":2},"certainty":{"NotSent":1,"Unknown":2},"#
                + r#""interrupted":false,"not_started":0,"stored_bytes":1000,"elapsed_us":2000000,"rate_per_s":50.0,"#
                + r#""latency_us":{"p50":50,"p90":90,"p99":99,"p999":100,"max":100}}"#
        );
        let text = summary.to_string();
        assert!(text.contains("100 of 103 messages stored (1000 bytes) in 2.000 s, 50 messages/s"), "{text}");
        assert!(
            text.contains(
                "3 failed, by stage: Connect 1, AwaitingResponse 2; by certainty: NotSent 1, Unknown 2"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_a_stored_message_has_no_latency_and_no_rate() {
        let mut tally = Tally::new();
        tally.failed(Stage::Route, Certainty::NotSent);
        let json = serde_json::to_value(tally.summary(ending(Duration::ZERO))).unwrap();
        assert_eq!(json["latency_us"], serde_json::Value::Null);
        assert_eq!(json["rate_per_s"], 0.0);
    }

    #[test]
    fn an_interrupted_run_says_what_is_left() {
        let tally = Tally::new();
        let mut end = Ending { elapsed: Duration::ZERO, interrupted: true, not_started: Some(7) };
        assert!(tally.summary(end).to_string().contains("interrupted; 7 messages were not begun"));
        end.not_started = None;
        assert!(tally.summary(end).to_string().contains("the rest of the input was not sent"));
    }
}
