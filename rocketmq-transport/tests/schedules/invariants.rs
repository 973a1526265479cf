//! What must hold of every story, by the name of the invariant: the one place where a schedule is judged.

use std::{collections::HashMap, fmt::Display, time::Duration};

use rocketmq_transport::{
    Admission, Certainty, CloseCause, RetirePolicy, RetireReason, Stage, TransportError, TransportErrorKind,
};
use tokio::time::Instant;

use crate::{
    plan::{Answer, CONNECT_TIMEOUT, End, How, Kind, Reading, Schedule, SigningPlan, Vouches},
    run::{Moment, Outcome, Story, Told},
    world::{self, ConnectionLog, Dialed},
};

/// Everything that does not hold.
pub(crate) fn broken(schedule: &Schedule, story: &Story) -> Vec<String> {
    let mut judge = Judge { schedule, story, frames: frames(schedule, story), broken: Vec::new() };
    for number in 0..schedule.requests.len() {
        judge.i2_one_outcome(number);
        if let Some(told) = &story.told[number] {
            judge.i4_not_sent_is_true(number, told);
            judge.i7_answered_in_time_is_answered(number, told);
            judge.i7_fails_for_a_reason_of_its_own(number, told);
            judge.i8_own_response(number, told);
            judge.i13_a_sound_peer_is_not_slowed(number, told);
            judge.i17_ends_in_time(number, told);
            judge.i19_stages_add_up(number, told);
            judge.i20_nothing_starts_too_late(number, told);
        }
    }
    judge.i5_nothing_left();
    judge.i11_shared_connections_live();
    judge.i12_shared_dials_live();
    judge.i17_close_ends_in_time();
    judge.broken
}

struct Judge<'a> {
    schedule: &'a Schedule,
    story: &'a Story,
    /// Of each request the frames, torn ones included, that have left.
    frames: HashMap<usize, Vec<Frame>>,
    broken: Vec<String>,
}

/// A frame, or the beginning of one, that has left.
#[derive(Clone, Copy, Debug)]
struct Frame {
    first_byte: Instant,
    /// When its last byte left, if it did.
    last_byte: Option<Instant>,
}

impl Judge<'_> {
    /// Every request has exactly one outcome, and its frame leaves at most once.
    fn i2_one_outcome(&mut self, number: usize) {
        if self.story.told[number].is_none() {
            self.breaks("I2", number, "it never ended, or its task panicked");
        }
        let frames = self.frames.get(&number).map_or(0, Vec::len);
        if frames > 1 {
            self.breaks("I2", number, format_args!("{frames} frames of it have left"));
        }
    }

    /// `NotSent` is never said of a frame that has left as a whole.
    fn i4_not_sent_is_true(&mut self, number: usize, told: &Told) {
        let Outcome::Failed(error) = &told.outcome else { return };
        let decoded = self.story.connections.iter().any(|connection| connection.decoded.contains(&number));
        if error.certainty() != Certainty::Unknown && (decoded || self.left_whole(number)) {
            self.breaks("I4", number, format_args!("it says {}: {error}", error.certainty()));
        }
    }

    /// When all have ended, nothing is in use, and the whole budget can be had.
    fn i5_nothing_left(&mut self) {
        for in_use in &self.story.in_use {
            let peers = &in_use.usage.peers;
            let requests = peers.iter().flat_map(|peer| [peer.used, peer.control, peer.data, peer.long_poll]);
            let waiting = peers.iter().map(|peer| peer.pending + peer.queued).sum::<u64>()
                + requests.map(|used| used.requests).sum::<u64>()
                + in_use.usage.client.requests;
            let forgotten = in_use.usage.is_idle() && in_use.in_flight == 0 && in_use.whole;
            if waiting > 0 || (in_use.moment == Moment::AllForgotten && !forgotten) {
                self.broken.push(format!("I5: {in_use:?}"));
            }
        }
    }

    /// A call whose answer was on its way back before its end was answered, whatever happened to others.
    fn i7_answered_in_time_is_answered(&mut self, number: usize, told: &Told) {
        let answered = self.answered(number);
        if let (Some(at), false) = (answered, matches!(told.outcome, Outcome::Answered(_)))
            && at < told.ended
            && told.started <= at
        {
            self.breaks("I7", number, format_args!("answered at {:?}, it ended as {told:?}", self.ms(at)));
        }
    }

    /// A request fails by its own deadline, its own caller, its own peer, or the owner of them all.
    fn i7_fails_for_a_reason_of_its_own(&mut self, number: usize, told: &Told) {
        let Outcome::Failed(error) = &told.outcome else { return };
        let plan = self.schedule.requests[number];
        let after = |wait: Option<u64>| wait.map(|wait| told.started + Duration::from_millis(wait));
        let reached = |at: Option<Instant>| at.is_some_and(|at| at <= told.ended);
        let holds = match error.kind() {
            TransportErrorKind::DeadlineExpired => reached(after(plan.budget)),
            TransportErrorKind::NotStarted => reached(after(plan.start_by)),
            TransportErrorKind::QueueSaturated(refusal) => {
                refusal.in_use + refusal.asked > refusal.limit && plan.admission == Admission::Refuse
            }
            TransportErrorKind::TooLarge(refusal) => refusal.asked > refusal.limit,
            TransportErrorKind::ConnectFailed(_) | TransportErrorKind::BackingOff { .. } => {
                self.dial_failed(plan.peer, told.ended) || self.cut(plan.peer, told.ended)
            }
            TransportErrorKind::SigningFailed(_) => {
                matches!(plan.signing, SigningPlan::Fails | SigningPlan::FailsAfter(_))
            }
            TransportErrorKind::ConnectionLost(cause) => self.lost_by(cause, error, told.ended),
            TransportErrorKind::Closed => reached(self.story.close.map(|(began, ..)| began)),
            _ => false,
        };
        if !holds {
            self.breaks(
                "I7",
                number,
                format_args!("no reason of its own at {:?}: {told:?}", self.ms(told.ended)),
            );
        }
    }

    /// A response completes only the request it answers, and only once it was given.
    fn i8_own_response(&mut self, number: usize, told: &Told) {
        let Outcome::Answered(completed) = &told.outcome else { return };
        let answers = world::number(completed.response.body());
        let given = self.answered(number).is_some_and(|at| at <= told.ended);
        if answers != number || !given {
            self.breaks("I8", number, format_args!("it was given the response to {answers}"));
        }
    }

    /// A waiter that has gone ends no connection: one whose peer answers at once and does nothing else lives until
    /// its owner has done with it.
    fn i11_shared_connections_live(&mut self) {
        let until = self.story.close.map_or(self.story.quiet, |(began, ..)| began);
        for (place, connection) in self.story.connections.iter().enumerate() {
            let Some(let_go) = connection.let_go else {
                self.broken.push(format!("I5: connection {place} is still there"));
                continue;
            };
            let answers_at_once = |number: &usize| {
                let plan = self.schedule.requests[*number];
                let later = matches!(plan.answer, Answer::After(1..) | Answer::ForeignFirst(1..));
                plan.kind == Kind::Oneway || !(later || plan.answer == Answer::Never)
            };
            let sound = self.schedule.peers[connection.peer].is_sound()
                && self.schedule.settings.max_idle > 10_000
                && connection.decoded.iter().all(answers_at_once);
            if sound && let_go < until && self.schedule.end != End::Dropped {
                let at = self.ms(let_go);
                self.broken.push(format!("I11: connection {place} was let go of at {at:?}"));
            }
        }
    }

    /// A dial goes on to its own limit, whoever of its waiters has gone.
    fn i12_shared_dials_live(&mut self) {
        let last = self.story.told.iter().flatten().map(|told| told.ended).max();
        let owner = match self.schedule.end {
            End::Dropped => last,
            End::Closed | End::ClosedAt { .. } => self.story.close.map(|(began, ..)| began),
        };
        for dial in &self.story.dials {
            let limit = dial.began + Duration::from_millis(CONNECT_TIMEOUT);
            if let Some((ended, Dialed::Dropped)) = dial.ended
                && ended < limit
                && owner.is_none_or(|owner| ended < owner)
            {
                self.broken.push(format!("I12: {dial:?} was ended before its limit"));
            }
        }
    }

    /// What a sound peer is asked takes as long as its signature and its answer, whatever other peers do.
    fn i13_a_sound_peer_is_not_slowed(&mut self, number: usize, told: &Told) {
        let plan = self.schedule.requests[number];
        let Outcome::Answered(_) = &told.outcome else { return };
        let (Answer::After(answer) | Answer::ForeignFirst(answer) | Answer::Twice(answer)) = plan.answer
        else {
            return;
        };
        let signing = if let SigningPlan::After(signing) = plan.signing { signing } else { 0 };
        let answer = if matches!(plan.answer, Answer::Twice(_)) { 0 } else { answer };
        let takes = Duration::from_millis(signing + answer) + 2 * TICK;
        let sound = self.schedule.peers[plan.peer].is_sound() && plan.admission == Admission::Refuse;
        if sound && told.ended - told.started > takes {
            self.breaks(
                "I13",
                number,
                format_args!("{:?} of a sound peer: {told:?}", told.ended - told.started),
            );
        }
    }

    /// Every wait ends with its deadline, its start-by instant if it has not started, or its caller.
    fn i17_ends_in_time(&mut self, number: usize, told: &Told) {
        let plan = self.schedule.requests[number];
        let started = match &told.outcome {
            Outcome::Failed(error) => error.stage() >= Stage::Writing,
            Outcome::Answered(_) | Outcome::Written(_) | Outcome::Dropped => true,
        };
        let start_by = plan.start_by.filter(|_| !started);
        let Some(limit) = [plan.budget, plan.dropped, start_by].into_iter().flatten().min() else { return };
        if told.ended > told.started + Duration::from_millis(limit) + TICK {
            self.breaks("I17", number, format_args!("limit {limit} ms: {told:?}"));
        }
    }

    /// A close ends with its bound.
    fn i17_close_ends_in_time(&mut self) {
        if let Some((began, bound, ended)) = self.story.close
            && ended > began + bound + TICK
        {
            self.broken.push(format!("I17: a close with a bound of {bound:?} took {:?}", ended - began));
        }
    }

    /// The stages add up to the time that the caller waited.
    fn i19_stages_add_up(&mut self, number: usize, told: &Told) {
        let Some(clock) = told.outcome.clock() else { return };
        let sum = clock.stages().map(|(_, spent)| spent).sum::<Duration>();
        let waited = told.ended - told.started;
        if sum.abs_diff(clock.elapsed()) > TICK || sum.abs_diff(waited) > TICK {
            self.breaks("I19", number, format_args!("{sum:?} of {waited:?} in {clock:?}"));
        }
    }

    /// No first byte leaves after the deadline, the start-by instant or the drop.
    fn i20_nothing_starts_too_late(&mut self, number: usize, told: &Told) {
        let plan = self.schedule.requests[number];
        let limits = [plan.budget, plan.start_by, plan.dropped];
        let Some(limit) = limits.into_iter().flatten().min() else { return };
        let limit = told.started + Duration::from_millis(limit);
        for frame in self.frames.get(&number).cloned().unwrap_or_default() {
            if frame.first_byte > limit.min(told.ended) {
                let at = self.ms(frame.first_byte);
                self.breaks("I20", number, format_args!("its first byte left at {at:?}: {told:?}"));
            }
        }
    }

    fn breaks(&mut self, invariant: &str, number: usize, what: impl Display) {
        self.broken.push(format!("{invariant}: request {number}: {what}"));
    }

    /// The time since the start of the schedule.
    fn ms(&self, at: Instant) -> Duration {
        at - self.story.start
    }

    fn left_whole(&self, number: usize) -> bool {
        self.frames.get(&number).is_some_and(|frames| frames.iter().any(|frame| frame.last_byte.is_some()))
    }

    /// When the peer's answer to the request was on its way back.
    fn answered(&self, number: usize) -> Option<Instant> {
        let answers = self.story.connections.iter().flat_map(|connection| &connection.answered);
        answers.filter(|(answered, _)| *answered == number).map(|(_, at)| *at).min()
    }

    fn dial_failed(&self, peer: usize, by: Instant) -> bool {
        let hung = |began: Instant| began + Duration::from_millis(CONNECT_TIMEOUT) <= by;
        self.story.dials.iter().any(|dial| {
            let failed = match dial.ended {
                Some((at, Dialed::Failed)) => at <= by,
                Some((_, Dialed::Dropped)) | None => hung(dial.began),
                Some((_, Dialed::Connected)) => false,
            };
            dial.peer == peer && failed
        })
    }

    /// Whether a connection of `peer` was ended by it, or by its not reading, by then.
    fn cut(&self, peer: usize, by: Instant) -> bool {
        let mut connections = self.story.connections.iter().filter(|connection| connection.peer == peer);
        connections.any(|connection| self.faulty(connection, by))
    }

    fn faulty(&self, connection: &ConnectionLog, by: Instant) -> bool {
        let reads = self.schedule.peers[connection.peer].reading == Reading::AtOnce;
        connection.cut.is_some_and(|(_, at)| at <= by) || !reads
    }

    /// Whether the connection of a failed request was lost as it says.
    fn lost_by(&self, cause: &CloseCause, error: &TransportError, by: Instant) -> bool {
        let generation = error.generation().map_or(0, |generation| generation.get());
        let Some(connection) =
            generation.checked_sub(1).and_then(|at| self.story.connections.get(at as usize))
        else {
            return false;
        };
        let cut = |hows: &[How]| connection.cut.is_some_and(|(how, at)| hows.contains(&how) && at <= by);
        let plan = &self.schedule.peers[connection.peer];
        match cause {
            CloseCause::EndOfStream => cut(&[How::Fin, How::HalfClose]),
            CloseCause::Io(_) => cut(&[How::Fin, How::Reset]),
            CloseCause::Malformed(_) => cut(&[How::Garbage]),
            CloseCause::WriteStalled { .. } | CloseCause::FrameWriteTimeout { .. } => {
                plan.reading != Reading::AtOnce
            }
            CloseCause::Retired(RetireReason::Silence) => true,
            CloseCause::Retired(RetireReason::Timeout) => {
                self.schedule.settings.retire == RetirePolicy::OnTimeout
            }
            CloseCause::Retired(RetireReason::Idle) => self.schedule.settings.max_idle < 10_000,
            _ => false,
        }
    }
}

/// The frames that have left, by the number of their request; of one that is torn before its body, nobody knows.
fn frames(schedule: &Schedule, story: &Story) -> HashMap<usize, Vec<Frame>> {
    let mut frames = HashMap::<_, Vec<_>>::new();
    for log in &story.connections {
        let at = |marks: &[(usize, Instant)], byte: usize| {
            marks[marks.partition_point(|(bytes, _)| *bytes <= byte)].1
        };
        let begun = match schedule.peers[log.peer].vouches {
            Vouches::Yes => &log.marks,
            Vouches::No => &log.shown,
        };
        let mut start = 0;
        while let Some(length) = word(&log.left, start) {
            let end = start + 4 + length;
            let first_byte = at(begun, start);
            let last_byte = (end <= log.left.len()).then(|| at(&log.marks, end - 1));
            // The upper byte of the second word says how the header is encoded.
            let head = word(&log.left, start + 4).map(|head| start + 8 + (head & 0x00FF_FFFF));
            if let Some(number) = head.and_then(|head| word(&log.left, head)) {
                frames.entry(number).or_default().push(Frame { first_byte, last_byte });
            }
            start = end;
        }
    }
    frames
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(word.try_into().expect("four bytes")) as usize)
}

/// How late a timer may be.
const TICK: Duration = Duration::from_millis(1);
