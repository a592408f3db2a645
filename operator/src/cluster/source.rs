//! The Kubernetes source of desired state: watches in, the same `Desired` out that files give.
//!
//! What must hold: nothing is concluded from a list that is not complete or from a Secret that could not be read; and whoever leads
//! publishes only what it has listed since it leads, under a claim that the database checks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fencepost_ledger::backoff::Backoff;
use fencepost_store::{PublisherEpoch, Store};
use futures::{FutureExt as _, StreamExt as _, stream};
use kube::{Client, api::DynamicObject};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{
    failure::Failure,
    finalizer,
    informer::InformerContext,
    informers::Informers,
    leader::Election,
    scope::Scope,
    secrets::SecretContents,
    view::{Reader, View},
    watched::api_of,
};
use crate::{
    desired::{Desired, desired, secrets_named},
    manifest::{Manifest, ObjectId, Origin},
    metrics::Metrics,
    publish::Authority,
};

/// Changes are gathered for so long: `kubectl apply -f` of a folder is one look, not twenty.
const SETTLE: Duration = Duration::from_millis(50);
/// A look without any change: whether the claim still stands, and what failed before.
const EVERY: Duration = Duration::from_secs(5);
/// After something that could not be read or written.
const AGAIN: Backoff = Backoff {
    first: Duration::from_millis(500),
    cap: Duration::from_secs(5),
};
/// Finalizers written at a time.
const AT_ONCE: usize = 8;

/// One look at the cluster, and what it came to.
pub struct Look {
    pub view: View,
    pub desired: Arc<Desired>,
}

/// What the source needs.
pub struct SourceConfig {
    pub client: Client,
    pub store: Store,
    pub scope: Scope,
    /// DNS suffix of the cluster.
    pub domain: String,
    pub metrics: Arc<Metrics>,
    /// Whether this replica leads, as far as it knows; and the election, which knows.
    pub leads: watch::Receiver<bool>,
    pub election: Election,
}

/// Where the source says what it found.
pub struct Outlets {
    pub desired: watch::Sender<Arc<Desired>>,
    pub authority: watch::Sender<Authority>,
    pub looks: watch::Sender<Option<Arc<Look>>>,
    pub incomplete: Incomplete,
}

/// What keeps the source from saying anything, for `/readyz`.
pub type Incomplete = Arc<Mutex<Vec<(String, Option<Failure>)>>>;

/// Follows the cluster.
pub struct Source {
    config: SourceConfig,
    outlets: Outlets,
    context: InformerContext,
    reader: Reader,
    secrets: SecretContents,
    informers: Informers,
    /// Those of a term that begins: complete before it counts.
    fresh: Option<Informers>,
    term: Option<PublisherEpoch>,
    attempt: u32,
}

impl Source {
    pub fn new(config: SourceConfig, outlets: Outlets) -> Self {
        let context = InformerContext {
            client: config.client.clone(),
            metrics: Arc::clone(&config.metrics),
            changed: Arc::new(Notify::new()),
        };
        let informers = Informers::start(&context, &config.scope);
        Self {
            reader: Reader::new(config.domain.clone()),
            secrets: SecretContents::default(),
            informers,
            fresh: None,
            term: None,
            attempt: 0,
            context,
            config,
            outlets,
        }
    }

    pub async fn run(mut self, shutdown: CancellationToken) {
        let changed = Arc::clone(&self.context.changed);
        let mut leads = self.config.leads.clone();
        loop {
            let wait = if self.attempt > 0 {
                AGAIN.delay(self.attempt, rand::random())
            } else {
                EVERY
            };
            tokio::select! {
                () = changed.notified() => {}
                changed = leads.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
                () = shutdown.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(SETTLE) => {}
                () = shutdown.cancelled() => return,
            }
            let leading = *leads.borrow_and_update();
            match self.look(leading).await {
                Ok(()) => self.attempt = 0,
                Err(failure) => {
                    self.attempt += 1;
                    tracing::warn!(
                        reason = failure.reason,
                        error = failure.message,
                        "the cluster could not be looked at in full; what was seen stays in force"
                    );
                }
            }
        }
    }

    async fn look(&mut self, leading: bool) -> Result<(), Failure> {
        self.terms(leading).await?;
        let missing = self.informers.missing();
        let complete = missing.is_empty();
        *self
            .outlets
            .incomplete
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = missing;
        if !complete {
            return Ok(());
        }
        let mut view = self
            .reader
            .read(&self.informers.objects(), &self.informers.absent());
        if self.term.is_some() {
            self.add_finalizers(&view).await;
        }
        let unread = self.read_secrets(&mut view).await?;
        let now = desired(&view.objects);
        let before = Arc::clone(&self.outlets.desired.borrow());
        let first = self.outlets.looks.borrow().is_none();
        let desired = if now == *before && !first {
            before
        } else {
            let now = Arc::new(now);
            self.outlets.desired.send_replace(Arc::clone(&now));
            now
        };
        // After what is desired: whoever sees the claim sees what was listed for it.
        if let Some(epoch) = self.term
            && *self.outlets.authority.borrow() != Authority::Claimed(epoch)
        {
            self.outlets
                .authority
                .send_replace(Authority::Claimed(epoch));
            self.config.metrics.leads(true);
        }
        let look = Look { view, desired };
        self.outlets.looks.send_replace(Some(Arc::new(look)));
        unread.map_or(Ok(()), Err)
    }

    /// Begins and ends terms. A claim is told once there is something to publish under it.
    async fn terms(&mut self, leading: bool) -> Result<(), Failure> {
        if let Some(epoch) = self.term {
            let stands = self.config.store.claim_stands(epoch).await;
            // A database that is away says nothing; the claim is checked again with every publication.
            if !leading || matches!(stands, Ok(false)) {
                tracing::info!("this replica leads no longer");
                self.term = None;
                self.outlets.authority.send_replace(Authority::Standby);
                self.config.metrics.leads(false);
            }
        }
        if !leading {
            self.fresh = None;
            return Ok(());
        }
        if self.term.is_some() {
            return Ok(());
        }
        let context = &self.context;
        let scope = &self.config.scope;
        let fresh = self
            .fresh
            .get_or_insert_with(|| Informers::start(context, scope));
        if !fresh.are_synced() {
            return Ok(());
        }
        if !self.config.election.is_won(&self.config.client).await? {
            tracing::debug!("the lease names another replica");
            return Ok(());
        }
        let epoch = self
            .config
            .store
            .claim_publishing()
            .await
            .map_err(|error| Failure {
                reason: "DatabaseAway",
                message: crate::sentence::chain(&error),
            })?;
        if let Some(fresh) = self.fresh.take() {
            self.informers = fresh;
        }
        self.term = Some(epoch);
        tracing::info!("this replica leads");
        Ok(())
    }

    /// An object counts once it bears the finalizer; the watch shows it then.
    async fn add_finalizers(&self, view: &View) {
        let due = view.ids().filter(|(id, object)| {
            finalizer::has_one(id.kind)
                && object.metadata.deletion_timestamp.is_none()
                && !finalizer::is_borne_by(object)
        });
        let writes: Vec<_> = due
            .map(|(id, object)| self.add_finalizer(id, object).boxed())
            .collect();
        stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect::<()>()
            .await;
    }

    async fn add_finalizer(&self, id: &ObjectId, object: &DynamicObject) {
        match finalizer::add(&api_of(&self.config.client, id), object).await {
            Ok(()) => {}
            Err(failure) if failure.is_overtaken() => {}
            Err(failure) => tracing::warn!(
                object = %id,
                reason = failure.reason,
                error = failure.message,
                "the finalizer could not be added; the object does not count yet"
            ),
        }
    }

    /// An error: a Secret that is there could not be read, and of it there is nothing from before. With what it held before the look goes
    /// on, and the failure comes back, so that it is tried again.
    async fn read_secrets(&mut self, view: &mut View) -> Result<Option<Failure>, Failure> {
        let named = secrets_named(&view.objects);
        let refreshed = self
            .secrets
            .refresh(&self.config.client, &named, &view.secrets)
            .await
            .err();
        let mut contents = BTreeMap::new();
        for name in &named {
            let Some((seen, data)) = self.secrets.get(name) else {
                match refreshed {
                    // It is there and could not be read: it must not look as if it were gone.
                    Some(failure) if view.secrets.contains_key(name) => return Err(failure),
                    _ => continue,
                }
            };
            contents.insert(
                name.clone(),
                Manifest {
                    name: name.clone(),
                    uid: seen.uid.clone(),
                    labels: BTreeMap::new(),
                    annotations: BTreeMap::new(),
                    origin: Origin::cluster(),
                    spec: data.clone(),
                },
            );
        }
        view.objects.secrets = contents;
        Ok(refreshed)
    }
}
