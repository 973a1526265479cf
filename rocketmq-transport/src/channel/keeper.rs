//! The keeper task of a channel: silence, tombstones, idleness and draining.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::Shared;
use crate::{
    CloseCause, RetireReason, connection::Connection, failure_log::log_folded, link::Attention,
    pending::Phase,
};

/// Sees to the connections of a channel when it is called or something is due, as long as the channel lives.
pub(super) async fn keep(channel: Weak<Shared>, attention: Arc<Attention>) {
    loop {
        let Some(due) = channel.upgrade().map(|channel| tend(&channel, Instant::now())) else { return };
        tokio::select! {
            () = attention.called() => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// Does what is due at `now` and says when something will be.
fn tend(channel: &Shared, now: Instant) -> Option<Instant> {
    let open = {
        let mut connections = channel.connections.lock();
        connections.prune();
        connections.open.clone()
    };
    let mut due = Earliest(None);
    let mut draining = Vec::new();
    for connection in &open {
        let horizon = now.checked_sub(channel.config.late_window);
        let oldest = connection.link.forget_until(horizon);
        due.consider(oldest.and_then(|made| made.checked_add(channel.config.late_window)));
        match connection.link.table.phase() {
            Phase::Accepting => watch(connection, channel, now, &mut due),
            Phase::Draining(reason, since) => {
                if !finish(connection, channel, (reason, since), now, &mut due) {
                    draining.push(connection);
                }
            }
            Phase::Closed => {}
        }
    }
    make_room(channel, &draining);
    let (folds, next) = channel.failures.folds(now);
    folds.iter().for_each(log_folded);
    due.consider(next);
    let (folds, next) = channel.attention.strays.folds(now);
    Attention::log_strays(folds);
    due.consider(next);
    due.0
}

/// Retires a connection that is silent or unused.
fn watch(connection: &Connection, channel: &Shared, now: Instant, due: &mut Earliest) {
    let (link, config) = (&connection.link, &channel.config);
    if let Some(judge_at) = link.table.judge_at() {
        let found_empty = link.pulse.found_empty();
        if now < judge_at {
            due.consider(Some(judge_at));
        } else if found_empty < judge_at {
            // A process of ours that stalled is not the peer's silence: first the reader has to have found the
            // socket empty. It calls when it has.
            link.pulse.ask_to_look(now);
        } else {
            if let Some(judged_at) = link.table.take_judgement(found_empty) {
                // However late we come to ask: what counts is what had been heard when the peer was due.
                let silent_since = judged_at.checked_sub(config.min_silence);
                if link.pulse.last_response().is_none_or(|heard| Some(heard) <= silent_since) {
                    link.retire(RetireReason::Silence, now);
                }
            }
            due.consider(link.table.judge_at());
        }
    }
    let idle_at = link.pulse.last_used().checked_add(config.max_idle);
    if idle_at.is_some_and(|idle_at| idle_at <= now) && link.table.waiting() == 0 {
        link.retire(RetireReason::Idle, now);
    } else {
        due.consider(idle_at.map(|idle_at| idle_at.max(now + IDLE_CHECK)));
    }
}

/// Closes a retired connection that has nothing left to wait for, or has taken too long; true where it did.
fn finish(
    connection: &Connection,
    channel: &Shared,
    (reason, since): (RetireReason, Instant),
    now: Instant,
    due: &mut Earliest,
) -> bool {
    let tally = connection.link.table.tally();
    let cause = if reason == RetireReason::Closed { CloseCause::Closed } else { CloseCause::Retired(reason) };
    let drained = tally.waiting == 0 && (tally.tombstones == 0 || reason == RetireReason::Closed);
    let drain_until = since.checked_add(channel.config.max_drain);
    if drained || drain_until.is_some_and(|until| until <= now) {
        connection.stop(cause, Some(FAREWELL));
        return true;
    }
    due.consider(drain_until);
    false
}

/// At most [`MAX_DRAINING`] drain: those with tombstones only close first, the oldest of them before the others.
fn make_room(channel: &Shared, draining: &[&Arc<Connection>]) {
    let (waited_for, rest): (Vec<_>, Vec<_>) =
        draining.iter().copied().partition(|connection| connection.link.table.waiting() > 0);
    channel.attention.set_crowded(waited_for.len() >= MAX_DRAINING);
    let excess = draining.len().saturating_sub(MAX_DRAINING);
    for connection in rest.iter().chain(&waited_for).take(excess) {
        if let Phase::Draining(reason, _) = connection.link.table.phase() {
            connection.stop(CloseCause::Retired(reason), Some(FAREWELL));
        }
    }
}

/// The earliest of several instants.
struct Earliest(Option<Instant>);

impl Earliest {
    fn consider(&mut self, at: Option<Instant>) {
        if let Some(at) = at {
            self.0 = Some(self.0.map_or(at, |earliest| earliest.min(at)));
        }
    }
}

/// So many retired connections of one peer may drain at the same time.
const MAX_DRAINING: usize = 4;
/// How long the peer is listened to after our side of a drained connection was shut down.
const FAREWELL: Duration = Duration::from_secs(1);
/// The least time between two looks at a connection that is unused but waited for.
const IDLE_CHECK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
