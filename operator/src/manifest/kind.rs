//! The kinds that are read, and the identity of an object.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A kind that Fencepost reads from files. `Ord` is the order of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    MCPServer,
    MCPSubject,
    WatchedResource,
    ResourceCatalog,
    DerivedIndex,
    Secret,
    ReferenceGrant,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::MCPServer,
        Self::MCPSubject,
        Self::WatchedResource,
        Self::ResourceCatalog,
        Self::DerivedIndex,
        Self::Secret,
        Self::ReferenceGrant,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MCPServer => "MCPServer",
            Self::MCPSubject => "MCPSubject",
            Self::WatchedResource => "WatchedResource",
            Self::ResourceCatalog => "ResourceCatalog",
            Self::DerivedIndex => "DerivedIndex",
            Self::Secret => "Secret",
            Self::ReferenceGrant => "ReferenceGrant",
        }
    }

    /// The `apiVersion` that goes with it.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Secret => "v1",
            Self::ReferenceGrant => "gateway.networking.k8s.io/v1beta1",
            _ => fencepost_crds::API_VERSION,
        }
    }

    /// The API group as a `ReferenceGrant` names it; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Secret => "",
            Self::ReferenceGrant => "gateway.networking.k8s.io",
            _ => fencepost_crds::GROUP,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(())
    }
}

/// An object by kind and name; written `Kind namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

impl ObjectId {
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
