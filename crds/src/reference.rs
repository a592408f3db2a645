//! References from one object to another. Within a namespace unless a `ReferenceGrant` of the other one allows more.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Another object by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; absent: the namespace of this object. Another namespace has to allow it with a
    /// `ReferenceGrant` (gateway.networking.k8s.io/v1beta1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// One key of a `v1/Secret`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key within the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Namespace of the Secret; absent: the namespace of this object. Another namespace has to allow it with a
    /// `ReferenceGrant` (gateway.networking.k8s.io/v1beta1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}
