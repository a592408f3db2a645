//! `ResourceCatalog`: what a server lists, scanned twice before it counts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, Duration, ObjectRef};

/// The listing of one server as one subject sees it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fencepost.dev",
    version = "v1alpha1",
    kind = "ResourceCatalog",
    plural = "resourcecatalogs",
    shortname = "rcat",
    category = "fencepost",
    namespaced,
    status = "ResourceCatalogStatus",
    derive = "PartialEq",
    doc = "The listing of one server as one subject sees it.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Server", type_ = "string", json_path = ".spec.serverRef.name"),
    printcolumn(name = "Proof", type_ = "string", json_path = ".status.proof"),
    printcolumn(name = "Count", type_ = "integer", json_path = ".status.count"),
    printcolumn(name = "Measured", type_ = "date", json_path = ".status.measuredAt"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Digest",
        type_ = "string",
        json_path = ".status.digest",
        priority = 1
    ),
    printcolumn(
        name = "Interval",
        type_ = "string",
        json_path = ".spec.interval",
        priority = 1
    ),
    printcolumn(
        name = "Suspended",
        type_ = "boolean",
        json_path = ".spec.suspend",
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
#[x_kube(validation = Rule::new("self.interval <= self.maxStaleness").message(
    "interval is longer than maxStaleness, so the bound could not hold; scan at least as often as maxStaleness"
).field_path(".interval"))]
pub struct ResourceCatalogSpec {
    /// The `MCPServer` that is listed.
    pub server_ref: ObjectRef,
    /// The `MCPSubject` on whose authority it is listed; absent: `anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_ref: Option<ObjectRef>,
    /// Time between two pairs of scans.
    #[serde(default = "ResourceCatalogSpec::default_interval")]
    pub interval: Duration,
    /// How old a published catalog may be.
    #[serde(default = "ResourceCatalogSpec::default_max_staleness")]
    pub max_staleness: Duration,
    /// Scan no more. What was published stays, and goes stale.
    #[serde(default)]
    pub suspend: bool,
}

impl ResourceCatalogSpec {
    fn default_interval() -> Duration {
        Duration::from_secs(600)
    }

    fn default_max_staleness() -> Duration {
        Duration::from_secs(1800)
    }
}

/// What is known of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceCatalogStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Value of the annotation `fencepost.dev/reconcile-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Conditions: `Ready`, `Reconciling`, `Stalled`; others, such as `SnapshotUnproven`, only when abnormal.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Whether the server proved that its pages were one snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Digest of the set of URIs and descriptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Number of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// When the first scan of the published pair began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
    /// When the published catalog stops to count as fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_after: Option<Time>,
    /// When the next pair of scans begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_review_at: Option<Time>,
    /// The last scans, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub last_scans: Vec<CatalogScan>,
}

/// Whether a catalog is proven to be one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Proof {
    #[serde(rename = "SNAPSHOT_UNPROVEN")]
    SnapshotUnproven,
    #[serde(rename = "SNAPSHOT_PROVEN")]
    SnapshotProven,
}

/// One walk over the listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogScan {
    /// When the first request was sent.
    pub started_at: Time,
    /// When the walk ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Pages read.
    pub pages: i64,
    /// What became of it, such as `complete`.
    pub outcome: String,
    /// Why it did not count, a stable upper-case word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
