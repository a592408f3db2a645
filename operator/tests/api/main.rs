//! The HTTP API in process: real handlers on a real Postgres, no socket between.
//!
//! The ledger is written by the store's own functions, so that what is asserted is what readers get.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

mod content;
mod documented;
mod errors;
mod events;
mod history;
mod ledger;
mod outbox;
mod overview;
mod pages;
mod shapes;
