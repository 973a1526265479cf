//! The fault matrix: every stage, and everything that can go wrong there.

use rocketmq_transport::{
    Certainty::{self, NotSent, Refused, Unknown},
    Stage,
};

use crate::row::{
    By::{self, Call, Send},
    Expect::{self, Abandoned, CannotHappen, GoesOn},
    Failure,
    Fault::{self, Deadline, Dropped, Lost, Refuses, Saturation, Shutdown, Silent, StartBy, Unfit},
    Names,
    Next::{self, Another, AnotherIfAllowed, Never, Stop},
    Remembered, Row, Script,
};

/// All rows, by stage.
pub(crate) fn rows() -> Vec<Row> {
    [route(), admission(), connect(), signing(), before_write(), writing(), awaiting_response()]
        .into_iter()
        .flatten()
        .collect()
}

fn route() -> Vec<Row> {
    let row = |fault, how, script, expect| Row::new(Stage::Route, fault, how, Send(script), expect);
    let names = |fault, how, names, expect| row(fault, how, Script::Names(names), expect);
    let ends = |code, ms| fails(code, NotSent, ms, Stop(ASKED_NOBODY));
    let refused = |code| fails(code, Refused, 0, Stop("it is the same for every broker"));
    vec![
        names(Deadline, "the lookup outlasts the budget", Names::Silent, ends("RMQ-C02", 500)),
        names(Dropped, "dropped during the lookup", Names::Silent, Abandoned { frames: 0 }),
        names(Lost, "the name server hangs up", Names::Cut, ends("RMQ-C05", 0)),
        names(Silent, "the lookup's own limit of 3 s comes first", Names::Silent, ends("RMQ-C05", 3_000)),
        names(Refuses, "the name server takes no connection", Names::Refuse, ends("RMQ-C05", 0)),
        names(Refuses, "the name server knows no such topic", Names::NoRoute, ends("RMQ-C03", 0)),
        names(Refuses, "no broker of the topic can be written", Names::Route(SLAVE_ONLY), ends("RMQ-C04", 0)),
        row(
            Saturation,
            "the client's limit leaves no room for the lookup",
            Script::ClientFull,
            ends("RMQ-C05", 0),
        ),
        names(Shutdown, "shut down during the lookup", Names::Silent, ends("RMQ-C10", 200)),
        row(Unfit, "the message breaks a rule", Script::EmptyBody, refused("RMQ-C01")),
        row(Unfit, "the topic has no such queue", Script::UnknownQueue, refused("RMQ-C06")),
    ]
}

fn admission() -> Vec<Row> {
    let row = |fault, how, by, expect| Row::new(Stage::Admission, fault, how, by, expect);
    let waits = |code, ms| fails(code, NotSent, ms, Never("it never waits for room"));
    vec![
        row(Deadline, "waits for room until its deadline", Call, waits("RMQ-T01", 500)),
        row(StartBy, "waits for room until it should have started", Call, waits("RMQ-T02", 500)),
        row(Dropped, "dropped while it waits for room", Call, Abandoned { frames: 0 }),
        impossible(Stage::Admission, Lost, "no connection is needed to be admitted"),
        impossible(
            Stage::Admission,
            Silent,
            "no peer is asked; what requests to a silent peer still hold is saturation",
        ),
        impossible(Stage::Admission, Refuses, "no peer is asked; the limits are our own"),
        row(
            Saturation,
            "the limit of the whole client is used up",
            Send(Script::ClientFull),
            with(
                fails("RMQ-T03", Refused, 0, Stop("it is the same for every broker")),
                &[("admission", CLIENT_FULL)],
            ),
        ),
        row(
            Saturation,
            "the limit of this peer is used up",
            Call,
            with(fails("RMQ-T03", Refused, 0, Another), &[("admission", CLASS_FULL)]),
        ),
        row(Shutdown, "shut down while it waits for room", Call, waits("RMQ-T10", 200)),
        row(
            Unfit,
            "larger than a whole limit",
            Call,
            with(
                fails("RMQ-T04", Refused, 0, Stop("it fits no broker's limit")),
                &[("admission", TOO_LARGE)],
            ),
        ),
        row(
            Unfit,
            "the body may not be kept for a repetition",
            Send(Script::LargeBody),
            fails("RMQ-C07", Refused, 0, Stop("it is the same for every broker")),
        ),
    ]
}

fn connect() -> Vec<Row> {
    let row = |fault, how, expect| Row::new(Stage::Connect, fault, how, Call, expect);
    vec![
        row(Deadline, "the dial outlasts the budget", fails("RMQ-T01", NotSent, 500, Stop(NO_TIME))),
        row(StartBy, "the dial outlasts its share", fails("RMQ-T02", NotSent, 500, Another)),
        row(Dropped, "dropped during the dial, which goes on for others", Abandoned { frames: 0 }),
        row(
            Lost,
            "the connection before ended without one answer, so there is a pause",
            fails("RMQ-T07", NotSent, 0, Another),
        ),
        row(Silent, "the dial's own limit of 3 s comes first", fails("RMQ-T06", NotSent, 3_000, Another)),
        row(Refuses, "the peer takes no connection", fails("RMQ-T06", NotSent, 200, Another)),
        row(Saturation, "no local port is left", fails("RMQ-T06", NotSent, 200, Another)),
        row(Shutdown, "shut down during the dial", fails("RMQ-T10", NotSent, 200, Stop(SHUT_DOWN))),
    ]
}

fn signing() -> Vec<Row> {
    let row = |fault, how, expect| Row::new(Stage::Signing, fault, how, Call, expect);
    vec![
        row(Deadline, "the signer outlasts the budget", fails("RMQ-T01", NotSent, 500, Stop(NO_TIME))),
        row(StartBy, "the signer outlasts its share", fails("RMQ-T02", NotSent, 500, Another)),
        row(Dropped, "dropped while it is signed", Abandoned { frames: 0 }),
        row(
            Lost,
            "the connection ends while it is signed",
            GoesOn("it takes the next connection, with its place, its clock and its signature"),
        ),
        impossible(Stage::Signing, Silent, "nothing is due from the peer yet"),
        row(Refuses, "the signer fails", fails("RMQ-T08", NotSent, 200, Another)),
        impossible(Stage::Signing, Saturation, HAS_ITS_PLACE),
        row(Shutdown, "shut down while it is signed", fails("RMQ-T10", NotSent, 200, Stop(SHUT_DOWN))),
    ]
}

fn before_write() -> Vec<Row> {
    let row = |fault, how, expect| Row::new(Stage::BeforeWrite, fault, how, Call, expect);
    vec![
        row(Deadline, "queued behind a full socket", fails("RMQ-T01", NotSent, 500, Stop(NO_TIME))),
        row(StartBy, "queued behind a full socket for its share", fails("RMQ-T02", NotSent, 500, Another)),
        row(Dropped, "dropped in the queue, which withdraws it", Abandoned { frames: 0 }),
        row(Lost, "the connection ends before its turn", fails("RMQ-T09", NotSent, 200, Another)),
        row(Silent, "the peer reads nothing for 10 s", fails("RMQ-T09", NotSent, 10_000, Another)),
        impossible(
            Stage::BeforeWrite,
            Refuses,
            "the peer does not know of it; an answer to it is unsolicited",
        ),
        impossible(Stage::BeforeWrite, Saturation, HAS_ITS_PLACE),
        row(Shutdown, "still queued when the drain ends", fails("RMQ-T10", NotSent, 300, Stop(SHUT_DOWN))),
        row(Unfit, "too long for a frame", fails("RMQ-T05", Refused, 0, Stop("it fits no frame"))),
    ]
}

fn writing() -> Vec<Row> {
    let row = |fault, how, by, expect| Row::new(Stage::Writing, fault, how, by, expect);
    let torn = |code, ms, next| fails(code, NotSent, ms, next);
    vec![
        row(
            Deadline,
            "ten bytes have left; the frame is finished all the same",
            Call,
            remembered(fails("RMQ-T01", Unknown, 500, AnotherIfAllowed)),
        ),
        impossible(Stage::Writing, StartBy, "a request of which a byte has left has started"),
        row(Dropped, "dropped after ten bytes; the frame is finished", Call, Abandoned { frames: 1 }),
        row(Lost, "the connection ends within the frame", Call, torn("RMQ-T09", 200, Another)),
        row(Silent, "the peer reads no more for 10 s", Call, torn("RMQ-T09", 10_000, Another)),
        row(
            Refuses,
            "the broker is busy and says so before it has read all",
            Send(BUSY),
            fails("RMQ-C08", Refused, 200, Another),
        ),
        impossible(Stage::Writing, Saturation, HAS_ITS_PLACE),
        row(
            Shutdown,
            "cut within the frame at the end of the drain",
            Call,
            torn("RMQ-T10", 300, Stop(SHUT_DOWN)),
        ),
    ]
}

fn awaiting_response() -> Vec<Row> {
    let row = |fault, how, by, expect| Row::new(Stage::AwaitingResponse, fault, how, by, expect);
    let unknown = |code, ms, next| fails(code, Unknown, ms, next);
    vec![
        row(
            Deadline,
            "the peer answers others and not this one",
            Call,
            with(
                remembered(unknown("RMQ-T01", 500, AnotherIfAllowed)),
                &[("last_heard_ms", "300"), ("heard_since_written", "true")],
            ),
        ),
        impossible(Stage::AwaitingResponse, StartBy, "a request of which a byte has left has started"),
        row(Dropped, "dropped while the peer has it", Call, Abandoned { frames: 1 }),
        row(
            Lost,
            "the connection ends before the answer",
            Call,
            with(
                unknown("RMQ-T09", 200, AnotherIfAllowed),
                &[("last_heard_ms", "200"), ("heard_since_written", "false")],
            ),
        ),
        row(
            Silent,
            "the peer has not been heard since it was asked, and is replaced",
            Call,
            with(
                remembered(unknown("RMQ-T01", 3_000, AnotherIfAllowed)),
                &[("last_heard_ms", "3000"), ("heard_since_written", "false")],
            ),
        ),
        row(Refuses, "the broker is busy", Send(BUSY), fails("RMQ-C08", Refused, 200, Another)),
        impossible(
            Stage::AwaitingResponse,
            Saturation,
            "the request has its place; a peer without room says so, which is a refusal",
        ),
        row(
            Shutdown,
            "unanswered at the end of the drain",
            Call,
            with(
                unknown("RMQ-T10", 300, Stop(SHUT_DOWN)),
                &[("last_heard_ms", "300"), ("heard_since_written", "false")],
            ),
        ),
        row(
            Unfit,
            "the broker says that it has stored the message, and not where",
            Send(Script::Unreadable),
            unknown("RMQ-C09", 200, Stop("the message is stored, as far as can be read")),
        ),
    ]
}

pub(crate) const fn fails(code: &'static str, certainty: Certainty, ms: u64, next: Next) -> Expect {
    Expect::Fails(Failure { code, certainty, ms, fields: &[], next, remembered: Remembered::No })
}

/// The same with fields of its own.
fn with(expect: Expect, fields: &'static [(&'static str, &'static str)]) -> Expect {
    change(expect, |failure| Failure { fields, ..failure })
}

/// The same, remembered for the sake of a late answer.
fn remembered(expect: Expect) -> Expect {
    change(expect, |failure| Failure { remembered: Remembered::Yes, ..failure })
}

fn change(expect: Expect, change: impl FnOnce(Failure) -> Failure) -> Expect {
    match expect {
        Expect::Fails(failure) => Expect::Fails(change(failure)),
        other => other,
    }
}

const fn impossible(stage: Stage, fault: Fault, because: &'static str) -> Row {
    Row::new(stage, fault, "", By::Nobody, CannotHappen(because))
}

/// A route whose only broker has no master.
const SLAVE_ONLY: &str = r#"{"brokerDatas":[{"brokerName":"broker-a","brokerAddrs":{"1":"broker-a:10911"}}],
    "queueDatas":[{"brokerName":"broker-a","perm":6,"writeQueueNums":1}]}"#;

const BUSY: Script = Script::Answer(2, "[PCBUSY_CLEAN_QUEUE]broker busy");
const ASKED_NOBODY: &str = "no broker can be asked";
const NO_TIME: &str = "no time is left";
const SHUT_DOWN: &str = "the producer is shut down";
const HAS_ITS_PLACE: &str = "place and bytes were taken in Admission, and nothing more is asked for";
const CLASS_FULL: &str = "class data is saturated in requests: limit 1, in use 1, asked 1";
const CLIENT_FULL: &str = "client is saturated in requests: limit 1, in use 1, asked 1";
const TOO_LARGE: &str = "class data is saturated in bytes: limit 4096, in use 0, asked 10611";
