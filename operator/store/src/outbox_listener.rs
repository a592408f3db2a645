//! Hears that the outbox may have moved: a hint that saves waiting, never the truth.
//!
//! A connection that breaks may have swallowed hints, so each reconnect counts as one heard. Behind a
//! pooler that does not pass LISTEN on nothing is ever heard; readers look once a second anyway.

use std::time::Duration;

use fencepost_ledger::backoff::Backoff;
use sqlx::{PgPool, postgres::PgListener};

use crate::{OUTBOX_CHANNEL, Store};

/// A database that restarts is back in seconds; nothing is lost while it is not heard.
const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(200),
    cap: Duration::from_secs(10),
};

pub struct OutboxListener {
    pool: PgPool,
    listener: Option<PgListener>,
    failures: u32,
}

impl Store {
    pub fn outbox_listener(&self) -> OutboxListener {
        OutboxListener {
            pool: self.pool().clone(),
            listener: None,
            failures: 0,
        }
    }
}

impl OutboxListener {
    /// Waits for the next hint. Dropping the future loses none that a later look would not make good.
    pub async fn heard(&mut self) {
        loop {
            match &mut self.listener {
                None => match self.connect().await {
                    Ok(listener) => {
                        self.failures = 0;
                        self.listener = Some(listener);
                        return;
                    }
                    Err(error) => {
                        self.failures = self.failures.saturating_add(1);
                        tracing::debug!(%error, "the outbox is not listened to; it is looked at once a second");
                        tokio::time::sleep(RECONNECT.delay(self.failures, rand::random())).await;
                    }
                },
                Some(listener) => {
                    if listener.try_recv().await.ok().flatten().is_none() {
                        self.listener = None;
                        continue;
                    }
                    return;
                }
            }
        }
    }

    async fn connect(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(OUTBOX_CHANNEL).await?;
        Ok(listener)
    }
}
