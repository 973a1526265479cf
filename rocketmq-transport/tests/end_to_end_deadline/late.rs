//! Answers that come too late, or that nobody asked for.
