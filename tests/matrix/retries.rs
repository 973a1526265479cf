//! Every row as a send has it: how it ends, and what the producer does next.

use std::time::Duration;

use rocketmq_client::{Attempt, Duplicates, SendReceipt};
use rocketmq_transport::{
    Stage,
    test_support::{LogLine, LogSink, settle},
};

use crate::{
    check::check_send_line,
    row::{By, Expect, Failure, Fault, Next, Row, Script},
    sends::{Outcome, Watched, run},
    table::rows,
};

#[tokio::test(start_paused = true)]
async fn every_row_of_a_send_ends_as_the_table_says_in_one_line() {
    for row in rows().iter().filter(|row| reaches_a_send(row) && ends_alone(row)) {
        let log = LogSink::install();
        let Outcome { ended, producer } = run(row, Watched::Alone).await;
        let lines = lines_of_sends(&log);
        match (&row.expect, ended) {
            (Expect::Fails(failure), Some(Err(error))) => {
                assert_eq!(
                    (error.stage(), error.certainty(), error.code_id()),
                    (row.stage, failure.certainty, failure.code),
                    "{}: {error}",
                    row.name()
                );
                assert_eq!(error.elapsed(), Duration::from_millis(failure.ms), "{}", row.name());
                let [line] = &lines[..] else { panic!("{}: {lines:?}", row.name()) };
                check_send_line(row, failure, &error, line);
            }
            (Expect::Abandoned { .. }, None) => assert_eq!(lines.len(), 0, "{}", row.name()),
            (expect, ended) => panic!("{}: {expect:?}, not {ended:?}", row.name()),
        }
        producer.shutdown(Duration::ZERO).await;
        settle().await;
        assert!(producer.usage().is_idle(), "{}: {:?}", row.name(), producer.usage());
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_producer_does_after_every_row_is_what_the_table_says() {
    for row in rows().iter().filter(|row| reaches_a_send(row)) {
        let Some(failure) = row.failure().filter(|_| makes_an_attempt(row)) else { continue };
        check_next(row, failure).await;
    }
}

/// Checks what follows the first attempt of a send, where there is another broker.
pub(crate) async fn check_next(row: &Row, failure: &Failure) {
    for duplicates in [Duplicates::Allow, Duplicates::Forbid] {
        let ended = run(row, Watched::Followed(duplicates)).await.ended.expect("it was not dropped");
        let attempts = match &ended {
            Ok(receipt) => SendReceipt::attempts(receipt),
            Err(error) => error.attempts(),
        };
        let name = format!("{}, {duplicates:?}: {attempts:?}", row.name());
        check_first(row, failure, &attempts[0], &name);
        let another = match (failure.next, duplicates) {
            (Next::Another, _) | (Next::AnotherIfAllowed, Duplicates::Allow) => true,
            (Next::AnotherIfAllowed, Duplicates::Forbid) | (Next::Stop(_), _) => false,
            (Next::Never(because), _) => panic!("{name}: {because}"),
        };
        let asked: Vec<_> = attempts.iter().map(Attempt::broker).collect();
        assert_eq!(asked, if another { &["broker-a", "broker-b"][..] } else { &["broker-a"] }, "{name}");
        assert_eq!(ended.is_ok(), another && !fails_everywhere(row), "{name}");
        if let Ok(receipt) = &ended {
            assert_eq!(
                receipt.stage_clock().paused(),
                None,
                "another broker is asked without a pause: {name}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_came_before_the_last_byte_had_left_was_not_awaited() {
    let rows = rows();
    let busy = |row: &&Row| (row.stage, row.fault) == (Stage::Writing, Fault::Refuses);
    let row = rows.iter().find(busy).expect("the row of a broker that answers too early");
    let error = run(row, Watched::Alone).await.ended.expect("it was not dropped").unwrap_err();
    assert_eq!((error.stage(), error.stage_clock().spent(Stage::AwaitingResponse)), (Stage::Writing, None));
}

fn check_first(row: &Row, failure: &Failure, first: &Attempt, name: &str) {
    let code = first.error().map(rocketmq_client::SendErrorKind::code_id);
    assert_eq!(
        (first.stage(), first.certainty(), code),
        (row.stage, Some(failure.certainty), Some(failure.code)),
        "{name}"
    );
}

/// The lines of failed sends, those of what only sets the scene left out.
pub(crate) fn lines_of_sends(log: &LogSink) -> Vec<LogLine> {
    let of_sends =
        |line: &LogLine| line.target == "rocketmq::request" && line.message.starts_with("send failed");
    let bytes_of_scene = "other".len().to_string();
    log.lines().into_iter().filter(|line| of_sends(line) && line.fields["bytes"] != bytes_of_scene).collect()
}

/// Whether a send can meet it as a failure of its own.
fn reaches_a_send(row: &Row) -> bool {
    match &row.expect {
        Expect::Fails(failure) => !matches!(failure.next, Next::Never(_)),
        Expect::Abandoned { .. } => row.stage != Stage::Admission,
        Expect::GoesOn(_) | Expect::CannotHappen(_) => false,
    }
}

/// Whether it ends a send that has only one broker and one attempt: the whole budget may be used to start then, and a
/// pause is waited out.
fn ends_alone(row: &Row) -> bool {
    row.fault != Fault::StartBy && (row.stage, row.fault) != (Stage::Connect, Fault::Lost)
}

/// Whether a broker is asked at all.
fn makes_an_attempt(row: &Row) -> bool {
    row.stage != Stage::Route && row.by != By::Send(Script::LargeBody)
}

/// Whether the next broker cannot help: both attempts have the same signer.
fn fails_everywhere(row: &Row) -> bool {
    (row.stage, row.fault) == (Stage::Signing, Fault::Refuses)
}
