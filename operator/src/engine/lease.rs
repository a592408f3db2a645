//! Keeps the leases of this replica's sessions; tells a session when its lease is gone.
//!
//! The lease only saves work: what fences a paused owner is the session generation in the database.
//! All leases are renewed in one statement, every third of their time to live.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fencepost_store::{SessionKey, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time to live of a lease: how long the sessions of a replica that died wait for another.
pub const LEASE_TTL: Duration = Duration::from_secs(10);

type Held = HashMap<SessionKey, (CancellationToken, Instant)>;

/// The leases that this replica holds.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<Held>>);

/// What a replica that died had open and nobody takes over is closed by whoever is alive.
async fn close_abandoned(store: &Store) {
    match store.close_abandoned().await {
        Ok(0) => {}
        Ok(closed) => tracing::info!(closed, "sessions whose owner is gone were closed"),
        Err(error) => tracing::debug!(
            category = error.category(),
            "abandoned sessions were not looked for"
        ),
    }
}

/// One session's hold on its lease; letting it go stops the renewals.
pub struct LeaseHold {
    leases: Leases,
    key: SessionKey,
    pub lost: CancellationToken,
}

impl Drop for LeaseHold {
    fn drop(&mut self) {
        self.leases.held().remove(&self.key);
    }
}

impl Leases {
    pub fn start(store: Store, shutdown: CancellationToken) -> Self {
        let leases = Self::default();
        let keeper = leases.clone();
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(LEASE_TTL / 3);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = interval.tick() => {
                        keeper.renew(&store).await;
                        close_abandoned(&store).await;
                    }
                    () = shutdown.cancelled() => return,
                }
            }
        });
        leases
    }

    /// Starts renewing a lease that was just acquired.
    pub fn hold(&self, key: SessionKey) -> LeaseHold {
        let lost = CancellationToken::new();
        self.held().insert(key, (lost.clone(), Instant::now()));
        LeaseHold {
            leases: self.clone(),
            key,
            lost,
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn renew(&self, store: &Store) {
        let keys: Vec<SessionKey> = self.held().keys().copied().collect();
        if keys.is_empty() {
            return;
        }
        let asked = Instant::now();
        let wanted: Vec<_> = keys
            .iter()
            .map(|key| (key.server, key.subject, key.generation))
            .collect();
        match store.renew_leases(&wanted, LEASE_TTL).await {
            Ok(renewed) => {
                let mut held = self.held();
                for (key, ours) in keys.iter().zip(renewed) {
                    let Some((lost, renewed_at)) = held.get_mut(key) else {
                        continue;
                    };
                    if ours {
                        *renewed_at = asked;
                    } else {
                        lost.cancel();
                    }
                }
            }
            Err(error) => {
                tracing::warn!(category = error.category(), "leases were not renewed");
                // Without a renewal for its whole time to live somebody else may hold the lease.
                for (lost, renewed_at) in self.held().values() {
                    if renewed_at.elapsed() > LEASE_TTL {
                        lost.cancel();
                    }
                }
            }
        }
    }
}
