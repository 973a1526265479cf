//! `rmq produce`.

mod settings;

use std::{
    io,
    process::ExitCode,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rocketmq_client::{EmbeddedBroker, Producer};
use tokio::{
    task::{JoinError, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use self::settings::{Pattern, Settings};
use crate::{
    Failure, NOT_DONE,
    args::ProduceArgs,
    broker,
    in_flight::Snapshot,
    input::{Input, Line},
    interrupt::{self, Asked},
    outcome::{SendEvent, chain},
    report::{Log, Report},
    tally::{Ending, Goal},
};

/// Sends what the arguments ask for.
pub(crate) async fn run(args: ProduceArgs, log: Log) -> Result<ExitCode, Failure> {
    let settings = Settings::new(&args)?;
    let input = Input::open(args.content, args.count)?;
    let (interrupt, asked) = (interrupt::listen()?, Asked::listen()?);
    let embedded = match args.embedded {
        true => Some(broker::start(EmbeddedBroker::builder()).await?),
        false => None,
    };
    let producer = settings.producer(embedded.as_ref())?;
    producer.start().await.map_err(|error| Failure::run(chain(&error)))?;
    let run = Run {
        producer: producer.clone(),
        pattern: settings.pattern,
        budget: settings.budget,
        concurrency: args.sending.concurrency.into(),
        goal: settings.goal,
        report: Report::new(args.output, settings.goal, input.left(), log),
        input,
        sends: JoinSet::new(),
        next_seq: 0,
        phase: Phase::Sending,
    };
    let code = run.until_done(&interrupt, asked).await;
    producer.shutdown(settings.budget.min(SHUTDOWN)).await;
    if let Some(embedded) = embedded {
        embedded.close().await;
    }
    code
}

/// The sends of one run: at most so many at a time, each a task of its own.
struct Run {
    producer: Producer,
    pattern: Pattern,
    budget: Duration,
    concurrency: usize,
    goal: Goal,
    report: Report,
    input: Input,
    sends: JoinSet<Ended>,
    next_seq: u64,
    phase: Phase,
}

/// Whether further sends are begun; those in flight always end on their own.
enum Phase {
    Sending,
    /// The input has come to its end.
    Complete,
    /// An interrupt came first.
    Interrupted,
    /// The input cannot be read any further.
    Unreadable(io::Error),
    /// Nobody reads the report any more, or it cannot be written.
    Unheard,
}

/// A send that has ended.
struct Ended {
    event: SendEvent,
    /// Of its body.
    bytes: usize,
}

impl Run {
    async fn until_done(
        mut self,
        interrupt: &CancellationToken,
        mut asked: Asked,
    ) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        let mut flush = interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.is_sending() || !self.sends.is_empty() {
            tokio::select! {
                biased;
                () = interrupt.cancelled(), if self.is_sending() => self.interrupted(),
                () = asked.next() => self.report.remark(&Snapshot::of(&self.producer).to_string()),
                Some(ended) = self.sends.join_next() => self.ended(ended)?,
                _ = flush.tick() => self.report.flush(),
                next = self.input.next(), if self.is_sending() && self.sends.len() < self.concurrency => {
                    self.begin(next);
                }
            }
            if self.is_sending() && self.report.is_broken() {
                self.phase = Phase::Unheard;
            }
        }
        self.finish(started.elapsed())
    }

    const fn is_sending(&self) -> bool {
        matches!(self.phase, Phase::Sending)
    }

    fn interrupted(&mut self) {
        self.phase = Phase::Interrupted;
        let waiting = self.sends.len();
        self.report
            .remark(&format!("interrupted: waiting for {waiting} sends in flight; once more ends at once"));
    }

    fn begin(&mut self, next: Option<io::Result<Line>>) {
        let line = match next {
            None => {
                self.phase = Phase::Complete;
                return;
            }
            Some(Err(error)) => {
                self.phase = Phase::Unreadable(error);
                return;
            }
            Some(Ok(line)) => line,
        };
        let seq = self.next_seq;
        self.next_seq += 1;
        match line {
            Line::Whole(body) => self.send(seq, body),
            Line::TooLong { bytes } => {
                self.report.ended(&SendEvent::too_long(seq, bytes, self.budget), 0);
            }
        }
    }

    fn send(&mut self, seq: u64, body: Bytes) {
        let (producer, bytes, goal) = (self.producer.clone(), body.len(), self.goal);
        let message = self.pattern.message(body);
        self.sends.spawn(async move {
            let event = match goal {
                Goal::Stored => SendEvent::new(seq, &producer.send(message).await),
                Goal::Written => SendEvent::oneway(seq, &producer.send_oneway(message).await),
            };
            Ended { event, bytes }
        });
    }

    fn ended(&mut self, ended: Result<Ended, JoinError>) -> Result<(), Failure> {
        let Ended { event, bytes } =
            ended.map_err(|error| Failure::run(format_args!("a send was lost: {error}")))?;
        self.report.ended(&event, bytes);
        Ok(())
    }

    fn finish(self, elapsed: Duration) -> Result<ExitCode, Failure> {
        let interrupted = matches!(self.phase, Phase::Interrupted);
        let all_sent = matches!(self.phase, Phase::Complete);
        let not_started = if all_sent { Some(0) } else { self.input.left() };
        let in_flight = Snapshot::of_messages(&self.producer);
        let report = self.report.finish(Ending { elapsed, interrupted, not_started, in_flight });
        if let Phase::Unreadable(error) = self.phase {
            return Err(Failure::run(format_args!("the input cannot be read any further: {error}")));
        }
        match report {
            Ok(failures) if failures == 0 && all_sent => Ok(ExitCode::SUCCESS),
            Ok(_) => Ok(ExitCode::from(NOT_DONE)),
            // Whoever read it has seen enough, as `head` has.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::from(NOT_DONE)),
            Err(error) => Err(Failure::run(format_args!("the report cannot be written: {error}"))),
        }
    }
}

/// Every send has ended by then; the brokers are told within so much time.
const SHUTDOWN: Duration = Duration::from_secs(3);
/// Lines of the report are held back at most so long.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
