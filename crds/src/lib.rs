//! The API types of `fencepost.dev/v1alpha1`, alone: what a manifest may say and what a status tells.
//!
//! In: nothing of ours. Out: one type per kind, the CRD YAML generated from them, and the rules (schema and CEL)
//! that the API server, `fencepost validate` and `fencepost dev` all apply. A rule is written once, on the field it is about;
//! a message names what is wrong, then `; `, then what to do.

// Each printer column repeats the keys of the one before; the lint takes them for one attribute.
#![allow(clippy::duplicated_attributes)]

mod condition;
mod derivedindex;
mod duration;
mod generate;
mod mcpserver;
mod mcpsubject;
mod reference;
mod resourcecatalog;
mod uri;
mod watchedresource;

pub use condition::Conditions;
pub use derivedindex::{
    DerivedIndex, DerivedIndexSpec, DerivedIndexStatus, EventKind, IndexWatches, Webhook,
};
pub use duration::{Duration, DurationError};
pub use generate::{CrdYamlError, all_crds_yaml, crd_files, crds};
pub use mcpserver::{
    Limits, MCPServer, MCPServerSpec, MCPServerStatus, Protocol, ServerAddressRef, ServiceRef,
    StdioCommand, Tls,
};
pub use mcpsubject::{MCPSubject, MCPSubjectSpec, MCPSubjectStatus, RevocationProgress};
pub use reference::{ObjectRef, SecretKeyRef};
pub use resourcecatalog::{
    CatalogScan, Proof, ResourceCatalog, ResourceCatalogSpec, ResourceCatalogStatus,
};
pub use uri::ResourceUri;
pub use watchedresource::{
    Content, DigestRules, Refresh, RefreshMode, ResourceSample, Rollout, RolloutStage,
    RolloutStatus, Select, WatchedResource, WatchedResourceSpec, WatchedResourceStatus,
};

/// API group of every kind here.
pub const GROUP: &str = "fencepost.dev";
/// The only version served so far.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` as a manifest writes it.
pub const API_VERSION: &str = "fencepost.dev/v1alpha1";
/// Annotation that asks for a reconcile now: any new value; it comes back in `status.lastHandledReconcileAt`.
pub const RECONCILE_AT: &str = "fencepost.dev/reconcile-at";
/// The subject that a missing `subjectRef` means. It exists in every namespace, declared or not.
pub const ANONYMOUS: &str = "anonymous";
