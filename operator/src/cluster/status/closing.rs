//! Objects that are being deleted: they go when the ledger has closed what was opened for them.
//!
//! After the deadline they go all the same: the ledger closes what is left when it is there again, since it knows objects by uid and
//! this one is no longer published.

use std::time::Duration;

use fencepost_store::queries::{Closing, Queries};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Client, ResourceExt as _,
    api::DynamicObject,
    runtime::events::{Event, EventType},
};

use super::write::Writer;
use crate::{
    cluster::{finalizer, source::Look, watched::api_of},
    manifest::{Kind, ObjectId},
    publish::ledger_uid,
};

/// How long the ledger may take to say what is open.
const ANSWER: Duration = Duration::from_secs(3);

/// Ends finalizers.
pub struct Closings {
    client: Client,
    queries: Queries,
    deadline: Duration,
}

/// Whether an object may go.
enum Verdict {
    Closed,
    Waits,
    /// The deadline passed first.
    Late,
}

impl Closings {
    pub const fn new(client: Client, queries: Queries, deadline: Duration) -> Self {
        Self {
            client,
            queries,
            deadline,
        }
    }

    /// `published`: the ledger knows already that these objects are being deleted.
    pub async fn round(&self, look: &Look, published: bool, writer: &mut Writer) {
        let now = Timestamp::now();
        // Asked until it does not answer: the others need not wait for it one after another.
        let mut published = published;
        for (id, object) in look.view.ids() {
            if !finalizer::is_borne_by(object) {
                continue;
            }
            let Some(waited) = finalizer::waits_since(object, now) else {
                continue;
            };
            match self.verdict(id, object, &mut published, waited).await {
                Verdict::Waits => continue,
                Verdict::Closed => {}
                Verdict::Late => {
                    tracing::warn!(
                        object = %id,
                        "it goes before its generations are known to be closed; they are closed when the ledger is there"
                    );
                    let event = Event {
                        type_: EventType::Warning,
                        reason: "ClosedLate".to_owned(),
                        note: Some("the deadline passed before the ledger had closed everything; it does so when it is there again".to_owned()),
                        action: "Delete".to_owned(),
                        secondary: None,
                    };
                    writer.tell(id, object, &event).await;
                }
            }
            match finalizer::remove(&api_of(&self.client, id), object).await {
                Ok(()) => {}
                Err(failure) if failure.is_overtaken() => {}
                Err(failure) => tracing::warn!(
                    object = %id,
                    reason = failure.reason,
                    error = failure.message,
                    "the finalizer could not be removed"
                ),
            }
        }
    }

    async fn verdict(
        &self,
        id: &ObjectId,
        object: &DynamicObject,
        published: &mut bool,
        waited: Duration,
    ) -> Verdict {
        if *published && let Some(closing) = closing(id, object) {
            match tokio::time::timeout(ANSWER, self.queries.still_open(&closing)).await {
                Ok(Ok(0)) => return Verdict::Closed,
                Ok(Ok(open)) => tracing::debug!(object = %id, open, "generations are being closed"),
                Ok(Err(_)) | Err(_) => {
                    tracing::debug!(object = %id, "the ledger does not say what is open");
                    *published = false;
                }
            }
        }
        if waited >= self.deadline {
            Verdict::Late
        } else {
            Verdict::Waits
        }
    }
}

fn closing(id: &ObjectId, object: &DynamicObject) -> Option<Closing> {
    let uid = ledger_uid(&object.uid()?);
    match id.kind {
        Kind::MCPServer => Some(Closing::Server(uid)),
        Kind::MCPSubject => Some(Closing::Subject(uid)),
        Kind::WatchedResource => Some(Closing::Watch(format!("{}/{}", id.namespace, id.name))),
        _ => None,
    }
}
