//! A stream cut after every byte count, in both directions and in every way: what a call says of its request is
//! never refuted by the peer's own log.
//!
//! The streams in memory do with every byte what they are told to. `sockets` does the same to loopback TCP; its long form,
//! whose counts end up in `target/tmp/cuts.md`, is
//!
//! ```text
//! CUTS=100000 cargo test -p rocketmq-transport --test cuts sockets
//! ```

mod exchange;
mod sockets;
mod wire;

use rocketmq_transport::{Acceptance, HeaderEncoding, Stage};

use self::{
    exchange::{Answer, Setting, exchange, totals},
    wire::{Cut, Reports, Slices},
};

const VOUCHES: Setting = Setting {
    encoding: HeaderEncoding::Json,
    acceptance: Acceptance::Exact,
    reports: Reports::Exactly,
    slices: Slices::All,
    bodies: [1, 40, 90],
};

/// A stream that buffers, and says so.
const BUFFERS: Setting = Setting { acceptance: Acceptance::Offered, reports: Reports::Behind, ..VOUCHES };

#[tokio::test(start_paused = true)]
async fn a_cut_after_any_byte_of_the_requests_leaves_no_call_with_a_wrong_not_sent() {
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        let setting = Setting { encoding, ..VOUCHES };
        let (requests, _) = totals(setting).await;
        for cut in Cut::SEEN_BY_READS {
            for accepted in 0..=requests {
                exchange(setting, accepted, Answer::Decoded, cut).await.check_exactly();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_nothing_is_the_worst_and_the_certainty_still_holds() {
    let (requests, _) = totals(VOUCHES).await;
    for cut in Cut::SEEN_BY_READS {
        for accepted in 0..=requests {
            let ended = exchange(VOUCHES, accepted, Answer::Bytes(0), cut).await;
            ended.check_exactly();
            assert!(ended.calls.iter().all(Result::is_err));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn writes_that_fail_after_any_byte_cost_no_call_its_answer() {
    let (requests, _) = totals(VOUCHES).await;
    for accepted in 0..requests {
        exchange(VOUCHES, accepted, Answer::Decoded, Cut::WritesReset).await.check_exactly();
        exchange(BUFFERS, accepted, Answer::Decoded, Cut::WritesReset).await.check();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_after_any_byte_of_the_responses_fails_no_call_that_was_answered() {
    let (_, responses) = totals(VOUCHES).await;
    for cut in Cut::SEEN_BY_READS {
        for delivered in 0..=responses {
            let ended = exchange(VOUCHES, usize::MAX, Answer::Bytes(delivered), cut).await;
            ended.check();
            assert_eq!(ended.decoded, [true; 3]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_buffers_is_never_trusted_with_a_not_sent_of_what_it_was_shown() {
    let (requests, _) = totals(BUFFERS).await;
    for cut in Cut::SEEN_BY_READS {
        for reported in 0..=requests {
            let ended = exchange(BUFFERS, reported, Answer::Bytes(0), cut).await;
            ended.check();
            assert_eq!(ended.decoded, [true; 3], "all of it left, whatever was reported");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stream_that_buffers_was_not_shown_was_not_sent() {
    for (slices, second) in [(Slices::All, Stage::Writing), (Slices::First, Stage::BeforeWrite)] {
        let setting = Setting { slices, bodies: [10 << 10; 3], ..BUFFERS };
        for cut in [Cut::Closed, Cut::Reset, Cut::WritesReset] {
            let ended = exchange(setting, 0, Answer::Bytes(0), cut).await;
            ended.check();
            // The third does not fit into one offer of 16 KiB, and the first slice holds the first head alone.
            assert_eq!(ended.stages(), [Stage::Writing, second, Stage::BeforeWrite]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frames_larger_than_a_batch_or_an_offer_are_cut_as_truly() {
    for (setting, slices) in [(VOUCHES, Slices::All), (VOUCHES, Slices::First), (BUFFERS, Slices::All)] {
        let setting = Setting { slices, bodies: [5 << 10, 20 << 10, 300 << 10], ..setting };
        let (requests, _) = totals(setting).await;
        for cut in Cut::SEEN_BY_READS {
            for accepted in (0..requests).step_by(32_767).chain(requests - 2..=requests) {
                let ended = exchange(setting, accepted, Answer::Decoded, cut).await;
                match setting.reports {
                    Reports::Exactly => ended.check_exactly(),
                    Reports::Behind => ended.check(),
                }
            }
        }
    }
}

/// That these tests can fail: a stream that buffers and vouches all the same is found out.
#[tokio::test(start_paused = true)]
async fn a_stream_that_buffers_and_claims_to_vouch_would_be_caught() {
    let setting = Setting { acceptance: Acceptance::Exact, ..BUFFERS };
    let ended = exchange(setting, 0, Answer::Bytes(0), Cut::Closed).await;
    assert_eq!(ended.liars(), [0, 1, 2]);
}
