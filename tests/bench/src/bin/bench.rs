//! The benchmark, without counters in the way of what is timed.

use std::process::ExitCode;

fn main() -> ExitCode {
    rocketmq_bench::main(None)
}
