//! One attempt of a send, and the bounded list of them.

use std::{fmt, mem, slice, time::Duration};

use rocketmq_transport::{
    Certainty, Opaque, Peer, PendingRequestOwner, Stage, TransportError, TransportErrorKind,
};

use crate::{
    error::{Explained, SendErrorKind},
    queue::MessageQueue,
    retry::AttemptPlan,
};

/// One attempt of a send: whom it asked, how far it got, and how it ended.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(crate) number: u32,
    pub(crate) queue: MessageQueue,
    pub(crate) peer: Peer,
    pub(crate) carrier: Option<(PendingRequestOwner, Opaque)>,
    pub(crate) stage: Stage,
    pub(crate) elapsed: Duration,
    pub(crate) plan: AttemptPlan,
    /// On the heap, so that an attempt without one is small.
    pub(crate) failure: Option<Box<Failure>>,
}

/// How an attempt failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: SendErrorKind,
    pub(crate) certainty: Certainty,
}

impl Attempt {
    /// Its number within the send, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The queue it was for.
    #[must_use]
    pub const fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The name of the broker it asked.
    #[must_use]
    pub fn broker(&self) -> &str {
        self.queue.broker()
    }

    /// The address it asked.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The connection that carried it; `None` where it was not written.
    #[must_use]
    pub fn generation(&self) -> Option<PendingRequestOwner> {
        self.carrier.map(|(generation, _)| generation)
    }

    /// Its correlation number on that connection; `None` where it was not written.
    #[must_use]
    pub fn opaque(&self) -> Option<Opaque> {
        self.carrier.map(|(_, opaque)| opaque)
    }

    /// How far it got.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// What may be assumed of the broker; `None` where it has stored the message.
    #[must_use]
    pub fn certainty(&self) -> Option<Certainty> {
        self.failure.as_ref().map(|failure| failure.certainty)
    }

    /// How long it took.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The time it was given.
    #[must_use]
    pub const fn plan(&self) -> &AttemptPlan {
        &self.plan
    }

    /// What ended it; `None` where the broker has stored the message.
    #[must_use]
    pub fn error(&self) -> Option<&SendErrorKind> {
        self.failure.as_ref().map(|failure| &failure.kind)
    }

    /// The failure of the transport, where that is what ended it.
    pub(crate) fn transport_error(&self) -> Option<&TransportError> {
        let SendErrorKind::Transport(error) = self.error()? else { return None };
        Some(error)
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.broker(), self.peer, self.stage)?;
        if let Some(Failure { kind, certainty }) = self.failure.as_deref() {
            write!(f, " {certainty} {} ({}", kind.code_id(), Explained(kind))?;
            self.transport_error().map_or(Ok(()), |error| write!(f, "{}", Evidence(error)))?;
            f.write_str(")")?;
        }
        write!(f, " {} ms", self.elapsed.as_millis())
    }
}

/// What is known of peer and client when a deadline expired: whether the peer was heard after our last byte had left, and
/// by how much our own process was late.
struct Evidence<'a>(&'a TransportError);

impl fmt::Display for Evidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = self;
        if !matches!(error.kind(), TransportErrorKind::DeadlineExpired) {
            return Ok(());
        }
        match (error.heard_since_written(), error.last_heard()) {
            (Some(true), Some(heard)) => write!(f, ", heard {} ms before", heard.as_millis())?,
            (Some(_), _) => f.write_str(", silent since written")?,
            (None, _) => {}
        }
        match error.client_stalled() {
            Some(stalled) => write!(f, ", client stalled for {} ms", stalled.as_millis()),
            None => Ok(()),
        }
    }
}

/// The attempts of one send, bounded, with the certainty of all of them.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    list: AttemptList,
    count: u32,
    certainty: Option<Certainty>,
}

impl Attempts {
    /// Adds the next attempt; of more than [`MAX_LISTED`] the middle ones are forgotten.
    pub(crate) fn push(&mut self, attempt: Attempt) {
        if let Some(certainty) = attempt.certainty() {
            self.certainty = Some(self.certainty.map_or(certainty, |so_far| worse(so_far, certainty)));
        }
        self.count = self.count.saturating_add(1);
        self.list.push(attempt);
    }

    /// The number of the next attempt.
    pub(crate) const fn next_number(&self) -> u32 {
        self.count.saturating_add(1)
    }

    /// Those that are listed, in order, to be kept.
    pub(crate) fn take_list(&mut self) -> AttemptList {
        mem::take(&mut self.list)
    }

    /// Those that are listed, in order.
    pub(crate) fn list(&self) -> &[Attempt] {
        self.list.as_slice()
    }

    /// The latest one.
    pub(crate) fn last(&self) -> Option<&Attempt> {
        self.list().last()
    }

    /// The certainty over all of them; `None` where none has failed.
    pub(crate) const fn certainty(&self) -> Option<Certainty> {
        self.certainty
    }
}

/// A bounded list of attempts. Most sends make one, for which nothing is allocated.
#[derive(Clone, Debug, Default)]
pub(crate) enum AttemptList {
    #[default]
    Empty,
    One(Attempt),
    Several(Vec<Attempt>),
}

impl AttemptList {
    pub(crate) fn as_slice(&self) -> &[Attempt] {
        match self {
            Self::Empty => &[],
            Self::One(attempt) => slice::from_ref(attempt),
            Self::Several(attempts) => attempts,
        }
    }

    fn push(&mut self, attempt: Attempt) {
        match self {
            Self::Empty => *self = Self::One(attempt),
            Self::One(first) => *self = Self::Several(vec![first.clone(), attempt]),
            Self::Several(attempts) => {
                if attempts.len() == MAX_LISTED {
                    attempts.remove(MAX_LISTED / 2);
                }
                attempts.push(attempt);
            }
        }
    }
}

/// What may be assumed after two failures: any doubt stays, and a refusal says more than nothing sent.
const fn worse(one: Certainty, other: Certainty) -> Certainty {
    match (one, other) {
        (Certainty::Unknown, _) | (_, Certainty::Unknown) => Certainty::Unknown,
        (Certainty::Refused, _) | (_, Certainty::Refused) => Certainty::Refused,
        (Certainty::NotSent, Certainty::NotSent) => Certainty::NotSent,
    }
}

/// How many attempts an error or receipt lists.
const MAX_LISTED: usize = 16;

#[cfg(test)]
mod tests {
    use rocketmq_transport::{Code, RequestDeadline};
    use tokio::time::Instant;

    use super::*;
    use crate::retry::{Duplicates, Prospect};

    fn attempt(number: u32, certainty: Certainty) -> Attempt {
        let kind = SendErrorKind::Answer { code: Code(2), remark: "busy".into() };
        Attempt {
            number,
            queue: MessageQueue::new("t", "a", 0),
            peer: "h:1".parse().unwrap(),
            carrier: None,
            stage: Stage::AwaitingResponse,
            elapsed: Duration::from_millis(7),
            plan: AttemptPlan::new(
                RequestDeadline::never(),
                Instant::now(),
                Prospect::Last,
                Duplicates::Allow,
            ),
            failure: Some(Box::new(Failure { kind, certainty })),
        }
    }

    #[test]
    fn any_doubt_stays_and_a_refusal_outweighs_what_was_not_sent() {
        use Certainty::{NotSent, Refused, Unknown};
        for (certainties, expected) in [
            (vec![], None),
            (vec![NotSent, NotSent], Some(NotSent)),
            (vec![Refused, NotSent], Some(Refused)),
            (vec![NotSent, Refused], Some(Refused)),
            (vec![Unknown, Refused, NotSent], Some(Unknown)),
            (vec![NotSent, Unknown], Some(Unknown)),
        ] {
            let mut attempts = Attempts::default();
            for certainty in &certainties {
                attempts.push(attempt(1, *certainty));
            }
            assert_eq!(attempts.certainty(), expected, "{certainties:?}");
        }
    }

    #[test]
    fn the_list_keeps_the_first_and_the_last_and_the_certainty_of_all() {
        let mut attempts = Attempts::default();
        for number in 1..=100 {
            let certainty = if number == 50 { Certainty::Unknown } else { Certainty::NotSent };
            attempts.push(attempt(number, certainty));
        }
        let numbers: Vec<_> = attempts.list().iter().map(Attempt::number).collect();
        assert_eq!(numbers, (1..=8).chain(93..=100).collect::<Vec<_>>());
        assert_eq!(attempts.certainty(), Some(Certainty::Unknown));
    }

    #[test]
    fn a_list_holds_no_attempt_one_or_several() {
        let mut attempts = Attempts::default();
        for number in 1..=3 {
            assert_eq!(attempts.next_number(), number);
            attempts.push(attempt(number, Certainty::NotSent));
            let numbers: Vec<_> = attempts.list().iter().map(Attempt::number).collect();
            assert_eq!(numbers, (1..=number).collect::<Vec<_>>());
        }
        assert_eq!(attempts.take_list().as_slice().len(), 3);
        assert!(attempts.list().is_empty());
    }

    #[test]
    fn an_attempt_says_whom_it_asked_and_how_it_ended() {
        let text = attempt(1, Certainty::Refused).to_string();
        assert_eq!(text, "a h:1 AwaitingResponse Refused RMQ-C08 (the broker answered 2: busy) 7 ms");
    }
}
