//! The store: the only crate with SQL, and the ledger's second line of defence.
//!
//! In come objects, leases, reads and answers; out go verdicts and what the API shows. The fences of
//! `fencepost-ledger` are enforced again here, in guarded statements and in constraints and triggers of
//! the schema, without trusting the caller. Times are the database's. No transaction is held over
//! anything but statements, and each takes its locks in the order that `advisory` names.

mod accept;
mod advisory;
mod batch;
mod connect;
mod delivery;
mod error;
mod file_source;
mod gauges;
mod issue;
pub mod janitor;
mod lease;
mod mark;
mod migrate;
pub mod outbox;
mod outbox_hint;
mod outbox_listener;
mod publish;
pub mod queries;
mod resource;
mod row;
mod sample;
mod server;
mod session;
mod subscription;
mod supersede;
mod tombstone;
mod writes;

pub use accept::{AnswerBody, ReadAnswer, Settled};
pub use connect::{ConnectError, DEFAULT_CONNECTIONS, StoreConfig};
pub use delivery::{Deliverable, Deliverables, DeliveryFailure, IndexPosition};
pub use error::StoreError;
pub use gauges::{Gauges, LagGauge, StateGauge};
pub use issue::{IssueError, IssueRead, IssuedRead};
pub use mark::{MarkKind, MarkRow};
pub use migrate::{MigrateError, MigrationReport, SchemaState};
pub use outbox::{EventShape, OutboxFilter, OutboxPage};
pub use outbox_hint::OUTBOX_CHANNEL;
pub use outbox_listener::OutboxListener;
pub use publish::{IndexRow, Published, PublisherEpoch, ServerRow, SubjectRow, WatchRow};
pub use resource::{Mode, ResourceRow, ResourceSpec};
pub use sample::{CONVERGENCE_BOUNDS, CONVERGENCE_TARGET_SECONDS, Sample, SampleCounts};
pub use server::ServerStatus;
pub use session::{SessionEnd, SessionKey, SessionReceipt};
pub use tombstone::{TombstonePolicy, TombstoneVerdict};
pub use writes::{WriteRefusal, WritesRefused};

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::mpsc;
use uuid::Uuid;

/// The database, and the flushers of hot writes. Cheap to clone; the last clone ends the flushers.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    pool: PgPool,
    replica: Uuid,
    issues: batch::Batcher<issue::IssueFlush>,
    answers: batch::Batcher<accept::AcceptFlush>,
    hint: mpsc::Sender<()>,
    writes: Arc<writes::Writes>,
}

impl Store {
    /// For reading; whoever writes the ledger's tables does it in this crate.
    pub fn pool(&self) -> &PgPool {
        &self.inner.pool
    }

    /// Whether the database answers and refuses writes, as far as this process has seen.
    pub fn writes_refused(&self) -> Option<WritesRefused> {
        self.inner.writes.refused()
    }

    /// This process, as the owner of leases.
    pub fn replica(&self) -> Uuid {
        self.inner.replica
    }
}
