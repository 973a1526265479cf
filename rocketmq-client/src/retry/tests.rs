use std::{io, sync::Arc};

use proptest::prelude::*;
use rocketmq_transport::{Class, CloseCause, Dimension};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn refusal(level: Level) -> Refusal {
    Refusal { level, dimension: Dimension::Bytes, limit: 1, in_use: 1, asked: 1 }
}

fn io_error() -> Arc<io::Error> {
    Arc::new(io::ErrorKind::ConnectionRefused.into())
}

#[test]
fn every_answer_of_a_broker_means_what_the_table_says() {
    let declined = Decision::Next(Again::AfterJitter);
    let doubtful = Decision::Next(Again::Never);
    for (code, remark, allow, forbid) in [
        (0, "", Decision::Stop, Decision::Stop),
        (10, "", Decision::Stop, Decision::Stop),
        (11, "", Decision::Stop, Decision::Stop),
        (12, "", Decision::Stop, Decision::Stop),
        (2, "[OVERLOAD]", declined, declined),
        (1500, "", declined, declined),
        (14, "disk full", declined, declined),
        (17, "topic[t] not exist", declined, declined),
        (16, "the broker[127.0.0.1] sending message is forbidden", declined, declined),
        (16, "no permission", Decision::Stop, Decision::Stop),
        (1, "org.apache.rocketmq.acl.common.AclException: no", Decision::Stop, Decision::Stop),
        (3, "", Decision::Stop, Decision::Stop),
        (13, "too large", Decision::Stop, Decision::Stop),
        (15, "", Decision::Stop, Decision::Stop),
        (29, "", Decision::Stop, Decision::Stop),
        (604, "", Decision::Stop, Decision::Stop),
        (1, "java.lang.NullPointerException", doubtful, Decision::Stop),
        (18, "", doubtful, Decision::Stop),
        (9_999, "", doubtful, Decision::Stop),
        (-1, "", doubtful, Decision::Stop),
    ] {
        let answer = Answer::of(Code(code), remark);
        assert_eq!(after_answer(answer, Duplicates::Allow), allow, "{code} {remark}");
        assert_eq!(after_answer(answer, Duplicates::Forbid), forbid, "{code} {remark}");
    }
    assert_eq!(Answer::of(Code(10), ""), Answer::Stored(SendStatus::FlushDiskTimeout));
    assert_eq!(Answer::of(Code(11), ""), Answer::Stored(SendStatus::SlaveNotAvailable));
    assert_eq!(Answer::of(Code(12), ""), Answer::Stored(SendStatus::FlushSlaveTimeout));
}

#[test]
fn every_failure_of_the_transport_is_retried_by_proof() {
    use Certainty::{NotSent, Refused, Unknown};
    use TransportErrorKind as Kind;
    let next = Decision::Next;
    let lost = || Kind::ConnectionLost(CloseCause::EndOfStream);
    let backing_off = Kind::BackingOff { remaining: MS, source: io_error() };
    for (kind, certainty, allow, forbid) in [
        (Kind::ConnectFailed(io_error()), NotSent, next(Again::AfterDial), next(Again::AfterDial)),
        (backing_off, NotSent, next(Again::AfterBackoff(MS)), next(Again::AfterBackoff(MS))),
        (Kind::NotStarted, NotSent, next(Again::Now), next(Again::Now)),
        (Kind::DeadlineExpired, NotSent, next(Again::Now), next(Again::Now)),
        (Kind::SigningFailed(io_error()), NotSent, next(Again::Now), next(Again::Now)),
        (lost(), NotSent, next(Again::Now), next(Again::Now)),
        (lost(), Unknown, next(Again::Now), Decision::Stop),
        (Kind::DeadlineExpired, Unknown, next(Again::Never), Decision::Stop),
        (Kind::Closed, NotSent, Decision::Stop, Decision::Stop),
        (Kind::Closed, Unknown, Decision::Stop, Decision::Stop),
        (Kind::TooLarge(refusal(Level::Peer)), Refused, Decision::Stop, Decision::Stop),
        (Kind::QueueSaturated(refusal(Level::Client)), Refused, Decision::Stop, Decision::Stop),
        (
            Kind::QueueSaturated(refusal(Level::Peer)),
            Refused,
            next(Again::AfterJitter),
            next(Again::AfterJitter),
        ),
        (
            Kind::QueueSaturated(refusal(Level::Class(Class::Data))),
            Refused,
            next(Again::AfterJitter),
            next(Again::AfterJitter),
        ),
    ] {
        assert_eq!(after_failure(&kind, certainty, Duplicates::Allow), allow, "{kind:?} {certainty}");
        assert_eq!(after_failure(&kind, certainty, Duplicates::Forbid), forbid, "{kind:?} {certainty}");
    }
}

#[test]
fn an_attempt_shares_what_remains_only_where_another_may_follow() {
    let now = Instant::now();
    let (deadline, never) = (RequestDeadline::from(now, 900 * MS), RequestDeadline::never());
    for (deadline, prospect, duplicates, start_within, end_within) in [
        (deadline, Prospect::Another, Duplicates::Allow, 450 * MS, 600 * MS),
        (deadline, Prospect::Another, Duplicates::Forbid, 450 * MS, 900 * MS),
        (deadline, Prospect::Last, Duplicates::Allow, 900 * MS, 900 * MS),
        (deadline, Prospect::Last, Duplicates::Forbid, 900 * MS, 900 * MS),
        (never, Prospect::Another, Duplicates::Allow, 1_500 * MS, 2_000 * MS),
        (never, Prospect::Another, Duplicates::Forbid, 1_500 * MS, Duration::MAX),
        (never, Prospect::Last, Duplicates::Allow, Duration::MAX, Duration::MAX),
    ] {
        let plan = AttemptPlan::new(deadline, now, prospect, duplicates);
        assert_eq!(plan, AttemptPlan { start_within, end_within }, "{prospect:?} {duplicates:?}");
        assert_eq!(
            plan.deadline(deadline, now).at(),
            now.checked_add(end_within),
            "{prospect:?} {duplicates:?}"
        );
    }
}

#[test]
fn pauses_double_up_to_their_limit_and_jitter_takes_half_at_most() {
    let backoff = Backoff { min_dial: 10 * MS, max_dial: 50 * MS };
    assert_eq!(
        [1, 2, 3, 4, 99].map(|nth| backoff.after_dial(nth)),
        [10 * MS, 20 * MS, 40 * MS, 50 * MS, 50 * MS]
    );
    for (nth, longest) in [(1, 100 * MS), (3, 400 * MS), (99, 5_000 * MS)] {
        let pause = backoff.after_busy(nth);
        assert!((longest / 2..=longest).contains(&pause), "{pause:?}");
    }
}

proptest! {
    #[test]
    fn no_plan_goes_beyond_the_deadline(
        budget in any::<u64>(),
        passed in any::<u32>(),
        another in any::<bool>(),
        forbid in any::<bool>(),
    ) {
        let start = Instant::now();
        let deadline = RequestDeadline::from(start, Duration::from_nanos(budget));
        let now = start + Duration::from_nanos(passed.into());
        let prospect = if another { Prospect::Another } else { Prospect::Last };
        let duplicates = if forbid { Duplicates::Forbid } else { Duplicates::Allow };
        let plan = AttemptPlan::new(deadline, now, prospect, duplicates);
        prop_assert!(plan.start_within <= plan.end_within);
        prop_assert!(plan.end_within <= deadline.remaining(now));
    }

    #[test]
    fn no_doubtful_answer_is_followed_where_duplicates_are_forbidden(
        code in any::<i32>(),
        remark in ".{0,40}",
    ) {
        let answer = Answer::of(Code(code), &remark);
        if answer == Answer::Doubtful {
            prop_assert_eq!(after_answer(answer, Duplicates::Forbid), Decision::Stop);
        }
    }
}
