//! `MCPServer`: where a server is, how it is spoken to, and how hard it may be asked.

use std::{collections::BTreeMap, fmt};

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, Duration, SecretKeyRef};

/// An MCP server whose resources are kept fresh.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "fencepost.dev",
    version = "v1alpha1",
    kind = "MCPServer",
    plural = "mcpservers",
    shortname = "mcps",
    category = "fencepost",
    namespaced,
    status = "MCPServerStatus",
    derive = "PartialEq",
    doc = "An MCP server whose resources are kept fresh.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Era", type_ = "string", json_path = ".status.era"),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.protocolVersion"
    ),
    printcolumn(name = "Sessions", type_ = "integer", json_path = ".status.sessions"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(
        name = "Server",
        type_ = "string",
        json_path = ".status.serverName",
        priority = 1
    ),
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url", priority = 1),
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
    "[has(self.url), has(self.serverRef), has(self.service), has(self.stdio)].exists_one(given, given)",
    "an address is given twice or not at all; give exactly one of url, serverRef, service and stdio"
))]
#[x_kube(validation = (
    "!has(self.tls) || !has(self.stdio)",
    "tls is given for a stdio server; remove tls, a child process has no TLS"
))]
pub struct MCPServerSpec {
    /// Address of the Streamable HTTP endpoint, `http` or `https`. No user name or password: credentials come from an
    /// `MCPSubject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = (
        "self.startsWith('http://') || self.startsWith('https://')",
        "the url is neither http nor https; write it as http://HOST:PORT/mcp or https://HOST/mcp"
    ))]
    #[x_kube(validation = (
        "!self.matches('^[a-z]+://[^/?#]*@')",
        "the url carries a user name or password; remove them and put the credential into an MCPSubject"
    ))]
    #[x_kube(validation = (
        "!self.contains('#')",
        "the url has a fragment; remove the # and what follows, it is never sent"
    ))]
    pub url: Option<String>,
    /// Another operator's object whose status publishes the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ref: Option<ServerAddressRef>,
    /// A Kubernetes Service that serves MCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceRef>,
    /// A command that speaks MCP over stdin and stdout. Only in `fencepost dev`, or where a flag allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdio: Option<StdioCommand>,
    /// Protocol era: `Auto` (find out), `Legacy` (an `initialize` session) or `Modern` (a `subscriptions/listen` stream).
    #[serde(default)]
    pub protocol: Protocol,
    /// TLS settings for an `https` address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// How hard this server may be asked, and how much of an answer is taken.
    #[serde(default)]
    pub limits: Limits,
    /// Close all sessions of this server and start none. What was accepted stays, and goes stale.
    #[serde(default)]
    pub suspend: bool,
}

/// Protocol era of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// Another operator's object whose status publishes an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerAddressRef {
    /// API version of the object, as in `toolhive.stacklok.dev/v1alpha1`.
    #[schemars(length(min = 1, max = 253))]
    pub api_version: String,
    /// Kind of the object.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; absent: the namespace of this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// A Service of the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRef {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Path of the endpoint.
    #[serde(default = "ServiceRef::default_path")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = ("self.startsWith('/')", "the path does not begin with a slash; write it as /mcp"))]
    pub path: String,
}

impl ServiceRef {
    fn default_path() -> String {
        "/mcp".to_owned()
    }
}

/// A child process that speaks MCP over stdin and stdout.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct StdioCommand {
    /// Program to start: a path, or a name found in `PATH`.
    #[schemars(length(min = 1, max = 1024))]
    pub command: String,
    /// Arguments, as they are; no shell reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment variables added to a minimal environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for StdioCommand {
    /// Names of the environment only: a value may be a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioCommand")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .finish()
    }
}

/// TLS settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Secret key that holds the PEM certificates to trust, in place of the built-in roots.
    pub ca_secret_ref: SecretKeyRef,
}

/// How hard a server may be asked, and how much of an answer is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Requests in flight at a time, over all sessions of this server.
    #[schemars(range(min = 1, max = 1024))]
    pub max_in_flight: u32,
    /// Requests a second, over all sessions of this server.
    #[schemars(range(min = 1, max = 10000))]
    pub requests_per_second: u32,
    /// Deadline of every request.
    pub request_timeout: Duration,
    /// Largest content of one resource, in bytes. A larger one is refused and the old version stays.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub max_content_bytes: u64,
    /// Subscriptions of one session. What is above is polled.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_subscriptions_per_session: u32,
    /// Pages of one listing. A listing with more is incomplete.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_pages: u32,
    /// Items of one listing. A listing with more is incomplete.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_items: u32,
    /// Longest time for one listing.
    pub scan_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_in_flight: 16,
            requests_per_second: 50,
            request_timeout: Duration::from_secs(10),
            max_content_bytes: 8 * 1024 * 1024,
            max_subscriptions_per_session: 1_000,
            max_pages: 10_000,
            max_items: 1_000_000,
            scan_timeout: Duration::from_secs(600),
        }
    }
}

/// What is known of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MCPServerStatus {
    /// `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Value of the annotation `fencepost.dev/reconcile-at` that was handled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Conditions: `Ready`, `Reconciling`, `Stalled`; others only when abnormal.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Era in use: `Legacy` or `Modern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// Negotiated protocol version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Name that the server gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Version that the server gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// Capabilities that the server offered, such as `resources.subscribe`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub capabilities: Vec<String>,
    /// Sessions open now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<i64>,
}
