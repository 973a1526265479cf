//! The benchmark with every allocation counted, which costs time: its times mean nothing.

use std::{alloc::System, process::ExitCode};

use rocketmq_bench::HeapUse;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    rocketmq_bench::main(Some(heap_use))
}

fn heap_use() -> HeapUse {
    let stats = ALLOCATOR.stats();
    HeapUse {
        allocations: (stats.allocations + stats.reallocations) as u64,
        live_bytes: stats.bytes_allocated as i64 - stats.bytes_deallocated as i64,
    }
}
