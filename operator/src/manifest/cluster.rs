//! What only a cluster has: Services, and other operators' objects that say where a server is reached.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::object::ObjectName;

/// An object of another operator, of whatever version: group and kind stay when a version goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Publisher {
    pub group: String,
    pub kind: String,
    pub name: ObjectName,
}

/// Everything beside the manifests that an address may be looked up in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterObjects {
    /// DNS suffix of the cluster, as in `cluster.local`.
    pub domain: String,
    /// Services with the numbers of their ports.
    pub services: BTreeMap<ObjectName, BTreeSet<u16>>,
    /// `spec` and `status` of other operators' objects.
    pub publishers: BTreeMap<Publisher, Value>,
    /// Kinds, as (group, kind), that this cluster does not have.
    pub absent_kinds: BTreeSet<(String, String)>,
}
