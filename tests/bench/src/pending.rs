//! Requests that are never answered, and what each of them holds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::runtime::Runtime;

use crate::{HeapProbe, Outcome, load::Multiplexed};

/// Leaves `count` requests waiting for an answer that will not come, each in a task of its own, and says how many
/// bytes of heap each holds, where allocations are counted.
pub(crate) fn hold<C: Multiplexed>(
    runtime: &Runtime,
    caller: &C,
    count: usize,
    heap: Option<HeapProbe>,
) -> Outcome<Option<f64>> {
    let mut probing = caller.clone();
    runtime.block_on(probing.call())?;
    let live_bytes = || heap.map(|probe| probe().live_bytes);
    let before = live_bytes();
    let asked = Arc::new(AtomicUsize::new(0));
    let mut spawned = 0;
    while spawned < count {
        // Few at a time, so that what grows with a batch stays as it was.
        for _ in 0..AT_ONCE.min(count - spawned) {
            let (mut caller, asked) = (caller.clone(), Arc::clone(&asked));
            runtime.spawn(async move {
                asked.fetch_add(1, Ordering::Relaxed);
                caller.held().await
            });
            spawned += 1;
        }
        while asked.load(Ordering::Relaxed) < spawned {
            thread::sleep(Duration::from_micros(20));
        }
        // Frames leave in order: with this one answered, the server has all that were asked before it.
        runtime.block_on(probing.call())?;
    }
    let per_request = |(after, before): (i64, i64)| (after - before) as f64 / count as f64;
    Ok(live_bytes().zip(before).map(per_request))
}

const AT_ONCE: usize = 64;
