//! Where a server is, when its manifest names a Service or another operator's object.
//!
//! In: what the cluster has. Out: a URL, or why there is none yet. The table below is all that is known of other operators: a group
//! and kind, and where its objects say their address.

use fencepost_crds::{ServerAddressRef, ServiceRef};
use serde_json::Value;

use super::{
    problem::{Problem, ProblemReason},
    reference::{Referrer, is_granted},
};
use crate::manifest::{ClusterObjects, ObjectName, ObjectSet, Publisher};

/// How the objects of a kind say where their server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// A URL at this JSON pointer.
    Url(&'static str),
    /// A Service of the object's name, on `spec.deployment.port` and `spec.httpTransport.path`.
    OwnService,
}

/// A kind of another operator whose objects a `serverRef` may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherKind {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    /// Versions that are known to publish so, the one to ask for first in front.
    pub versions: &'static [&'static str],
    says: Says,
}

/// The kinds that are known.
pub const PUBLISHERS: [PublisherKind; 3] = [
    // kubernetes-sigs/mcp-lifecycle-operator: MCPServerStatus.address, filled when the server is verified.
    PublisherKind {
        group: "mcp.x-k8s.io",
        kind: "MCPServer",
        plural: "mcpservers",
        versions: &["v1beta1", "v1alpha1"],
        says: Says::Url("/status/address/url"),
    },
    // stacklok/toolhive: MCPServerStatus.url, the proxy's address.
    PublisherKind {
        group: "toolhive.stacklok.dev",
        kind: "MCPServer",
        plural: "mcpservers",
        versions: &["v1beta1", "v1alpha1"],
        says: Says::Url("/status/url"),
    },
    // kagent-dev/kmcp: no address in the status; a Service of the same name, also in front of stdio servers.
    PublisherKind {
        group: "kagent.dev",
        kind: "MCPServer",
        plural: "mcpservers",
        versions: &["v1alpha1"],
        says: Says::OwnService,
    },
];

/// Port that kmcp gives a server whose manifest names none.
const KMCP_PORT: u64 = 3000;

/// The address that a `service` means.
pub fn of_service(
    cluster: &ClusterObjects,
    from: Referrer<'_>,
    service: &ServiceRef,
) -> Result<String, Box<Problem>> {
    let namespace = &from.name.namespace;
    let name = ObjectName::new(namespace, &service.name);
    let Some(ports) = cluster.services.get(&name) else {
        return Err(from.problem(
            ProblemReason::ServiceNotFound,
            format!("there is no Service {name}"),
            "create the Service, or correct the name",
        ));
    };
    if !ports.contains(&service.port) {
        let there: Vec<String> = ports.iter().take(8).map(ToString::to_string).collect();
        return Err(from.problem(
            ProblemReason::ServiceNotFound,
            format!("Service {name} has no port {}", service.port),
            format!("give one of its ports: {}", there.join(", ")),
        ));
    }
    Ok(service_url(
        &name,
        &cluster.domain,
        u64::from(service.port),
        &service.path,
    ))
}

/// The address that a `serverRef` means.
pub fn of_publisher(
    objects: &ObjectSet,
    cluster: &ClusterObjects,
    from: Referrer<'_>,
    reference: &ServerAddressRef,
) -> Result<String, Box<Problem>> {
    let (group, version) = reference
        .api_version
        .split_once('/')
        .unwrap_or(("", &reference.api_version));
    let known = PUBLISHERS
        .iter()
        .find(|known| known.group == group && known.kind == reference.kind);
    let Some(known) = known else {
        let kinds: Vec<String> = PUBLISHERS
            .iter()
            .map(|known| format!("{} of {}", known.kind, known.group))
            .collect();
        return Err(from.problem(
            ProblemReason::AddressUnknown,
            format!(
                "where a {} of {} publishes its address is not known",
                reference.kind, reference.api_version
            ),
            format!(
                "give url or service instead, or refer to one of: {}",
                kinds.join(", ")
            ),
        ));
    };
    if !known.versions.contains(&version) {
        return Err(from.problem(
            ProblemReason::AddressUnknown,
            format!("{group} is not known to have the version {version}"),
            format!("write apiVersion: {group}/{}", known.versions[0]),
        ));
    }
    let namespace = reference
        .namespace
        .as_deref()
        .unwrap_or(&from.name.namespace);
    let name = ObjectName::new(namespace, &reference.name);
    if name.namespace != from.name.namespace
        && !is_granted(objects, from, (group, known.kind), &name)
    {
        // The same words whether or not the object exists.
        return Err(from.problem(
            ProblemReason::ReferenceNotGranted,
            format!("{} {name} is in another namespace, which does not allow it", known.kind),
            format!(
                "add a ReferenceGrant to namespace {namespace}: from {} of {}, to {} of group {group}",
                from.kind, from.name.namespace, known.kind
            ),
        ));
    }
    let publisher = Publisher {
        group: group.to_owned(),
        kind: known.kind.to_owned(),
        name,
    };
    let Some(object) = cluster.publishers.get(&publisher) else {
        let absent = cluster
            .absent_kinds
            .contains(&(group.to_owned(), known.kind.to_owned()));
        let message = if absent {
            format!("this cluster has no {} of {group}", known.kind)
        } else {
            format!("there is no {} {} of {group}", known.kind, publisher.name)
        };
        return Err(from.problem(
            ProblemReason::ServerNotFound,
            message,
            "create it, or correct the reference",
        ));
    };
    published(known, object, &publisher.name, &cluster.domain).ok_or_else(|| {
        from.problem(
            ProblemReason::AddressNotPublished,
            format!("{} {} publishes no address yet", known.kind, publisher.name),
            "wait until its operator has made it ready; if it stays so, look at that object's status",
        )
    })
}

fn published(
    known: &PublisherKind,
    object: &Value,
    name: &ObjectName,
    domain: &str,
) -> Option<String> {
    match known.says {
        Says::Url(pointer) => object
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
            .map(ToOwned::to_owned),
        Says::OwnService => {
            let port = object
                .pointer("/spec/deployment/port")
                .and_then(Value::as_u64)
                .filter(|port| (1..=65535).contains(port))
                .unwrap_or(KMCP_PORT);
            let path = object
                .pointer("/spec/httpTransport/path")
                .and_then(Value::as_str)
                .filter(|path| !path.is_empty())
                .unwrap_or("/mcp");
            Some(service_url(name, domain, port, path))
        }
    }
}

fn service_url(name: &ObjectName, domain: &str, port: u64, path: &str) -> String {
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!(
        "http://{}.{}.svc.{domain}:{port}{slash}{path}",
        name.name, name.namespace
    )
}
