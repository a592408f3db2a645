//! Which replica reconciles: a `Lease` of coordination.k8s.io.
//!
//! Being the leader saves work; it is never what correctness rests on. What is published is fenced by the claim in the database, and
//! what is written to an object by its uid and version.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;

/// How long a leader that died is waited for.
const DURATION_SECONDS: u64 = 10;
/// The lease is renewed so long before it would run out.
const GRACE_SECONDS: u64 = 5;
/// Between tries to find or create the lease.
const AGAIN: Duration = Duration::from_secs(3);

/// Where the lease is, and who this is.
#[derive(Debug, Clone)]
pub struct Election {
    pub namespace: String,
    pub lease: String,
    pub identity: String,
}

impl Election {
    /// Whether the lease names this replica now. Who is told that it leads, and was away from the API server meanwhile, may not
    /// know yet that another took over.
    pub async fn is_won(&self, client: &Client) -> Result<bool, Failure> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.namespace);
        let lease = leases
            .get(&self.lease)
            .await
            .map_err(|error| Failure::of(&error))?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        Ok(holder.as_deref() == Some(&self.identity))
    }
}

/// Takes part in the election until `shutdown`, then lets the lease go. `leads` says how it stands.
pub async fn run(
    client: Client,
    election: Election,
    leads: watch::Sender<bool>,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        let Some(manager) = build(&client, &election, &shutdown).await else {
            return;
        };
        let (mut told, task) = manager.watch().await;
        loop {
            leads.send_if_modified(|leads| {
                let now = *told.borrow_and_update();
                std::mem::replace(leads, now) != now
            });
            tokio::select! {
                changed = told.changed() => if changed.is_err() { break },
                () = shutdown.cancelled() => break,
            }
        }
        leads.send_if_modified(|leads| std::mem::replace(leads, false));
        // The manager lets the lease go when nobody listens any more.
        drop(told);
        match task.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %crate::sentence::chain(&error), "the leader's lease");
            }
            Err(_) => tracing::warn!("the leader's lease was lost with the task that kept it"),
        }
    }
}

async fn build(
    client: &Client,
    election: &Election,
    shutdown: &CancellationToken,
) -> Option<LeaseManager> {
    loop {
        let built = LeaseManagerBuilder::new(client.clone(), &election.lease)
            .with_namespace(&election.namespace)
            .with_identity(&election.identity)
            .with_duration(DURATION_SECONDS)
            .with_grace(GRACE_SECONDS)
            .build()
            .await;
        match built {
            Ok(manager) => return Some(manager),
            Err(error) => tracing::warn!(
                lease = election.lease,
                namespace = election.namespace,
                error = %crate::sentence::chain(&error),
                "the leader's lease cannot be used; it is tried again"
            ),
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = shutdown.cancelled() => return None,
        }
    }
}
