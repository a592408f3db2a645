//! The resources that are watched, and what is kept of them.

use kube::{Api, Client, api::DynamicObject, core::ApiResource};

use crate::{
    desired::{PUBLISHERS, PublisherKind},
    manifest::{Kind, ObjectId},
};

/// One resource of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// One of the five kinds.
    Ours(Kind),
    /// Metadata only: the content of those that a manifest names is read one by one.
    Secrets,
    Services,
    ReferenceGrants,
    /// Another operator's objects that publish an address.
    Publisher(&'static PublisherKind),
}

/// The kinds that Fencepost defines.
pub const OURS: [Kind; 5] = [
    Kind::MCPServer,
    Kind::MCPSubject,
    Kind::WatchedResource,
    Kind::ResourceCatalog,
    Kind::DerivedIndex,
];

/// The plural of a kind, as it stands in a path and in an RBAC rule.
pub const fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::MCPServer => "mcpservers",
        Kind::MCPSubject => "mcpsubjects",
        Kind::WatchedResource => "watchedresources",
        Kind::ResourceCatalog => "resourcecatalogs",
        Kind::DerivedIndex => "derivedindexes",
        Kind::Secret => "secrets",
        Kind::ReferenceGrant => "referencegrants",
    }
}

/// Where an object of ours is read and written.
pub fn api_of(client: &Client, id: &ObjectId) -> Api<DynamicObject> {
    Api::namespaced_with(
        client.clone(),
        &id.namespace,
        &Watched::Ours(id.kind).resource(),
    )
}

impl Watched {
    pub fn all() -> Vec<Self> {
        OURS.into_iter()
            .map(Self::Ours)
            .chain([Self::Secrets, Self::Services, Self::ReferenceGrants])
            .chain(PUBLISHERS.iter().map(Self::Publisher))
            .collect()
    }

    /// As the API server names it, in the version that is asked for first.
    pub fn resource(self) -> ApiResource {
        let (api_version, kind, plural) = match self {
            Self::Ours(kind) => (kind.api_version().to_owned(), kind.as_str(), plural(kind)),
            Self::Secrets => ("v1".to_owned(), "Secret", "secrets"),
            Self::Services => ("v1".to_owned(), "Service", "services"),
            Self::ReferenceGrants => (
                Kind::ReferenceGrant.api_version().to_owned(),
                Kind::ReferenceGrant.as_str(),
                plural(Kind::ReferenceGrant),
            ),
            Self::Publisher(kind) => (
                format!("{}/{}", kind.group, kind.versions[0]),
                kind.kind,
                kind.plural,
            ),
        };
        resource(&api_version, kind, plural)
    }

    /// The versions to try after the first.
    pub fn other_versions(self) -> Vec<ApiResource> {
        match self {
            Self::Publisher(kind) => kind.versions[1..]
                .iter()
                .map(|version| {
                    resource(&format!("{}/{version}", kind.group), kind.kind, kind.plural)
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A cluster may do without this kind; then there are simply no objects of it.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::ReferenceGrants | Self::Publisher(_))
    }

    /// `plural.group`, as in `mcpservers.fencepost.dev`; for logs, metrics and readiness.
    pub fn name(self) -> String {
        let resource = self.resource();
        if resource.group.is_empty() {
            resource.plural
        } else {
            format!("{}.{}", resource.plural, resource.group)
        }
    }
}

fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
