//! Tells outbox readers to look again: one NOTIFY for however many flushes came meanwhile.
//!
//! After the commit and on a connection of its own, since NOTIFY inside a transaction makes all commits
//! queue. It is a hint: readers poll as well, so one that gets lost costs only time.

use sqlx::PgPool;
use tokio::sync::mpsc;

/// The channel that outbox readers listen on; the payload is empty.
pub const OUTBOX_CHANNEL: &str = "fencepost_outbox";

pub(crate) async fn run(pool: PgPool, mut hints: mpsc::Receiver<()>) {
    while hints.recv().await.is_some() {
        if let Err(error) = sqlx::query("select pg_notify($1, '')")
            .bind(OUTBOX_CHANNEL)
            .execute(&pool)
            .await
        {
            tracing::debug!(%error, "outbox readers were not woken; they will look by themselves");
        }
    }
}
