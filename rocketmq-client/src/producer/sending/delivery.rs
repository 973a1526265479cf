//! What a send waits for: a broker's answer, or only the socket.

use std::{future::Future, time::Duration};

use rocketmq_transport::{
    CallOptions, Certainty, Command, Completed, Opaque, Peer, PendingRequestOwner, Request, Stage,
    StageClock, Transport, TransportError, Written,
};

use crate::{
    attempt::{AttemptList, Failure},
    error::SendErrorKind,
    message::UniqueKey,
    producer::{MessagePlace, OnewayReceipt, SendReceipt},
    protocol::send::{SendResponse, SendStatus},
    queue::MessageQueue,
    retry::{self, Answer, Decision, Duplicates},
    routes::shortened,
};

/// A way to hand a message over.
pub(in crate::producer) trait Delivery {
    /// How the transport says that a request has ended well.
    type Called: Send;
    /// What is known once it was handed over.
    type Done: Send;
    /// What the sender is told then.
    type Receipt;

    /// Makes one request.
    fn call<'a>(
        transport: &'a Transport,
        peer: &'a Peer,
        request: Request<'a>,
        options: CallOptions,
    ) -> impl Future<Output = Result<Self::Called, TransportError>> + Send + 'a;

    /// What a request that has ended well says of the message.
    fn ended(called: Self::Called) -> Ended<Self::Done>;

    /// The receipt of a send that ended so.
    fn receipt(done: Self::Done, sent: Sent) -> Self::Receipt;
}

/// How one request ended.
pub(in crate::producer) struct Ended<T> {
    pub(in crate::producer) outcome: Result<T, Failure>,
    pub(in crate::producer) clock: StageClock,
    pub(in crate::producer) carrier: Option<(PendingRequestOwner, Opaque)>,
    pub(in crate::producer) stage: Stage,
}

/// What is known of every send that succeeded.
pub(in crate::producer) struct Sent {
    pub(in crate::producer) message_id: UniqueKey,
    pub(in crate::producer) queue: MessageQueue,
    pub(in crate::producer) attempts: AttemptList,
    pub(in crate::producer) clock: StageClock,
    pub(in crate::producer) budget: Duration,
}

/// The broker answers that it has stored the message.
pub(in crate::producer) struct Acknowledged;

impl Delivery for Acknowledged {
    type Called = Completed;
    type Done = (SendStatus, SendResponse);
    type Receipt = SendReceipt;

    fn call<'a>(
        transport: &'a Transport,
        peer: &'a Peer,
        request: Request<'a>,
        options: CallOptions,
    ) -> impl Future<Output = Result<Completed, TransportError>> + Send + 'a {
        transport.call(peer, request, options)
    }

    fn ended(Completed { response, clock, generation, opaque, .. }: Completed) -> Ended<Self::Done> {
        Ended {
            outcome: read(&response),
            clock,
            carrier: Some((generation, opaque)),
            // A broker may answer before the last byte has left.
            stage: clock.stage().unwrap_or(Stage::AwaitingResponse),
        }
    }

    fn receipt((status, response): Self::Done, sent: Sent) -> SendReceipt {
        SendReceipt {
            status,
            message_id: sent.message_id,
            place: MessagePlace::new(sent.queue, response),
            attempts: sent.attempts,
            clock: sent.clock,
            budget: sent.budget,
        }
    }
}

/// A socket has accepted the last byte.
pub(in crate::producer) struct Oneway;

impl Delivery for Oneway {
    type Called = Written;
    type Done = ();
    type Receipt = OnewayReceipt;

    fn call<'a>(
        transport: &'a Transport,
        peer: &'a Peer,
        request: Request<'a>,
        options: CallOptions,
    ) -> impl Future<Output = Result<Written, TransportError>> + Send + 'a {
        transport.oneway(peer, request, options)
    }

    fn ended(Written { clock, generation, opaque, .. }: Written) -> Ended<()> {
        Ended { outcome: Ok(()), clock, carrier: Some((generation, opaque)), stage: Stage::Writing }
    }

    fn receipt((): (), sent: Sent) -> OnewayReceipt {
        OnewayReceipt {
            message_id: sent.message_id,
            queue: sent.queue,
            attempts: sent.attempts,
            clock: sent.clock,
            budget: sent.budget,
        }
    }
}

impl<T> Ended<T> {
    #[cold]
    pub(in crate::producer) fn failed(error: TransportError) -> Self {
        Self {
            clock: *error.stage_clock(),
            carrier: error.generation().zip(error.opaque()),
            stage: error.stage(),
            outcome: Err(Failure { certainty: error.certainty(), kind: SendErrorKind::Transport(error) }),
        }
    }
}

/// What comes after `failure`.
pub(in crate::producer) fn decision(failure: &Failure, duplicates: Duplicates) -> Decision {
    match &failure.kind {
        SendErrorKind::Transport(error) => retry::after_failure(error.kind(), failure.certainty, duplicates),
        SendErrorKind::Answer { code, remark } => retry::after_answer(Answer::of(*code, remark), duplicates),
        // The broker says that it has the message, so that another attempt would surely store it twice; the
        // others end no attempt.
        SendErrorKind::UnreadableAnswer(_)
        | SendErrorKind::InvalidMessage(_)
        | SendErrorKind::DeadlineExpired
        | SendErrorKind::Route(_)
        | SendErrorKind::NoSuchQueue(_)
        | SendErrorKind::QueueSaturated(_)
        | SendErrorKind::Closed => Decision::Stop,
    }
}

/// What a broker's answer says.
pub(in crate::producer) fn read(response: &Command) -> Result<(SendStatus, SendResponse), Failure> {
    let remark = response.remark().unwrap_or_default();
    let (code, remark) = (response.code(), shortened(&remark));
    let refused =
        |certainty| Failure { kind: SendErrorKind::Answer { code, remark: remark.into() }, certainty };
    match Answer::of(code, remark) {
        Answer::Stored(status) => {
            SendResponse::decode(response).map(|stored| (status, stored)).map_err(|error| Failure {
                kind: SendErrorKind::UnreadableAnswer(error),
                certainty: Certainty::Unknown,
            })
        }
        Answer::Declined | Answer::Rejected => Err(refused(Certainty::Refused)),
        Answer::Doubtful => Err(refused(Certainty::Unknown)),
    }
}
