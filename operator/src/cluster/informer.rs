//! One watch of the API server: what is there now, as last seen.
//!
//! In: a list and its watch, begun again with backoff for ever. Out: a store that is replaced as a whole when a list is complete,
//! so that a watch that breaks makes nothing disappear; and a signal to look again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fencepost_ledger::backoff::Backoff;
use futures::{Stream, StreamExt as _, stream::BoxStream};
use kube::{
    Api, Client, Resource,
    api::DynamicObject,
    core::{ApiResource, DynamicResourceScope, PartialObjectMeta},
    runtime::{
        WatchStreamExt as _,
        reflector::{self, Store},
        watcher::{self, Error, Event},
    },
};
use tokio::{sync::Notify, task::JoinHandle};

use super::{failure::Failure, watched::Watched};
use crate::metrics::Metrics;

/// Between tries. Short at the end too: whoever mends a role or a CRD waits for it.
const AGAIN: Backoff = Backoff {
    first: Duration::from_millis(500),
    cap: Duration::from_secs(10),
};
/// How often an optional kind that the cluster does not have is asked for again.
const ABSENT_AGAIN: Duration = Duration::from_secs(30);
/// A watch is begun anew after so many seconds: a connection that died in silence is noticed then.
const WATCH_SECONDS: u32 = 120;

/// One watch of one resource in one namespace, or in all.
pub struct Informer {
    pub watched: Watched,
    store: Store<DynamicObject>,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    synced: AtomicBool,
    /// The cluster has no such kind.
    absent: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

impl Drop for Informer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What every watch works with.
#[derive(Clone)]
pub struct InformerContext {
    pub client: Client,
    pub metrics: Arc<Metrics>,
    /// Told after each change.
    pub changed: Arc<Notify>,
}

impl Informer {
    pub fn start(context: InformerContext, watched: Watched, namespace: Option<String>) -> Self {
        let writer = reflector::store::Writer::new(watched.resource());
        let store = writer.as_reader();
        let state = Arc::new(State::default());
        let follow = Follow {
            context,
            watched,
            namespace,
            state: Arc::clone(&state),
        };
        Self {
            watched,
            store,
            state,
            task: tokio::spawn(follow.run(writer)),
        }
    }

    /// Everything was listed once, or the cluster has no such kind and may do without.
    pub fn is_synced(&self) -> bool {
        self.state.synced.load(Ordering::Acquire) || self.is_absent()
    }

    pub fn is_absent(&self) -> bool {
        self.watched.is_optional() && self.state.absent.load(Ordering::Acquire)
    }

    /// What went wrong last, while nothing has come since.
    pub fn failure(&self) -> Option<Failure> {
        self.state.failure().clone()
    }

    pub fn objects(&self) -> Vec<Arc<DynamicObject>> {
        self.store.state()
    }
}

impl State {
    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Follow {
    context: InformerContext,
    watched: Watched,
    namespace: Option<String>,
    state: Arc<State>,
}

impl Follow {
    async fn run(self, mut writer: reflector::store::Writer<DynamicObject>) {
        let mut versions = vec![self.watched.resource()];
        versions.extend(self.watched.other_versions());
        let mut attempt = 0;
        let mut absent_in_a_row = 0;
        for version in versions.iter().cycle() {
            let mut events = self.events(version);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        // A list that only begins has not come through.
                        if self.take(&event, &mut writer) {
                            attempt = 0;
                            absent_in_a_row = 0;
                        }
                    }
                    Err(error) => {
                        let failure = Failure::of_watch(&error);
                        let absent = failure.is_absent() && self.watched.is_optional();
                        self.failed(failure, absent);
                        if absent {
                            absent_in_a_row += 1;
                            break;
                        }
                        attempt += 1;
                        tokio::time::sleep(AGAIN.delay(attempt, rand::random())).await;
                    }
                }
            }
            if absent_in_a_row >= versions.len() {
                tokio::time::sleep(ABSENT_AGAIN).await;
            }
        }
    }

    fn events(
        &self,
        resource: &ApiResource,
    ) -> BoxStream<'static, Result<Event<DynamicObject>, Error>> {
        let config = watcher::Config::default().timeout(WATCH_SECONDS);
        if self.watched == Watched::Secrets {
            // Only the metadata is asked for: nobody here sees a Secret that no manifest names.
            let api: Api<PartialObjectMeta<DynamicObject>> = self.api(resource);
            bare(metadata(watcher::watcher(api, config))).boxed()
        } else {
            bare(watcher::watcher(self.api(resource), config)).boxed()
        }
    }

    fn api<K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>>(
        &self,
        resource: &ApiResource,
    ) -> Api<K> {
        let client = self.context.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }

    /// Whether the store is as the API server says it is.
    fn take(
        &self,
        event: &Event<DynamicObject>,
        writer: &mut reflector::store::Writer<DynamicObject>,
    ) -> bool {
        let complete = !matches!(event, Event::Init | Event::InitApply(_));
        writer.apply_watcher_event(event);
        if complete {
            self.state.synced.store(true, Ordering::Release);
            self.state.absent.store(false, Ordering::Release);
            *self.state.failure() = None;
            self.context.changed.notify_one();
        }
        complete
    }

    fn failed(&self, failure: Failure, absent: bool) {
        // An API server that is away says nothing about what it has.
        if absent {
            self.state.absent.store(true, Ordering::Release);
        }
        let name = self.watched.name();
        if absent {
            tracing::debug!(resource = name, "the cluster has no such kind");
        } else {
            self.context
                .metrics
                .kubernetes_watch_failed(&name, failure.reason);
            // A list that has become too old is begun again every now and then; that is no trouble.
            let routine = failure.reason == "Expired";
            let said_before = self.state.failure().as_ref() == Some(&failure);
            if !said_before && !routine {
                tracing::warn!(
                    resource = name,
                    namespace = self.namespace.as_deref().unwrap_or("(all)"),
                    reason = failure.reason,
                    error = failure.message,
                    "a watch of the API server failed; it is begun again, and what was seen stays"
                );
            }
        }
        *self.state.failure() = Some(failure);
        self.context.changed.notify_one();
    }
}

/// Without what nobody here reads and every object carries.
fn bare(
    events: impl Stream<Item = Result<Event<DynamicObject>, Error>> + Send + 'static,
) -> impl Stream<Item = Result<Event<DynamicObject>, Error>> + Send {
    events.modify(|object| {
        object.metadata.managed_fields = None;
        if let Some(annotations) = &mut object.metadata.annotations {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    })
}

fn metadata(
    events: impl Stream<Item = Result<Event<PartialObjectMeta<DynamicObject>>, Error>> + Send + 'static,
) -> impl Stream<Item = Result<Event<DynamicObject>, Error>> + Send {
    let whole = |partial: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: partial.types,
        metadata: partial.metadata,
        data: serde_json::Value::Null,
    };
    events.map(move |event| {
        Ok(match event? {
            Event::Apply(object) => Event::Apply(whole(object)),
            Event::Delete(object) => Event::Delete(whole(object)),
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(whole(object)),
            Event::InitDone => Event::InitDone,
        })
    })
}
