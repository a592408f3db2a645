//! `DerivedIndex`: a downstream consumer that must learn of every change and confirm it.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, SecretKeyRef};

/// A downstream consumer (search index, cache, agent host) that is told of every change.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fencepost.dev",
    version = "v1alpha1",
    kind = "DerivedIndex",
    plural = "derivedindexes",
    shortname = "dix",
    category = "fencepost",
    namespaced,
    status = "DerivedIndexStatus",
    derive = "PartialEq",
    doc = "A downstream consumer (search index, cache, agent host) that is told of every change.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Acknowledged",
        type_ = "integer",
        json_path = ".status.acknowledgedPosition"
    ),
    printcolumn(name = "Lag", type_ = "integer", json_path = ".status.lag"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Delivered",
        type_ = "integer",
        json_path = ".status.deliveredPosition",
        priority = 1
    ),
    printcolumn(
        name = "Open",
        type_ = "integer",
        json_path = ".status.obligationsOpen",
        priority = 1
    ),
    printcolumn(
        name = "Webhook",
        type_ = "string",
        json_path = ".spec.webhook.url",
        priority = 1
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct DerivedIndexSpec {
    /// Where events are sent.
    pub webhook: Webhook,
    /// The watches whose events are sent; absent: all of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<IndexWatches>,
    /// The kinds of events that are sent; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub events: Option<Vec<EventKind>>,
    /// Send the content itself with `resource.accepted`.
    #[serde(default)]
    pub include_content: bool,
    /// Send what changed, old and new, with `resource.accepted`.
    #[serde(default = "DerivedIndexSpec::default_include_supersede")]
    pub include_supersede: bool,
}

impl DerivedIndexSpec {
    fn default_include_supersede() -> bool {
        true
    }
}

/// Where events are sent: `CloudEvents` JSON, signed as Standard Webhooks says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Address that takes the events, `http` or `https`. A redirect is never followed.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = (
        "self.startsWith('http://') || self.startsWith('https://')",
        "the url is neither http nor https; write it as https://HOST/PATH"
    ))]
    #[x_kube(validation = (
        "!self.matches('^[a-z]+://[^/?#]*@')",
        "the url carries a user name or password; remove them, the receiver checks the signature"
    ))]
    #[x_kube(validation = (
        "!self.contains('#')",
        "the url has a fragment; remove the # and what follows, it is never sent"
    ))]
    pub url: String,
    /// Secret key that holds the signing secret: `whsec_` and base64, or at least 24 bytes of text. Several, separated by
    /// white space, sign side by side while one is replaced.
    pub signing_secret_ref: SecretKeyRef,
    /// Secret key that holds the PEM certificates to trust, in place of the built-in roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretKeyRef>,
}

/// Which watches of the namespace an index follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.names) != has(self.matchLabels)",
    "watches takes either names or matchLabels; give exactly one, or leave watches out to follow all"
))]
pub struct IndexWatches {
    /// `WatchedResource` objects by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub names: Option<Vec<String>>,
    /// `WatchedResource` objects that bear all of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1, "maxProperties" = 16))]
    pub match_labels: Option<BTreeMap<String, String>>,
}

/// Kind of an event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum EventKind {
    #[serde(rename = "resource.accepted")]
    ResourceAccepted,
    #[serde(rename = "resource.tombstoned")]
    ResourceTombstoned,
    #[serde(rename = "subject.revoked")]
    SubjectRevoked,
    #[serde(rename = "catalog.published")]
    CatalogPublished,
}

impl EventKind {
    pub const ALL: [Self; 4] = [
        Self::ResourceAccepted,
        Self::ResourceTombstoned,
        Self::SubjectRevoked,
        Self::CatalogPublished,
    ];

    /// The name in manifests and, behind `dev.fencepost.`, in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResourceAccepted => "resource.accepted",
            Self::ResourceTombstoned => "resource.tombstoned",
            Self::SubjectRevoked => "subject.revoked",
            Self::CatalogPublished => "catalog.published",
        }
    }
}

/// What is known of the index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DerivedIndexStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Value of the annotation `fencepost.dev/reconcile-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Conditions: `Ready`, `Reconciling`, `Stalled`; others, such as `RevocationPending`, only when abnormal.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Newest outbox position that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_position: Option<i64>,
    /// Newest outbox position up to which everything was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_position: Option<i64>,
    /// Events that wait for this index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// Revocations that this index did not acknowledge yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obligations_open: Option<i64>,
}
