//! Other people's clients, built where they can be.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rocketmq_tests::apache::java_program;

use crate::{Outcome, process::Program};

/// The transport of the published crates.
pub(crate) fn published_transport() -> Option<Program> {
    or_why_not("rocketmq-transport 1.0.0", published("published", "published-transport"))
}

/// The clients that can send to a name server's brokers, of those that can be built here.
pub(crate) fn producers() -> Vec<Program> {
    [
        or_why_not("Apache's Java client", java()),
        or_why_not("Apache's Go client", go()),
        or_why_not("rocketmq-client-rust 1.0.0", published("published-producer", "published-producer")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What cannot be built is left out, so that the rest can be measured where a tool is missing.
fn or_why_not(what: &str, program: Outcome<Program>) -> Option<Program> {
    program.inspect_err(|error| eprintln!("bench: {what} is not measured: {error}")).ok()
}

fn published(name: &str, binary: &str) -> Outcome<Program> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet"]).current_dir(sources().join("published"));
    // What cargo has told this process, where it was started by it, is of another workspace, and would have all built anew.
    let told = env::vars_os().map(|(name, _)| name);
    for name in told.filter(|name| name.to_str().is_some_and(is_of_a_package)) {
        cargo.env_remove(name);
    }
    build(cargo)?;
    Ok(Program::new(name, made().join("published/release").join(binary)))
}

fn is_of_a_package(variable: &str) -> bool {
    variable == "CARGO_TARGET_DIR"
        || variable.starts_with("CARGO_PKG_")
        || variable.starts_with("CARGO_MANIFEST_")
}

fn java() -> Outcome<Program> {
    let home = made().join("java");
    fs::create_dir_all(&home)?;
    let arguments = java_program("5.5.0", &sources().join("java/BenchProducer.java"), &home)?;
    Ok(Program::new("java", "java").with_arguments(arguments).taking(JAVA_WARM_UP))
}

fn go() -> Outcome<Program> {
    let program = made().join("go-producer");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".").current_dir(sources().join("go"));
    build(go)?;
    Ok(Program::new("go", program).taking(GO_WARM_UP))
}

fn build(mut command: Command) -> Outcome<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}").into()) }
}

/// The folder of this package.
fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of everything that is made from it beside the program itself.
fn made() -> PathBuf {
    sources().join("../../target/bench")
}

/// What the Java client takes beside its measured part: its machine starts, and compiles what is hot.
const JAVA_WARM_UP: Duration = Duration::from_millis(6_800);
/// The same of the Go client.
const GO_WARM_UP: Duration = Duration::from_millis(600);
