//! The task of a connection that ends it in order.

use std::sync::Arc;

use tokio::{
    io::AsyncWriteExt,
    task::JoinError,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Closing, Connection, Stop};
use crate::{
    CloseCause,
    reader::{ReadEnd, Reader},
    stream::WriteHalf,
    writer::{Stopped, Writer},
};

/// Runs reader and writer until one of them ends or the connection is to stop, and then closes in order: the
/// cause is recorded, new work refused, the writer stopped and its count final, what the socket holds read, and
/// only then the waiters ended.
///
/// The guard is there before the first poll, which may never come.
pub(super) fn drive(
    connection: Arc<Connection>,
    reader: Reader,
    writer: Writer,
) -> impl Future<Output = ()> + Send {
    let link = Arc::clone(&connection.link);
    let guard = EndGuard { connection, cause: CloseCause::Aborted };
    async move {
        tokio::select! {
            () = run(guard, reader, writer) => {}
            never = link.watch_limits() => match never {},
        }
    }
}

async fn run(mut guard: EndGuard, reader: Reader, writer: Writer) {
    let connection = Arc::clone(&guard.connection);
    let link = &connection.link;
    let stop_reader = CancellationToken::new();
    let mut reader = tokio::spawn(reader.run(stop_reader.clone()).in_current_span());
    let mut writer = tokio::spawn(writer.run().in_current_span());
    let (mut read_end, mut write_end) = (None, None);
    tokio::select! {
        () = connection.stopping.cancelled() => {}
        end = &mut reader => read_end = Some(end),
        end = &mut writer => write_end = Some(end),
    }
    let stop = connection.stop.get();
    guard.cause = cause_of(stop, read_end.as_ref(), write_end.as_ref());
    tracing::info!(cause = %guard.cause, "connection closing");
    // Before anybody is refused: who looks for another connection finds out why this one is of no use.
    let _ = connection.closing.set(Closing { cause: guard.cause.clone(), at: Instant::now() });
    link.table.close();
    link.lanes.close();
    let write_end = match write_end {
        Some(end) => end,
        None => writer.await,
    };
    let until = stop.and_then(|stop| stop.farewell).map(|farewell| Instant::now() + farewell);
    let write_half = write_end.ok().map(|(_, half)| half);
    let write_half = connection.cut.run_until_cancelled(shut_down(write_half, until)).await.flatten();
    stop_reader.cancel();
    let read_end = match read_end {
        Some(end) => end,
        None => reader.await,
    };
    if let Ok(ReadEnd::Told(reader)) = read_end {
        match until {
            Some(until) => {
                let _ = connection.cut.run_until_cancelled(reader.read_to_end(until)).await;
            }
            None => reader.read_what_is_there().await,
        }
    }
    drop(write_half);
    drop(guard);
}

/// Why the connection ends: because it was told to, or because of the task that ended first.
fn cause_of(
    stop: Option<&Stop>,
    read_end: Option<&Result<ReadEnd, JoinError>>,
    write_end: Option<&Result<(Stopped, WriteHalf), JoinError>>,
) -> CloseCause {
    if let Some(stop) = stop {
        return stop.cause.clone();
    }
    match (read_end, write_end) {
        (Some(Ok(ReadEnd::Failed(cause))), _) | (_, Some(Ok((Stopped::Failed(cause), _)))) => cause.clone(),
        (Some(Err(error)), _) | (_, Some(Err(error))) if error.is_panic() => CloseCause::Panicked,
        _ => CloseCause::Aborted,
    }
}

/// Shuts our side down where there is time for it, so that the peer sees the end of the stream.
async fn shut_down(half: Option<WriteHalf>, until: Option<Instant>) -> Option<WriteHalf> {
    let (Some(mut half), Some(until)) = (half, until) else { return None };
    // A peer that does not take our last bytes in time gets the close all the same.
    let _ = timeout_at(until, half.shutdown()).await;
    Some(half)
}

/// Ends what is pending, whatever ends the task that drives the connection.
struct EndGuard {
    connection: Arc<Connection>,
    cause: CloseCause,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let (connection, at) = (&self.connection, Instant::now());
        let _ = connection.closing.set(Closing { cause: self.cause.clone(), at });
        connection.link.close(&self.cause, at);
        connection.ended.cancel();
    }
}
