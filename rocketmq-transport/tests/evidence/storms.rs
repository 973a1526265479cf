//! Many failures at once: few lines, and every failure counted once.

use std::{io, time::Duration};

use rocketmq_transport::{
    Limit, Opaque, RequestDeadline, TransportConfig,
    test_support::{Dialing, LogLine, LogSink, settle},
};
use tokio::time::sleep;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_timeouts_in_a_second_make_ten_lines_at_most_and_every_one_is_counted() {
    let (transport, mut network) = scene(roomy);
    let mut peer = connected(&transport, &mut network).await;
    let log = LogSink::install();
    let calls = (0..100).map(|tenth| {
        let transport = transport.clone();
        tokio::spawn(async move {
            let budget = ms(1_000 + 10 * tenth);
            let calls = (0..1_000).map(|_| spawn(&transport, budget)).collect::<Vec<_>>();
            for call in calls {
                call.await.unwrap().unwrap_err();
            }
        })
    });
    let calls = calls.collect::<Vec<_>>();
    let reading = tokio::spawn(async move {
        for _ in 0..STORM {
            peer.expect().await;
        }
        peer
    });
    for call in calls {
        call.await.unwrap();
    }
    let _peer = reading.await.unwrap();
    // Nothing else happens: the last lines come by themselves.
    sleep(ms(2_000)).await;
    let lines = failures(&log);
    assert!(lines.len() <= 10, "{lines:#?}");
    assert_eq!(counted(&lines), STORM);
    for line in &lines {
        assert_eq!((&*line.fields["code_id"], &*line.fields["stage"]), ("RMQ-T01", "AwaitingResponse"));
        assert!(line.fields.contains_key("opaque"), "a sample: {line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_and_failed_dials_are_folded_and_the_close_writes_what_is_left() {
    for (refused, stage, codes) in
        [(true, "Admission", &["RMQ-T03"][..]), (false, "Connect", &["RMQ-T06", "RMQ-T07"])]
    {
        let (transport, network) = scene(|config| {
            if refused {
                config.data_limit.requests = 1;
            }
        });
        let log = LogSink::install();
        network.set_dialing(if refused {
            Dialing::Hold
        } else {
            Dialing::Refuse(io::ErrorKind::HostUnreachable)
        });
        let _first = refused.then(|| spawn(&transport, ms(60_000)));
        settle().await;
        for _ in 0..10_000 {
            call(&transport, RequestDeadline::after(ms(60_000))).await.unwrap_err();
        }
        assert!(failures(&log).len() <= 6, "{:#?}", failures(&log));
        transport.close(ms(0)).await;
        settle().await;
        let lines: Vec<_> = failures(&log).into_iter().filter(|line| line.fields["stage"] == stage).collect();
        let lines: Vec<_> = lines.into_iter().filter(|line| line.fields["code_id"] != "RMQ-T10").collect();
        assert!(lines.len() <= 10, "{lines:#?}");
        assert_eq!(counted(&lines), 10_000);
        assert!(lines.iter().all(|line| codes.contains(&&*line.fields["code_id"])), "{lines:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_different_kinds_are_never_folded_into_one_line() {
    let (transport, mut network) = scene(roomy);
    let mut peer = connected(&transport, &mut network).await;
    let log = LogSink::install();
    let timeouts = (0..50).map(|_| spawn(&transport, ms(100))).collect::<Vec<_>>();
    let lost = (0..20).map(|_| spawn(&transport, ms(10_000))).collect::<Vec<_>>();
    for _ in 0..70 {
        peer.expect().await;
    }
    for call in timeouts {
        call.await.unwrap().unwrap_err();
    }
    peer.cut();
    for call in lost {
        call.await.unwrap().unwrap_err();
    }
    drop(transport);
    settle().await;
    let of = |code| {
        let lines = failures(&log).into_iter().filter(|line| line.fields["code_id"] == code);
        counted(&lines.collect::<Vec<_>>())
    };
    assert_eq!((of("RMQ-T01"), of("RMQ-T09")), (50, 20));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_answers_that_nobody_asked_for_are_a_few_lines_and_all_counted() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let log = LogSink::install();
    for opaque in 0..10_000 {
        peer.respond_to(Opaque(1_000_000 + opaque)).await;
    }
    settle().await;
    assert_eq!(transport.usage().peers[0].unsolicited, 10_000);
    sleep(ms(1_500)).await;
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.message.contains("unsolicited")).collect();
    assert!(lines.len() <= 10, "{lines:#?}");
    assert_eq!(counted(&lines), 10_000);
}

#[tokio::test(start_paused = true)]
async fn the_drop_of_the_last_handle_writes_what_was_folded() {
    let (transport, mut network) = scene(|_| {});
    let peer = connected(&transport, &mut network).await;
    let log = LogSink::install();
    for _ in 0..1_000 {
        call(&transport, RequestDeadline::after(Duration::ZERO)).await.unwrap_err();
    }
    assert_eq!(counted(&failures(&log)), 3);
    drop(transport);
    assert_eq!(counted(&failures(&log)), 1_000);
    peer.cut();
}

#[tokio::test(start_paused = true)]
async fn a_success_writes_no_line_and_is_counted_nowhere() {
    let (transport, mut network) = scene(|_| {});
    let log = LogSink::install();
    let mut peer = connected(&transport, &mut network).await;
    for _ in 0..1_000 {
        let call = spawn(&transport, ms(1_000));
        let request = peer.expect().await;
        peer.respond(&request).await;
        call.await.unwrap().unwrap();
    }
    drop(transport);
    settle().await;
    assert!(failures(&log).is_empty());
}

/// Room for the whole storm.
fn roomy(config: &mut TransportConfig) {
    let all = Limit { requests: 1 << 20, bytes: 1 << 40 };
    (config.client_limit, config.peer_limit, config.data_limit) = (all, all, all);
    config.max_tombstones = 1 << 20;
    // The peer is silent on purpose.
    config.min_silence = ms(3_600_000);
}

fn failures(log: &LogSink) -> Vec<LogLine> {
    log.lines().into_iter().filter(|line| line.target == "rocketmq::request").collect()
}

/// How many events the lines stand for.
fn counted(lines: &[LogLine]) -> u64 {
    let stands_for =
        |line: &LogLine| line.fields.get("folded").map_or(1, |folded| folded.parse().expect("a count"));
    lines.iter().map(stands_for).sum::<u64>()
}

const STORM: u64 = 100_000;
