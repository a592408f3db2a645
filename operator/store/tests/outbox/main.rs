//! The outbox side of the store against a real Postgres: `DATABASE_URL` names one whose user may
//! create databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod delivery;
mod events;
mod janitor;
mod ledger;
mod samples;
