//! The script itself: which fault is due, and how often each has been asked.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use super::{Abort, ConnectionFault, Fault, FaultyStream, RequestFault, Target, WrongOpaque};
use crate::{Code, Opaque};

/// Faults for one server, in an order. A cheap-to-clone handle; all clones are the same script.
///
/// Of the faults about a request the first strikes that is due, and those behind it are neither asked nor counted: two
/// of `times(1)` strike one after the other. Of the faults about a connection all strike that are due; of two of the
/// same kind the first.
///
/// Requests are counted in the order they come in, over all connections.
#[derive(Clone, Default)]
pub struct FaultScript(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    faults: Vec<Counted>,
    struck: u64,
    /// The latest request, and the latest of another connection than that.
    latest: [Option<(SocketAddr, Opaque)>; 2],
    /// Who waits for the script to change.
    waiting: Vec<Waker>,
}

struct Counted {
    fault: Fault,
    /// How many it was asked about so far.
    asked: u64,
}

impl FaultScript {
    /// A script of `faults`; of none it is one that changes nothing.
    pub fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        let script = Self::default();
        script.set(faults);
        script
    }

    /// Puts `faults` in place of those it has; they count from 0. Connections that are open keep the faults they have.
    pub fn set(&self, faults: impl IntoIterator<Item = Fault>) {
        let faults = faults.into_iter().map(|fault| Counted { fault, asked: 0 }).collect();
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.faults, faults);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(before);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// How many times a fault has struck so far, over all that it ever had.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.lock().struck
    }

    /// Puts `stream`, the listening side's end of a connection, under the script: what is due of its faults about
    /// connections strikes this one.
    ///
    /// The servers do so by themselves. This is for peers that are no servers.
    #[must_use]
    pub fn wrap<S: Abort>(&self, stream: S) -> FaultyStream<S> {
        FaultyStream::new(stream, self.due_for_connection())
    }

    /// Whether nothing is to listen. If it is not, `waker` is called when that may have changed.
    pub(super) fn refuses(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if !state.waiting.iter().any(|known| known.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
        state.faults.iter().any(|counted| counted.fault.target == Target::Connection(ConnectionFault::Refuse))
    }

    /// What is to happen to a request that has just come in.
    pub(super) fn due_for_request(
        &self,
        code: Code,
        opaque: Opaque,
        remote: SocketAddr,
    ) -> Option<RequestFault> {
        let mut state = self.lock();
        if state.latest[0].is_some_and(|(latest, _)| latest != remote) {
            state.latest[1] = state.latest[0];
        }
        state.latest[0] = Some((remote, opaque));
        let due = state.faults.iter_mut().find_map(|counted| match &counted.fault.target {
            Target::Request(wanted, fault) if wanted.is_none_or(|wanted| wanted == code) => {
                let fault = fault.clone();
                counted.is_due().then_some(fault)
            }
            Target::Request(..) | Target::Connection(_) => None,
        });
        state.struck += u64::from(due.is_some());
        due
    }

    /// The number in place of `opaque`.
    pub(super) fn wrong_opaque(&self, wrong: WrongOpaque, opaque: Opaque, remote: SocketAddr) -> Opaque {
        let foreign = || {
            let latest = self.lock().latest;
            latest.into_iter().flatten().find(|(other, _)| *other != remote).map(|(_, opaque)| opaque)
        };
        match wrong {
            WrongOpaque::Foreign => foreign(),
            WrongOpaque::Unknown => None,
        }
        .unwrap_or(Opaque(!opaque.0))
    }

    fn due_for_connection(&self) -> Vec<ConnectionFault> {
        let mut state = self.lock();
        let mut due = Vec::new();
        for counted in &mut state.faults {
            if let Target::Connection(fault) = &counted.fault.target
                && *fault != ConnectionFault::Refuse
            {
                let fault = fault.clone();
                due.extend(counted.is_due().then_some(fault));
            }
        }
        state.struck += due.len() as u64;
        due
    }

    /// A poisoned state is still whole: each change is complete before anything that could panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let faults: Vec<_> = state.faults.iter().map(|counted| &counted.fault).collect();
        f.debug_struct("FaultScript").field("faults", &faults).field("struck", &state.struck).finish()
    }
}

impl Counted {
    /// Counts one more that it is about, and says whether it strikes this one.
    fn is_due(&mut self) -> bool {
        let place = self.asked;
        self.asked = place.saturating_add(1);
        place.checked_sub(self.fault.skip).is_some_and(|place| place < self.fault.times)
    }
}
