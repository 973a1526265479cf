//! The fault matrix: every stage, everything that can go wrong there, and what the client says of it.

mod calls;
mod check;
mod retries;
mod row;
mod sends;
mod table;
