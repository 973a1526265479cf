//! The command line as its users see it: the built program, its output and its exit codes.

mod broker;
mod fault;
mod in_flight;
mod interrupt;
mod oneway;
mod peer;
mod produce;
mod report;
mod run;
mod usage;
