//! The dashboard in a real Chromium, served by the binary over a real ledger.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chromium;
mod live;
mod pages;
mod without;
#[path = "../e2e/world.rs"]
#[allow(
    dead_code,
    reason = "shared with the end-to-end tests, which use more of it"
)]
mod world;
