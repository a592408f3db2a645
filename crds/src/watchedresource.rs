//! `WatchedResource`: which resources of a server are kept fresh, how fresh, and what is kept of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, Duration, ObjectRef, ResourceUri};

/// Resources of one server that are kept fresh for one subject.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fencepost.dev",
    version = "v1alpha1",
    kind = "WatchedResource",
    plural = "watchedresources",
    shortname = "watch",
    category = "fencepost",
    namespaced,
    status = "WatchedResourceStatus",
    derive = "PartialEq",
    doc = "Resources of one server that are kept fresh for one subject.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Server", type_ = "string", json_path = ".spec.serverRef.name"),
    printcolumn(name = "Resources", type_ = "integer", json_path = ".status.resources"),
    printcolumn(name = "Converged", type_ = "string", json_path = ".status.converged"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Subject",
        type_ = "string",
        json_path = ".spec.subjectRef.name",
        priority = 1
    ),
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".spec.refresh.mode",
        priority = 1
    ),
    printcolumn(
        name = "Max staleness",
        type_ = "string",
        json_path = ".spec.refresh.maxStaleness",
        priority = 1
    ),
    printcolumn(
        name = "Rollout",
        type_ = "string",
        json_path = ".spec.rollout.stage",
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
#[x_kube(validation = (
    "(has(self.uris) && size(self.uris) > 0) || has(self.select)",
    "nothing is watched; name resources in uris, or choose them with select"
))]
pub struct WatchedResourceSpec {
    /// The `MCPServer` that has the resources.
    pub server_ref: ObjectRef,
    /// The `MCPSubject` on whose authority they are read; absent: `anonymous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_ref: Option<ObjectRef>,
    /// URIs to watch, exactly as the server names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20_000), extend("x-kubernetes-list-type" = "set"))]
    pub uris: Vec<ResourceUri>,
    /// Choice of resources over the server's catalog. What is given must all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// How the resources are kept fresh.
    #[serde(default)]
    pub refresh: Refresh,
    /// How far subscription-driven refresh is rolled out; absent: `Full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// What is kept of the content.
    #[serde(default)]
    pub content: Content,
    /// What counts as a change.
    #[serde(default)]
    pub digest: DigestRules,
    /// Close the subscriptions of this watch and start none. What was accepted stays, and goes stale.
    #[serde(default)]
    pub suspend: bool,
}

/// Choice of resources over a catalog; what is given must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.prefix) || has(self.mimeTypes) || has(self.matches)",
    "select is empty and would take everything; give at least one of prefix, mimeTypes and matches"
))]
pub struct Select {
    /// The URI begins with this, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub prefix: Option<String>,
    /// The listed MIME type is one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 255)))]
    pub mime_types: Option<Vec<String>>,
    /// The URI matches this regular expression (Rust `regex` syntax: RE2's, no look-around).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub matches: Option<String>,
}

/// How resources are kept fresh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.pollInterval) || self.pollInterval <= self.maxStaleness").message(
    "pollInterval is longer than maxStaleness, so the bound could not hold; poll at least as often as maxStaleness"
).field_path(".pollInterval"))]
pub struct Refresh {
    /// `Auto`: by subscription where the server offers it, else by polling. `Subscribe`: by subscription, and a condition
    /// where the server offers none. `Poll`: by polling.
    #[serde(default)]
    pub mode: RefreshMode,
    /// How old the accepted version may be without confirmation. Subscribed resources are read again at least this often.
    #[serde(default = "Refresh::default_max_staleness")]
    pub max_staleness: Duration,
    /// Time between two polls; absent: half of `maxStaleness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<Duration>,
    /// By how many percent an interval is shortened at random, so that reads spread out. Never lengthened: bounds hold.
    #[serde(default = "Refresh::default_jitter_percent")]
    #[schemars(range(min = 0, max = 50))]
    pub jitter_percent: u8,
}

impl Refresh {
    /// The poll interval in force: the one given, else half of the staleness bound.
    pub fn effective_poll_interval(&self) -> Duration {
        self.poll_interval
            .unwrap_or_else(|| self.max_staleness.half())
    }

    fn default_max_staleness() -> Duration {
        Duration::from_secs(60)
    }

    fn default_jitter_percent() -> u8 {
        10
    }
}

impl Default for Refresh {
    fn default() -> Self {
        Self {
            mode: RefreshMode::Auto,
            max_staleness: Self::default_max_staleness(),
            poll_interval: None,
            jitter_percent: Self::default_jitter_percent(),
        }
    }
}

/// By what a resource is kept fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RefreshMode {
    #[default]
    Auto,
    Subscribe,
    Poll,
}

/// How far subscription-driven refresh is rolled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "self.stage != 'Canary' || has(self.percent)",
    "a canary without a size; add percent, as in percent: 5"
))]
pub struct Rollout {
    /// `Shadow`: refresh comes from polling. `Canary`: `percent` of the resources are driven by subscription, the same ones
    /// each time; the others are polled. `Full`: all.
    pub stage: RolloutStage,
    /// Size of the canary, 0 to 100. A larger one contains every smaller one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<u8>,
}

/// Stage of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RolloutStage {
    Shadow,
    Canary,
    Full,
}

/// What is kept of the content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Content {
    /// Keep the content itself; otherwise only digests and receipts.
    pub store: bool,
    /// Versions whose content is kept, newest first. Receipts are kept longer.
    #[schemars(range(min = 1, max = 1000))]
    pub keep_versions: u32,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            store: true,
            keep_versions: 10,
        }
    }
}

/// What counts as a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DigestRules {
    /// JSON pointers (RFC 6901) of values that a change of does not count, such as an embedded timestamp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(validation = (
        "self.all(pointer, pointer.matches('^(/([^/~]|~[01])*)+$'))",
        "an entry is not a JSON pointer (RFC 6901); begin it with a slash, as in /generatedAt, and write ~ as ~0"
    ))]
    pub ignore_json_pointers: Vec<String>,
}

/// What is known of the watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchedResourceStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Value of the annotation `fencepost.dev/reconcile-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Conditions: `Ready`, `Reconciling`, `Stalled`; others, such as `ContentStale`, only when abnormal.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Resources watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<i64>,
    /// Resources by state, such as `ACTIVE: 30`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, i64>,
    /// Share of the resources that are converged, as in `30/30`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converged: Option<String>,
    /// Where the rollout stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    /// At most 20 resources, those that need attention first. Never all: a status stays small.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub sample: Vec<ResourceSample>,
}

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Stage in force.
    pub stage: RolloutStage,
    /// Percentage in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Why it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One resource, as a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSample {
    /// URI, cut at 512 characters.
    #[schemars(length(max = 512))]
    pub uri: String,
    /// State, such as `ACTIVE`.
    pub state: String,
    /// The accepted version is older than its bound allows.
    pub stale: bool,
    /// When the accepted version was last confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Time>,
}
