//! The client against servers that behave, misbehave and vanish, over real sockets and real child processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod closing;
mod eras;
mod fake;
mod origins;
mod stdio;
mod streams;
mod watching;
