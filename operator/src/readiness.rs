//! What has to be there before this process does what it is for: the database, and the manifests in it.

use std::{future::Future, pin::Pin, sync::Arc};

use fencepost_store::{SchemaState, Store};
use tokio::sync::watch;

use crate::{
    api::{Missing, ReadinessChecks},
    desired::Desired,
};

/// The checks of `/readyz`.
pub struct Checks {
    store: Store,
    published: watch::Receiver<Option<Arc<Desired>>>,
    /// What the source of the manifests misses.
    source: Option<Arc<dyn ReadinessChecks>>,
}

impl Checks {
    pub const fn new(
        store: Store,
        published: watch::Receiver<Option<Arc<Desired>>>,
        source: Option<Arc<dyn ReadinessChecks>>,
    ) -> Self {
        Self {
            store,
            published,
            source,
        }
    }
}

impl ReadinessChecks for Checks {
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>> {
        Box::pin(async move {
            let mut missing = Vec::new();
            match self.store.schema().await {
                Ok(SchemaState::Usable) => {}
                Ok(SchemaState::Empty) => missing.push(Missing {
                    name: "migrations".to_owned(),
                    detail: "the database has no ledger; create it: fencepost migrate".to_owned(),
                }),
                Ok(SchemaState::Older { database, binary }) => missing.push(Missing {
                    name: "migrations".to_owned(),
                    detail: format!(
                        "the ledger's schema is at version {database}, and {binary} is needed; bring it there: fencepost migrate"
                    ),
                }),
                Err(_) => missing.push(Missing {
                    name: "database".to_owned(),
                    detail: "the ledger does not answer; it is asked again with every probe"
                        .to_owned(),
                }),
            }
            if let Some(source) = &self.source {
                missing.extend(source.missing().await);
            }
            if self.published.borrow().is_none() {
                missing.push(Missing {
                    name: "manifests".to_owned(),
                    detail: "the manifests are not in the ledger yet; that needs the database"
                        .to_owned(),
                });
            }
            missing
        })
    }

    fn degraded(&self) -> Vec<Missing> {
        let refused = self.store.writes_refused();
        let degraded = refused.map(|refused| Missing {
            name: "ledger writes".to_owned(),
            detail: format!(
                "{}; until then nothing is accepted, what was accepted is served",
                refused.why
            ),
        });
        degraded.into_iter().collect()
    }
}
