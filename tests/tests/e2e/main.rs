//! The released behaviour, end to end: the binary, a real Postgres, servers nobody here wrote, and one that misbehaves on demand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod content;
mod crash;
mod delivery;
mod fences;
mod field_cases;
mod gaps;
mod manifests;
mod misbehaving;
mod missing;
mod quickstart;
mod real;
mod unwritable;
mod validate;
mod world;
