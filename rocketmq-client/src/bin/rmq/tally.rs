//! What all sends together came to.

use std::{collections::BTreeMap, fmt, time::Duration};

use hdrhistogram::Histogram;
use rocketmq_transport::{Certainty, Stage};
use serde::Serialize;

use crate::{
    in_flight::Snapshot,
    outcome::{in_order, micros},
};

/// Counts and times over all sends so far.
#[derive(Debug)]
pub(crate) struct Tally {
    goal: Goal,
    /// Messages that have reached the goal.
    done: u64,
    failed: u64,
    /// Bytes of their bodies.
    bytes: u64,
    stages: BTreeMap<Stage, u64>,
    certainties: BTreeMap<&'static str, u64>,
    /// Microseconds from the start of each send that has reached the goal to its end.
    latency: Histogram<u64>,
}

/// What counts as success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A broker says that it has stored the message.
    Stored,
    /// A socket has accepted the message, which asks for no answer.
    Written,
}

/// How the run as a whole ended.
#[derive(Debug)]
pub(crate) struct Ending {
    /// From the first send to the last end.
    pub(crate) elapsed: Duration,
    /// Whether an interrupt kept some of the input from being sent.
    pub(crate) interrupted: bool,
    /// How many messages were not begun, where that is known.
    pub(crate) not_started: Option<u64>,
    /// The messages that are in flight even so: brokers may still answer them.
    pub(crate) in_flight: Option<Snapshot>,
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
    /// Bytes of the bodies that were stored, or, one-way, written.
    #[serde(flatten)]
    bytes: Bytes,
    elapsed_us: u64,
    /// Stored or written messages per second.
    rate_per_s: f64,
    /// Over the stored or written messages; null where there are none.
    latency_us: Option<Latency>,
    /// Left out where nothing was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<Snapshot>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct OutcomeCounts {
    #[serde(flatten)]
    done: Done,
    failed: u64,
}

/// Messages that have reached the goal, under its name.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Done {
    Stored(u64),
    Written(u64),
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bytes {
    StoredBytes(u64),
    WrittenBytes(u64),
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
    pub(crate) fn new(goal: Goal) -> Self {
        Self {
            goal,
            done: 0,
            failed: 0,
            bytes: 0,
            stages: BTreeMap::new(),
            certainties: BTreeMap::new(),
            latency: Histogram::new_with_bounds(1, LONGEST_US, 3).expect("bounds and digits are in range"),
        }
    }

    /// Counts a message that has reached the goal.
    pub(crate) fn done(&mut self, bytes: usize, elapsed_us: u64) {
        self.done += 1;
        self.bytes += bytes as u64;
        self.latency.saturating_record(elapsed_us);
    }

    /// Counts a message that has not, as far as is known.
    pub(crate) fn failed(&mut self, stage: Stage, certainty: Certainty) {
        self.failed += 1;
        *self.stages.entry(stage).or_default() += 1;
        *self.certainties.entry(certainty.as_str()).or_default() += 1;
    }

    /// How many messages have ended.
    pub(crate) const fn messages(&self) -> u64 {
        self.done + self.failed
    }

    pub(crate) const fn failures(&self) -> u64 {
        self.failed
    }

    pub(crate) fn summary(&self, ending: Ending) -> Summary {
        let seconds = ending.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 };
        let at = |quantile| self.latency.value_at_quantile(quantile);
        let latency = || Latency {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.latency.max(),
        };
        let (done, bytes) = match self.goal {
            Goal::Stored => (Done::Stored(self.done), Bytes::StoredBytes(self.bytes)),
            Goal::Written => (Done::Written(self.done), Bytes::WrittenBytes(self.bytes)),
        };
        Summary {
            event: "summary",
            messages: self.messages(),
            outcome: OutcomeCounts { done, failed: self.failed },
            stage: self.stages.iter().map(|(stage, count)| (stage.as_str(), *count)).collect(),
            certainty: self.certainties.iter().map(|(certainty, count)| (*certainty, *count)).collect(),
            interrupted: ending.interrupted,
            not_started: ending.not_started,
            bytes,
            elapsed_us: micros(ending.elapsed),
            rate_per_s: (rate * 10.0).round() / 10.0,
            latency_us: (!self.latency.is_empty()).then(latency),
            in_flight: ending.in_flight,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed_us as f64 / 1e6;
        let (done, goal) = match self.outcome.done {
            Done::Stored(count) => (count, "stored"),
            Done::Written(count) => (count, "written"),
        };
        let (Bytes::StoredBytes(bytes) | Bytes::WrittenBytes(bytes)) = self.bytes;
        write!(f, "{done} of {} messages {goal} ({bytes} bytes)", self.messages)?;
        write!(f, " in {seconds:.3} s, {} messages/s", self.rate_per_s)?;
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
            (true, Some(left)) => write!(f, "\ninterrupted; {left} messages were not begun")?,
            (true, None) => f.write_str("\ninterrupted; the rest of the input was not sent")?,
            (false, _) => {}
        }
        match &self.in_flight {
            Some(left) => write!(f, "\n{left}"),
            None => Ok(()),
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
        Ending { elapsed, interrupted: false, not_started: Some(0), in_flight: None }
    }

    #[test]
    fn the_summary_counts_by_outcome_stage_and_certainty() {
        let mut tally = Tally::new(Goal::Stored);
        for elapsed_us in 1..=100 {
            tally.done(10, elapsed_us);
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
        let mut tally = Tally::new(Goal::Stored);
        tally.failed(Stage::Route, Certainty::NotSent);
        let json = serde_json::to_value(tally.summary(ending(Duration::ZERO))).unwrap();
        assert_eq!(json["latency_us"], serde_json::Value::Null);
        assert_eq!(json["rate_per_s"], 0.0);
    }

    #[test]
    fn a_one_way_run_counts_what_was_written_under_that_name() {
        let mut tally = Tally::new(Goal::Written);
        tally.done(10, 5);
        let summary = tally.summary(ending(Duration::from_secs(1)));
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["outcome"], serde_json::json!({ "written": 1, "failed": 0 }));
        assert_eq!((&json["written_bytes"], json.get("stored_bytes")), (&10.into(), None));
        assert!(summary.to_string().starts_with("1 of 1 messages written (10 bytes)"), "{summary}");
    }

    #[test]
    fn an_interrupted_run_says_what_is_left() {
        let tally = Tally::new(Goal::Stored);
        let end = |not_started| Ending { interrupted: true, not_started, ..ending(Duration::ZERO) };
        assert!(tally.summary(end(Some(7))).to_string().contains("interrupted; 7 messages were not begun"));
        assert!(tally.summary(end(None)).to_string().contains("the rest of the input was not sent"));
    }
}
