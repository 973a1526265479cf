//! Scripted peers, controlled pipes and the other ends of every seam, for tests of this crate and of its users.
//!
//! A [`Network`] stands in for the connector: each dial of a transport arrives as a [`ScriptedPeer`], which reads
//! and answers as the script says and keeps its own count of what it has seen. The pipe between the two accepts
//! no more than it is told to, so that a request can be frozen in each of its stages. All of it works under paused
//! time.
//!
//! What a script expects and does not get is a panic that says what was expected: these are assertions. What does not
//! come for ten minutes, of whichever time the test runs in, does not come.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use rocketmq_transport::{
//!     Certainty, Code, Request, RequestDeadline, Stage, Transport, TransportConfig, test_support::Network,
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! let mut network = Network::new(64);
//! let transport = Transport::builder(TransportConfig::default()).connector(network.connector()).build()?;
//! let peer = "broker.example:10911".parse()?;
//! let heartbeat = Request { code: Code(34), header: &(), body: Bytes::new() };
//! let deadline = RequestDeadline::after(Duration::from_secs(1));
//!
//! let (ended, mut broker) = tokio::join!(transport.call(&peer, heartbeat, deadline), async {
//!     let mut broker = network.accept().await;
//!     broker.expect_code(34).await;
//!     // It does not answer.
//!     broker
//! });
//! let error = ended.expect_err("nobody answered");
//! assert_eq!((error.stage(), error.certainty()), (Stage::AwaitingResponse, Certainty::Unknown));
//! assert_eq!(error.elapsed(), Duration::from_secs(1));
//! assert_eq!(broker.frames_seen(), 1);
//! broker.expect_nothing().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod log;
mod network;
mod peer;
mod pipe;
mod signer;
mod table;

use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

pub use self::{
    log::{LogLine, LogSink},
    network::{Dialing, Network},
    peer::{Rest, ScriptedPeer},
    pipe::{PipeEnd, Then},
    signer::{Readiness, ScriptedSigner},
    table::{Generation, PendingRequest, PendingTable, Verdict},
};
use crate::{Code, EncodeOptions, FrameLimits, Opaque, Response};

/// Lets every task of this runtime run until each of them waits, without letting time pass.
///
/// That holds for a current-thread runtime and for waits on what other tasks do; it knows nothing of sockets.
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn settle() {
    for _ in 0..SETTLING_TURNS {
        tokio::task::yield_now().await;
    }
}

/// Waits for `what`, which has to come within [`PATIENCE`]: a script that would wait for ever fails.
async fn within_patience<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited {} s for {what}, and nothing came", PATIENCE.as_secs()),
    }
}

/// A response of status success, without fields and body.
fn success() -> Response {
    Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: Bytes::new() }
}

/// A whole frame of that response.
fn encoded_success(opaque: Opaque) -> Vec<u8> {
    encoded(&success(), opaque, EncodeOptions::default())
}

fn encoded(response: &Response, opaque: Opaque, options: EncodeOptions) -> Vec<u8> {
    response.encode(opaque, options, &FrameLimits::default()).expect("a scripted response fits a frame")
}

/// Longer than anything that a transport waits for under its default settings.
const PATIENCE: Duration = Duration::from_secs(600);
/// In each turn every task that can runs once; no chain of wake-ups in a transport is as long.
const SETTLING_TURNS: usize = 128;
