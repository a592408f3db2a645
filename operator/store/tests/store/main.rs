//! The store against a real Postgres: `DATABASE_URL` names one whose user may create databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agree;
mod batching;
mod commit;
mod concurrency;
mod constraints;
mod fences;
mod guards;
mod invariants;
mod leases;
mod lifecycle;
mod model;
mod outbox_order;
mod publishing;
mod rate;
mod tombstones;
mod versions;
mod world;
