//! The fault matrix: every stage, everything that can go wrong there, and what the client says of it.

mod answers;
#[cfg(test)]
mod calls;
mod check;
mod codes;
#[cfg(test)]
mod examples;
mod page;
#[cfg(test)]
mod retries;
mod row;
#[cfg(test)]
mod sends;
mod table;
