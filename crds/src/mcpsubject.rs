//! `MCPSubject`: on whose authority resources are read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, SecretKeyRef};

/// The identity on whose authority resources are read.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fencepost.dev",
    version = "v1alpha1",
    kind = "MCPSubject",
    plural = "mcpsubjects",
    shortname = "mcpsub",
    category = "fencepost",
    namespaced,
    status = "MCPSubjectStatus",
    derive = "PartialEq",
    doc = "The identity on whose authority resources are read.",
    validation = Rule::new("self.metadata.name != 'anonymous' || !has(self.spec.credentialSecretRef)").message(
        "the subject named anonymous stands for reading without a credential; remove credentialSecretRef or give it another name"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Revoked", type_ = "boolean", json_path = ".spec.revoked"),
    printcolumn(name = "Last used", type_ = "date", json_path = ".status.lastUsed"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.epoch", priority = 1),
    printcolumn(name = "Open", type_ = "integer", json_path = ".status.revocation.obligationsOpen", priority = 1),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MCPSubjectSpec {
    /// Secret key that holds the credential; absent: anonymous. When the Secret or the key goes away, the permission counts
    /// as withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_secret_ref: Option<SecretKeyRef>,
    /// Header that carries the credential. `Authorization` sends `Bearer <credential>`, any other header the credential as
    /// it is.
    #[serde(default = "MCPSubjectSpec::default_header")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = (
        "self.matches('^[A-Za-z0-9!#$%&*+.^_|~-]+$')",
        "this is no header name; write letters, digits and hyphens, as in Authorization or X-Api-Key"
    ))]
    #[x_kube(validation = (
        "!(self.lowerAscii() in ['accept', 'connection', 'content-length', 'content-type', 'host', 'last-event-id', 'mcp-protocol-version', 'mcp-session-id', 'transfer-encoding'])",
        "this header belongs to the protocol; use Authorization or the header that the server documents for its key"
    ))]
    pub header: String,
    /// Withdraw the permission: close the subject's sessions and serve none of its content any more.
    #[serde(default)]
    pub revoked: bool,
}

impl MCPSubjectSpec {
    fn default_header() -> String {
        "Authorization".to_owned()
    }
}

impl Default for MCPSubjectSpec {
    fn default() -> Self {
        Self {
            credential_secret_ref: None,
            header: Self::default_header(),
            revoked: false,
        }
    }
}

/// What is known of the subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MCPSubjectStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Value of the annotation `fencepost.dev/reconcile-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Conditions: `Ready`, `Reconciling`, `Stalled`; others, such as `RevocationPending`, only when abnormal.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Authorization epoch; rises with each withdrawal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// When a request last carried this subject's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Time>,
    /// How far the newest withdrawal is; absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation: Option<RevocationProgress>,
}

/// How far a withdrawal is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevocationProgress {
    /// When the withdrawal was first observed.
    pub observed_at: Time,
    /// When the last derived index had acknowledged it; absent: one is still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Derived indexes that ever received a version of this subject.
    pub obligations: i64,
    /// Those of them that did not acknowledge yet.
    pub obligations_open: i64,
}
