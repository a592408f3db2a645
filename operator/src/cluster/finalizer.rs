//! The finalizer: an object goes when its generations are closed, each with its receipts.
//!
//! Kinds on whose behalf generations are opened have one. An object counts from the moment that it bears the finalizer, so that
//! nothing is ever opened for one that could vanish without a word.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::failure::Failure;
use crate::manifest::Kind;

/// Written to `metadata.finalizers`.
pub const FINALIZER: &str = "fencepost.dev/close-generations";

/// Whether generations are opened on behalf of objects of this kind.
pub const fn has_one(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MCPServer | Kind::MCPSubject | Kind::WatchedResource
    )
}

pub fn is_borne_by(object: &DynamicObject) -> bool {
    object.finalizers().iter().any(|name| name == FINALIZER)
}

/// Writes it. The uid and the version make sure that it is the object that was seen, unchanged.
pub async fn add(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<(), Failure> {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    write(api, object, &finalizers).await
}

/// Lets the object go.
pub async fn remove(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<(), Failure> {
    let finalizers: Vec<String> = object
        .finalizers()
        .iter()
        .filter(|name| *name != FINALIZER)
        .cloned()
        .collect();
    write(api, object, &finalizers).await
}

async fn write(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    finalizers: &[String],
) -> Result<(), Failure> {
    let patch = json!({"metadata": {
        "uid": object.metadata.uid,
        "resourceVersion": object.metadata.resource_version,
        "finalizers": finalizers,
    }});
    api.patch(
        &object.name_any(),
        &PatchParams::default(),
        &Patch::Merge(&patch),
    )
    .await
    .map(drop)
    .map_err(|error| Failure::of(&error))
}

/// How long the object has been waiting for its finalizers.
pub fn waits_since(object: &DynamicObject, now: Timestamp) -> Option<Duration> {
    let deleted = object.metadata.deletion_timestamp.as_ref()?.0;
    Some(Duration::try_from(now.duration_since(deleted)).unwrap_or_default())
}
