//! What this replica misses in the cluster, for `/readyz`.

use std::{future::Future, pin::Pin, sync::PoisonError, time::Duration};

use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::Client;

use super::{permissions, schema_check, schema_check::Outdated, source::Incomplete};
use crate::api::{Missing, ReadinessChecks};

/// Between two looks at the definitions.
const EVERY: Duration = Duration::from_secs(15);
/// Before something that is missing is believed.
const AGAIN: Duration = Duration::from_secs(5);
/// Missing verbs named in one answer: a role that is missing altogether needs no list of forty.
const MAX_VERBS: usize = 10;

/// Definitions that are missing or too old; None before the first look.
pub type Definitions = Arc<ArcSwap<Option<Vec<Outdated>>>>;

/// Looks at the definitions for ever.
pub async fn watch_definitions(client: Client, definitions: Definitions) {
    let mut doubted = false;
    loop {
        match schema_check::outdated(&client).await {
            // An API server that has just started publishes its documents one after another.
            Ok(now) if !now.is_empty() && !doubted => {
                doubted = true;
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            Ok(now) => {
                doubted = !now.is_empty();
                let before = definitions.load_full();
                for outdated in &now {
                    if before
                        .as_ref()
                        .as_ref()
                        .is_none_or(|before| !before.contains(outdated))
                    {
                        tracing::error!("{}", outdated.sentence());
                    }
                }
                definitions.store(Arc::new(Some(now)));
            }
            Err(failure) => tracing::warn!(
                reason = failure.reason,
                error = failure.message,
                "the cluster's custom resource definitions could not be looked at"
            ),
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The checks of the Kubernetes source.
pub struct ClusterReadiness {
    pub incomplete: Incomplete,
    pub permissions: permissions::Missing,
    pub definitions: Definitions,
}

impl ReadinessChecks for ClusterReadiness {
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>> {
        Box::pin(async move {
            let mut missing = Vec::new();
            for outdated in self.definitions.load().iter().flatten() {
                missing.push(Missing {
                    name: format!("definition {}", outdated.definition),
                    detail: outdated.sentence(),
                });
            }
            let verbs = self.permissions.load();
            let verbs = verbs.as_ref().as_ref().map_or(&[][..], Vec::as_slice);
            for verb in verbs.iter().take(MAX_VERBS) {
                missing.push(Missing {
                    name: format!("permission {} {}", verb.verb, verb.resource),
                    detail: verb.sentence(),
                });
            }
            if verbs.len() > MAX_VERBS {
                missing.push(Missing {
                    name: "permissions".to_owned(),
                    detail: format!(
                        "and {} more verbs; the log names them all",
                        verbs.len() - MAX_VERBS
                    ),
                });
            }
            let incomplete = self
                .incomplete
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            for (resource, failure) in incomplete.iter() {
                missing.push(Missing {
                    name: format!("list {resource}"),
                    detail: failure.as_ref().map_or_else(
                        || "its first list is not complete yet".to_owned(),
                        |failure| {
                            format!("{}: {}; it is asked again", failure.reason, failure.message)
                        },
                    ),
                });
            }
            missing
        })
    }
}
