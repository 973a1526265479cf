//! What a call is asked with.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Class, RequestDeadline, StageClock};

/// How a call is to be carried out.
///
/// Made from a [`RequestDeadline`], with the rest at its defaults.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use rocketmq_transport::{CallOptions, Class, RequestDeadline};
///
/// let mut options = CallOptions::from(RequestDeadline::after(Duration::from_secs(1)));
/// options.class = Class::Control;
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallOptions {
    /// When the call ends at the latest.
    pub deadline: RequestDeadline,
    /// When a byte of the frame must have left at the latest; a call that has started goes on to its deadline.
    /// Default: no such instant.
    pub start_by: Option<Instant>,
    /// The budget and the lane it uses. Default data.
    pub class: Class,
    /// What to do when the budget is full. Default refuse.
    pub admission: Admission,
    /// How long the peer has been asked to hold the response back; its silence is judged only after it. Default
    /// zero.
    pub suspend: Duration,
    /// The time spent so far, with which the call goes on. Default: a clock that starts with the call.
    pub clock: Option<StageClock>,
}

impl From<RequestDeadline> for CallOptions {
    fn from(deadline: RequestDeadline) -> Self {
        Self {
            deadline,
            start_by: None,
            class: Class::Data,
            admission: Admission::Refuse,
            suspend: Duration::ZERO,
            clock: None,
        }
    }
}

/// What to do when the budget is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Fail at once.
    #[default]
    Refuse,
    /// Wait in turn, until the deadline.
    Wait,
}

/// What a call can be asked with: a budget, a deadline that was frozen before, or all [`CallOptions`].
///
/// A budget is frozen into a deadline as the call is polled first; [`Duration::MAX`] means never, and zero means already.
/// It costs one reading of the clock less than a deadline that is frozen just before.
pub trait IntoCallOptions: Copy + Send + Unpin {
    /// The options of a call that enters the transport at `now`.
    fn into_call_options(self, now: Instant) -> CallOptions;
}

impl IntoCallOptions for Duration {
    fn into_call_options(self, now: Instant) -> CallOptions {
        RequestDeadline::from(now, self).into()
    }
}

impl IntoCallOptions for RequestDeadline {
    fn into_call_options(self, _: Instant) -> CallOptions {
        self.into()
    }
}

impl IntoCallOptions for CallOptions {
    fn into_call_options(self, _: Instant) -> CallOptions {
        self
    }
}
