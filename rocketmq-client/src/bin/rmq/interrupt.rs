//! Signals: Ctrl-C, of which the first asks for an orderly end and the second ends the process, and SIGUSR1.

use std::io;

use tokio::signal;
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// Starts to listen; the token is cancelled at the first interrupt (or, on Unix, a request to terminate).
pub(crate) fn listen() -> Result<CancellationToken, Failure> {
    let mut signals =
        Signals::new().map_err(|error| Failure::run(format_args!("no signal handler: {error}")))?;
    let first = CancellationToken::new();
    let asked = first.clone();
    tokio::spawn(async move {
        signals.next().await;
        asked.cancel();
        signals.next().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(first)
}

/// Somebody who asks, with SIGUSR1, what is in flight. On Windows nobody can.
#[derive(Debug)]
pub(crate) struct Asked {
    #[cfg(unix)]
    signal: signal::unix::Signal,
}

impl Asked {
    /// Starts to listen.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self {
            #[cfg(unix)]
            signal: signal::unix::signal(signal::unix::SignalKind::user_defined1())
                .map_err(|error| Failure::run(format_args!("no signal handler: {error}")))?,
        })
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        self.signal.recv().await;
        #[cfg(windows)]
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: signal::unix::Signal,
    terminate: signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        let interrupt = signal::unix::signal(signal::unix::SignalKind::interrupt())?;
        let terminate = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// What shells report for a process that an interrupt ended.
const INTERRUPTED: i32 = 130;
