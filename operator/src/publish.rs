//! Desired state as the rows that the ledger keeps of it.

use fencepost_crds::EventKind;
use fencepost_store::{IndexRow, Published, PublisherEpoch, ServerRow, SubjectRow, WatchRow};
use fencepost_views::Condition;
use sha2::{Digest as _, Sha256};
use url::Url;
use uuid::Uuid;

use crate::{
    desired::{
        Desired, DesiredIndex, DesiredServer, DesiredWatch, Endpoint, Problem, WatchSelection,
        anonymous_uid,
    },
    manifest::{Kind, ObjectName},
};

/// By what right this process makes the ledger's objects those of the manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// No other process uses this database.
    Sole,
    /// This replica claimed it; the database refuses it once another did.
    Claimed(PublisherEpoch),
    /// Another replica publishes.
    Standby,
}

/// The uid of an object in the ledger. Kubernetes' own are UUIDs; another that a file gives is
/// digested into one (version 8 of RFC 9562), the same in every process.
pub fn ledger_uid(uid: &str) -> Uuid {
    Uuid::parse_str(uid).unwrap_or_else(|_| {
        let digest = Sha256::digest(format!("fencepost.dev/uid/{uid}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    })
}

/// All rows of what is desired.
pub fn rows(desired: &Desired) -> Published {
    Published {
        servers: desired.servers.iter().map(server).collect(),
        subjects: desired
            .subjects
            .iter()
            .map(|subject| SubjectRow {
                uid: ledger_uid(&subject.key.uid),
                namespace: subject.key.namespace.clone(),
                name: subject.key.name.clone(),
                anonymous: subject.key.uid == anonymous_uid(&subject.key.namespace),
                revoked: subject.revoked(),
            })
            .collect(),
        watches: desired
            .watches
            .iter()
            .map(|watch| watch_row(watch, &desired.problems))
            .collect(),
        indexes: desired.indexes.iter().map(index).collect(),
    }
}

fn server(server: &DesiredServer) -> ServerRow {
    ServerRow {
        uid: ledger_uid(&server.key.uid),
        namespace: server.key.namespace.clone(),
        name: server.key.name.clone(),
        address: match &server.endpoint {
            Endpoint::Http { url, .. } => shown_url(url),
            Endpoint::Stdio { command, .. } => format!("stdio: {command}"),
        },
        protocol: format!("{:?}", server.protocol),
    }
}

fn watch_row(watch: &DesiredWatch, problems: &[Problem]) -> WatchRow {
    let now = chrono::Utc::now();
    let conditions = problems
        .iter()
        .filter(|problem| {
            problem.object.kind == Kind::WatchedResource
                && problem.object.namespace == watch.key.namespace
                && problem.object.name == watch.key.name
        })
        .map(|problem| Condition {
            kind: problem.reason.as_str().to_owned(),
            reason: problem.reason.as_str().to_owned(),
            message: format!("{}: {}; {}", problem.field, problem.message, problem.fix),
            since: now,
        })
        .collect();
    let reference =
        |name: &ObjectName| serde_json::json!({"namespace": name.namespace, "name": name.name});
    WatchRow {
        uid: ledger_uid(&watch.key.uid),
        namespace: watch.key.namespace.clone(),
        name: watch.key.name.clone(),
        server_uid: watch.server.as_ref().map(|key| ledger_uid(&key.uid)),
        subject_uid: watch.subject.as_ref().map(|key| ledger_uid(&key.uid)),
        shown: serde_json::json!({
            "server": reference(&watch.declared.server),
            "subject": reference(&watch.declared.subject),
            "mode": format!("{:?}", watch.declared.mode),
            "maxStalenessSeconds": watch.declared.max_staleness.as_secs_f64(),
            "pollIntervalSeconds": watch.declared.poll_interval.as_secs_f64(),
            "stage": format!("{:?}", watch.declared.stage),
            "percent": watch.declared.percent,
            "suspended": watch.declared.suspended,
        }),
        conditions,
    }
}

fn index(index: &DesiredIndex) -> IndexRow {
    let namespace = &index.key.namespace;
    IndexRow {
        uid: ledger_uid(&index.key.uid),
        namespace: namespace.clone(),
        name: index.key.name.clone(),
        url: shown_url(&index.url),
        watches: match &index.watches {
            WatchSelection::All => None,
            WatchSelection::Named(names) => Some(
                names
                    .iter()
                    .map(|name| format!("{namespace}/{name}"))
                    .collect(),
            ),
        },
        events: (index.events.len() < EventKind::ALL.len()).then(|| {
            index
                .events
                .iter()
                .map(|kind| kind.as_str().to_owned())
                .collect()
        }),
        include_content: index.include_content,
        include_supersede: index.include_supersede,
    }
}

/// A URL without what may be a secret: credentials, query, fragment.
fn shown_url(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "(not a URL)".to_owned();
    };
    // Fails only for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}
