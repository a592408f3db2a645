//! Access in process: the real router and gate, a Kubernetes client whose other end answers reviews from a table.
//!
//! What a real API server says to the same reviews is another test's business; here it is which reviews are asked.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

mod answers;
mod app;
mod cluster;
#[path = "../api/ledger.rs"]
#[allow(
    dead_code,
    reason = "the ledger of the API's tests has more than is asked for here"
)]
mod ledger;
mod login;
mod pages;
mod remembered;
mod routes;
