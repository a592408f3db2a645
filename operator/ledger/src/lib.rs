//! The pure core of Fencepost: what may be issued, what may be accepted, and when to look again.
//!
//! In come facts (an answer, a pulse, a clock reading, a random number), out come decisions. Nothing
//! here does I/O, reads a clock or draws a random number: time, ids and randomness are arguments.
//! The store enforces the same fences again in SQL, on its own; `operator/store/tests` holds the two
//! to each other. Rules and words are those of `docs/design-notes.md`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod address;
pub mod backoff;
pub mod coalesce;
pub mod content;
pub mod identity;
pub mod quiet;
pub mod receipt;
pub mod resource;
pub mod schedule;
pub mod state;
pub mod supersede;
pub mod trigger;
pub mod volatile;

pub use content::{Body, Digest, Entry};
pub use identity::{Epoch, Generation, Ordinal, RequestId, ResourceId, SessionGeneration};
pub use receipt::{Outcome, StaleReason, Verdict};
pub use resource::{Answer, IssueRefusal, Issued, Resource};
pub use state::{Presence, PublicState, SubscriptionState};
pub use trigger::Trigger;
