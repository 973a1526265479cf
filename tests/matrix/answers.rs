//! What a broker's answer to a send means, and what the producer does then, row by row.

use rocketmq_transport::{
    Certainty::{self, Refused, Unknown},
    Stage,
};

use crate::{
    retries::check_next,
    row::{
        By, Fault,
        Next::{self, Another, AnotherIfAllowed, Stop},
        Row, Script,
    },
    table::fails,
};

/// One row of the table of answers.
#[derive(Debug)]
pub(crate) struct AnswerRow {
    /// The codes, as the page has them.
    pub(crate) answer: &'static str,
    pub(crate) means: &'static str,
    pub(crate) certainty: Certainty,
    pub(crate) next: Next,
    /// What the row is tried with: codes and remarks.
    tried: &'static [(i32, &'static str)],
}

/// The answers of a broker that has not stored the message as far as it says. Those that say that it has are in
/// `tests/client`: `a_message_that_is_stored_but_not_yet_safe_is_stored_and_not_sent_again`.
pub(crate) const ANSWERS: [AnswerRow; 6] = [
    AnswerRow {
        answer: "2, 14, 17, 1500",
        means: "not done here: busy or over its flow limit (2), not available, a slave or its disk full (14), no such \
                topic at this broker (17), going away (1500)",
        certainty: Refused,
        next: Another,
        tried: &[(2, "[OVERLOAD]"), (14, "disk full"), (17, "topic[t] not exist"), (1500, "draining")],
    },
    AnswerRow {
        answer: "16 with `sending message is forbidden` in the remark",
        means: "the broker or the topic may not be written",
        certainty: Refused,
        next: Another,
        tried: &[(16, "the broker[127.0.0.1] sending message is forbidden")],
    },
    AnswerRow {
        answer: "16 otherwise; 1 with `AclException` in the remark (4.x)",
        means: "the sender is not authorised",
        certainty: Refused,
        next: Stop("no broker will take it"),
        tried: &[
            (16, ""),
            (16, "no permission"),
            (1, "org.apache.rocketmq.acl.common.AclException: signature mismatch"),
        ],
    },
    AnswerRow {
        answer: "3, 13, 15, 29, 604",
        means: "the request is not valid, or the broker does not know it",
        certainty: Refused,
        next: Stop("no broker will take it"),
        tried: &[(3, "unknown code"), (13, "too large"), (15, ""), (29, ""), (604, "")],
    },
    AnswerRow {
        answer: "1 otherwise",
        means: "the broker failed on the way, before or after it stored the message",
        certainty: Unknown,
        next: AnotherIfAllowed,
        tried: &[(1, ""), (1, "java.lang.NullPointerException")],
    },
    AnswerRow {
        answer: "any other code",
        means: "a code that this client does not know",
        certainty: Unknown,
        next: AnotherIfAllowed,
        tried: &[(18, ""), (777, "what is this"), (9_999, ""), (-1, ""), (i32::MAX, "")],
    },
];

#[tokio::test(start_paused = true)]
async fn each_answer_of_a_broker_leads_where_the_table_says() {
    for AnswerRow { means, certainty, next, tried, .. } in &ANSWERS {
        for (code, remark) in *tried {
            let by = By::Send(Script::Answer(*code, remark));
            let expect = fails("RMQ-C08", *certainty, 200, *next);
            let row = Row::new(Stage::AwaitingResponse, Fault::Refuses, means, by, expect);
            let failure = row.failure().expect("it was made to fail");
            check_next(&row, failure).await;
        }
    }
}
