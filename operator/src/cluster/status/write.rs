//! Writing statuses: one server-side apply an object, when there is something to say.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use kube::{
    Client, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
    runtime::events::{Event, Recorder, Reporter},
};
use serde_json::{Value, json};

use super::{draft::Draft, stand, transitions};
use crate::{
    cluster::{
        failure::Failure,
        source::Look,
        watched::{Watched, api_of},
    },
    manifest::ObjectId,
};

/// Field manager of every status.
pub const FIELD_MANAGER: &str = "fencepost";
/// Writes at a time: a start with thousands of objects must not crowd the API server.
const AT_ONCE: usize = 8;
/// An object whose conditions stay is written at most so often: counts of a busy one move all the time.
const COUNTS_EVERY: Duration = Duration::from_secs(5);
/// Largest status: the objects' own bound is far above, and 64 KiB is what was promised.
const MAX_BYTES: usize = 64 * 1024;

/// Writes statuses and Events.
pub struct Writer {
    client: Client,
    recorder: Recorder,
    /// When an object was written last, by uid.
    written: HashMap<String, Instant>,
    /// What could not be written, by uid, so that it is said once.
    refused: HashMap<String, Failure>,
}

/// One write that is due.
struct Due {
    id: ObjectId,
    object: Arc<DynamicObject>,
    status: Value,
    events: Vec<Event>,
}

impl Writer {
    pub fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter {
            controller: "fencepost.dev/operator".to_owned(),
            instance: Some(identity.to_owned()),
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
            written: HashMap::new(),
            refused: HashMap::new(),
        }
    }

    /// Writes what differs from what stands.
    pub async fn write(&mut self, look: &Look, drafts: Vec<(&ObjectId, Draft)>) {
        let now = Timestamp::now();
        let mut due = Vec::new();
        for (id, draft) in drafts {
            let Some(object) = look.view.seen.get(id) else {
                continue;
            };
            if let Some(write) = self.due(id, object, &draft, now) {
                due.push(write);
            }
        }
        let this = &*self;
        let writes: Vec<_> = due
            .into_iter()
            .map(|write| {
                async move {
                    let result = this.apply(&write).await;
                    (write, result)
                }
                .boxed()
            })
            .collect();
        let done: Vec<_> = stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (write, result) in done {
            let uid = write.object.uid().unwrap_or_default();
            match result {
                Ok(()) => {
                    self.written.insert(uid.clone(), Instant::now());
                    self.refused.remove(&uid);
                    for event in &write.events {
                        self.tell(&write.id, &write.object, event).await;
                    }
                }
                Err(failure) if failure.is_overtaken() => {}
                Err(failure) => {
                    if self.refused.get(&uid) != Some(&failure) {
                        tracing::warn!(
                            object = %write.id,
                            reason = failure.reason,
                            error = failure.message,
                            "a status was not written"
                        );
                        self.refused.insert(uid, failure);
                    }
                }
            }
        }
        let alive: std::collections::HashSet<String> = look
            .view
            .seen
            .values()
            .filter_map(|object| object.uid())
            .collect();
        self.written.retain(|uid, _| alive.contains(uid));
        self.refused.retain(|uid, _| alive.contains(uid));
    }

    fn due(
        &self,
        id: &ObjectId,
        object: &Arc<DynamicObject>,
        draft: &Draft,
        now: Timestamp,
    ) -> Option<Due> {
        let before = object.data.get("status").cloned().unwrap_or(Value::Null);
        let mut status = draft.settle(&before, object.metadata.generation, now);
        if let Some(asked) = object.annotations().get(fencepost_crds::RECONCILE_AT) {
            status["lastHandledReconcileAt"] = json!(asked);
        }
        bound(&mut status);
        if stand::stands(&status, &before) {
            return None;
        }
        let uid = object.uid()?;
        let only_counts = status["conditions"] == before["conditions"]
            && status["lastHandledReconcileAt"] == before["lastHandledReconcileAt"];
        let lately = self
            .written
            .get(&uid)
            .is_some_and(|at| at.elapsed() < COUNTS_EVERY);
        if only_counts && lately {
            return None;
        }
        let events = transitions::between(&before, &status);
        Some(Due {
            id: id.clone(),
            object: Arc::clone(object),
            status,
            events,
        })
    }

    async fn apply(&self, write: &Due) -> Result<(), Failure> {
        let resource = Watched::Ours(write.id.kind).resource();
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": write.id.name,
                "namespace": write.id.namespace,
                "uid": write.object.metadata.uid,
                "resourceVersion": write.object.metadata.resource_version,
            },
            "status": write.status,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        api_of(&self.client, &write.id)
            .patch_status(&write.id.name, &params, &Patch::Apply(&body))
            .await
            .map(drop)
            .map_err(|error| Failure::of(&error))
    }

    /// Says it to whoever describes the object. An Event that cannot be written is lost: the status has it too.
    pub async fn tell(&self, id: &ObjectId, object: &DynamicObject, event: &Event) {
        let resource = Watched::Ours(id.kind).resource();
        let reference = ObjectReference {
            api_version: Some(resource.api_version),
            kind: Some(resource.kind),
            namespace: Some(id.namespace.clone()),
            name: Some(id.name.clone()),
            uid: object.uid(),
            resource_version: object.resource_version(),
            ..ObjectReference::default()
        };
        if let Err(error) = self.recorder.publish(event, &reference).await {
            let failure = Failure::of(&error);
            tracing::debug!(
                object = %id,
                reason = failure.reason,
                error = failure.message,
                "an Event was not written"
            );
        }
    }
}

/// Leaves the sample out where a status would be too large; counts and conditions are bounded by themselves.
fn bound(status: &mut Value) {
    let size = serde_json::to_vec(status).map_or(0, |bytes| bytes.len());
    if size > MAX_BYTES
        && let Some(status) = status.as_object_mut()
    {
        status.remove("sample");
    }
}
