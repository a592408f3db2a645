//! What the end-to-end tests and the benches stand on.
//!
//! Servers to watch ([`faulty`] misbehaves on demand, [`real_servers`] were written by others), a database ([`postgres`]), the
//! program under test ([`binary`]), a consumer of its webhooks ([`receiver`]), and waiting without sleeping ([`wait`]). A harness
//! that cannot do its work ends the test at once and says why.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a failed harness is a failed test; the message is the panic's"
)]

pub mod api;
pub mod binary;
pub mod cluster;
pub mod faulty;
pub mod ledger;
pub mod postgres;
pub mod process;
pub mod real_servers;
pub mod receiver;
pub mod report;
pub mod wait;
