//! Fencepost as a library: manifests to desired, desired to sessions, sessions to reads, reads to
//! acceptance, acceptance to outbox; and from the ledger to API, dashboard and metrics.
//!
//! `runtime` is the composition root: the one place that knows every part.

// The pages' futures are nested types; checking that they are `Send` recurses through them.
#![recursion_limit = "512"]

pub mod access;
pub mod api;
pub mod cluster;
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
