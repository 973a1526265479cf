//! What a row of the fault matrix says.

use std::time::Duration;

use rocketmq_transport::{Certainty, Stage};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    Deadline,
    Dropped,
    Lost,
    Silent,
    Refuses,
    Saturation,
    Shutdown,
    /// The instant to start by, which the producer sets where another broker could take another attempt.
    StartBy,
    /// What is asked for or answered cannot be used.
    Unfit,
}

impl Fault {
    /// Those that are tried in every stage.
    pub(crate) const EVERYWHERE: [Self; 7] = [
        Self::Deadline,
        Self::Dropped,
        Self::Lost,
        Self::Silent,
        Self::Refuses,
        Self::Saturation,
        Self::Shutdown,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Dropped => "future dropped",
            Self::Lost => "connection lost",
            Self::Silent => "peer silent",
            Self::Refuses => "peer refuses",
            Self::Saturation => "saturation",
            Self::Shutdown => "shutdown",
            Self::StartBy => "start-by instant",
            Self::Unfit => "unfit",
        }
    }
}

/// One row: a fault in a stage, and all that follows from it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) stage: Stage,
    pub(crate) fault: Fault,
    /// How it comes about.
    pub(crate) how: &'static str,
    pub(crate) by: By,
    pub(crate) expect: Expect,
}

/// Who is watched while it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A call of the transport, frozen in the stage.
    Call,
    /// A send of the producer, to which this happens.
    Send(Script),
    /// Nobody: it cannot happen.
    Nobody,
}

/// What happens to a send where the stage alone does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// The name server does this.
    Names(Names),
    /// The whole client's limit is used up.
    ClientFull,
    EmptyBody,
    UnknownQueue,
    /// The body is larger than what may be kept for a repetition.
    LargeBody,
    /// The broker answers with this code and remark.
    Answer(i32, &'static str),
    /// It says that it has stored the message, and not where.
    Unreadable,
}

/// What the name server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Answers with this route.
    Route(&'static str),
    /// Answers that it knows no route.
    NoRoute,
    Silent,
    /// Ends the connection once it is asked.
    Cut,
    /// Takes no connection.
    Refuse,
}

/// What follows.
#[derive(Debug)]
pub(crate) enum Expect {
    Fails(Failure),
    /// Nobody is left to be told: there is no error and no line. The peer has this many whole frames.
    Abandoned {
        frames: u64,
    },
    /// It is no failure; the request goes on.
    GoesOn(&'static str),
    /// It cannot happen, because.
    CannotHappen(&'static str),
}

/// How the request fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) certainty: Certainty,
    /// The time spent in the stage, which is all of it.
    pub(crate) ms: u64,
    /// Fields of the line beside the common ones, with their values.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    /// What the producer does next.
    pub(crate) next: Next,
    /// Whether the request is remembered for the sake of a late answer, until it comes or its time is over.
    pub(crate) remembered: Remembered,
}

/// Whether a request that has ended is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    Yes,
    No,
}

/// What the producer does after an attempt that failed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It asks another broker.
    Another,
    /// It asks another broker, unless duplicates are forbidden.
    AnotherIfAllowed,
    /// It stops, because.
    Stop(&'static str),
    /// It never comes here, because.
    Never(&'static str),
}

impl Next {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Another => "another broker".into(),
            Self::AnotherIfAllowed => "another broker, unless duplicates are forbidden".into(),
            Self::Stop(because) => format!("stops: {because}"),
            Self::Never(because) => format!("does not come here: {because}"),
        }
    }
}

impl Row {
    pub(crate) const fn new(stage: Stage, fault: Fault, how: &'static str, by: By, expect: Expect) -> Self {
        Self { stage, fault, how, by, expect }
    }

    /// The budget of the request.
    pub(crate) fn budget(&self) -> Duration {
        Duration::from_millis(match (self.fault, self.stage) {
            (Fault::Deadline, _) => 500,
            (Fault::Silent, Stage::AwaitingResponse) => 3_000,
            _ => 60_000,
        })
    }

    /// The row in words, for messages.
    pub(crate) fn name(&self) -> String {
        format!("{} × {} ({})", self.stage, self.fault.as_str(), self.how)
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.expect {
            Expect::Fails(failure) => Some(failure),
            Expect::Abandoned { .. } | Expect::GoesOn(_) | Expect::CannotHappen(_) => None,
        }
    }
}
