//! Fencepost as a library: manifests to desired, desired to sessions, sessions to reads, reads to
//! acceptance, acceptance to outbox; and from the ledger to API, dashboard and metrics.
//!
//! `runtime` is the composition root: the one place that knows every part.

pub mod api;
pub mod commands;
pub mod desired;
pub mod engine;
pub mod live;
pub mod manifest;
pub mod metrics;
pub mod outbox;
pub mod postgres;
pub mod publish;
mod readiness;
pub mod runtime;
mod sampler;
mod sentence;
pub mod web;
