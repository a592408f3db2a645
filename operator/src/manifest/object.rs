//! The objects that were read, by kind and name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
};

use fencepost_crds::{
    DerivedIndexSpec, MCPServerSpec, MCPSubjectSpec, ResourceCatalogSpec, WatchedResourceSpec,
};
use serde::{Deserialize, Serialize};

use super::{
    cluster::ClusterObjects,
    field::FieldPath,
    kind::{Kind, ObjectId},
    position,
    secret::SecretData,
};

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    pub namespace: String,
    pub name: String,
}

impl ObjectName {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where an object was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    pub file: PathBuf,
    /// Number of the document within the file, from 1.
    pub document: usize,
    /// Line of the file at which `text` begins, from 1.
    pub(super) first_line: usize,
    /// Path of the object within its document: empty, or an item of a list.
    pub(super) base: FieldPath,
    pub(super) text: Arc<str>,
}

impl Origin {
    /// Line of a field of the object, or of the nearest enclosing one that stands on a line of its own.
    pub fn line_of(&self, field: &FieldPath) -> usize {
        self.first_line + position::line_of(&self.text, &self.base.join(field)).unwrap_or(0)
    }

    /// Of an object that a cluster holds: no file, no lines.
    pub fn cluster() -> Self {
        Self {
            file: PathBuf::new(),
            document: 0,
            first_line: 0,
            base: FieldPath::default(),
            text: Arc::from(""),
        }
    }

    /// Line at which the object begins.
    pub fn line(&self) -> usize {
        self.line_of(&FieldPath::default().key("apiVersion"))
    }
}

impl fmt::Debug for Origin {
    /// Without the text: it may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.file.display(), self.document)
    }
}

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest<T> {
    pub name: ObjectName,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    /// Those of `fencepost.dev/`.
    pub annotations: BTreeMap<String, String>,
    pub origin: Origin,
    pub spec: T,
}

/// What a `ReferenceGrant` allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceGrantSpec {
    pub from: Vec<ReferenceGrantFrom>,
    pub to: Vec<ReferenceGrantTo>,
}

/// Objects that may refer to the grant's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceGrantFrom {
    pub group: String,
    pub kind: String,
    pub namespace: String,
}

/// Objects of the grant's namespace that may be referred to; without a name all of the kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceGrantTo {
    pub group: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Objects of one kind.
pub type ByName<T> = BTreeMap<ObjectName, Manifest<T>>;

/// All objects, by kind and name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectSet {
    pub servers: ByName<MCPServerSpec>,
    pub subjects: ByName<MCPSubjectSpec>,
    pub watches: ByName<WatchedResourceSpec>,
    pub catalogs: ByName<ResourceCatalogSpec>,
    pub indexes: ByName<DerivedIndexSpec>,
    pub secrets: ByName<SecretData>,
    pub grants: ByName<ReferenceGrantSpec>,
    /// Absent: the objects come from files.
    pub cluster: Option<ClusterObjects>,
}

impl ObjectSet {
    pub fn len(&self) -> usize {
        self.ids().len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }

    /// Every object.
    pub fn ids(&self) -> BTreeSet<ObjectId> {
        Kind::ALL
            .into_iter()
            .flat_map(|kind| {
                self.origins(kind)
                    .into_iter()
                    .map(move |(name, _)| (kind, name))
            })
            .map(|(kind, name)| ObjectId::new(kind, &name.namespace, &name.name))
            .collect()
    }

    /// Where an object was written.
    pub fn origin(&self, id: &ObjectId) -> Option<&Origin> {
        let name = ObjectName::new(&id.namespace, &id.name);
        match id.kind {
            Kind::MCPServer => self.servers.get(&name).map(|object| &object.origin),
            Kind::MCPSubject => self.subjects.get(&name).map(|object| &object.origin),
            Kind::WatchedResource => self.watches.get(&name).map(|object| &object.origin),
            Kind::ResourceCatalog => self.catalogs.get(&name).map(|object| &object.origin),
            Kind::DerivedIndex => self.indexes.get(&name).map(|object| &object.origin),
            Kind::Secret => self.secrets.get(&name).map(|object| &object.origin),
            Kind::ReferenceGrant => self.grants.get(&name).map(|object| &object.origin),
        }
    }

    fn origins(&self, kind: Kind) -> Vec<(&ObjectName, &Origin)> {
        fn of<T>(objects: &ByName<T>) -> Vec<(&ObjectName, &Origin)> {
            objects
                .iter()
                .map(|(name, object)| (name, &object.origin))
                .collect()
        }
        match kind {
            Kind::MCPServer => of(&self.servers),
            Kind::MCPSubject => of(&self.subjects),
            Kind::WatchedResource => of(&self.watches),
            Kind::ResourceCatalog => of(&self.catalogs),
            Kind::DerivedIndex => of(&self.indexes),
            Kind::Secret => of(&self.secrets),
            Kind::ReferenceGrant => of(&self.grants),
        }
    }

    /// Takes all objects of another set on. One of the same name is replaced.
    pub fn absorb(&mut self, other: Self) {
        self.servers.extend(other.servers);
        self.subjects.extend(other.subjects);
        self.watches.extend(other.watches);
        self.catalogs.extend(other.catalogs);
        self.indexes.extend(other.indexes);
        self.secrets.extend(other.secrets);
        self.grants.extend(other.grants);
    }

    /// Adds those objects of `previous` that are missing here and that `keep` names by their place.
    pub(super) fn add_missing(&mut self, previous: &Self, keep: impl Fn(&Origin) -> bool) {
        fn add<T: Clone>(into: &mut ByName<T>, from: &ByName<T>, keep: impl Fn(&Origin) -> bool) {
            for (name, object) in from.iter().filter(|(_, object)| keep(&object.origin)) {
                into.entry(name.clone()).or_insert_with(|| object.clone());
            }
        }
        add(&mut self.servers, &previous.servers, &keep);
        add(&mut self.subjects, &previous.subjects, &keep);
        add(&mut self.watches, &previous.watches, &keep);
        add(&mut self.catalogs, &previous.catalogs, &keep);
        add(&mut self.indexes, &previous.indexes, &keep);
        add(&mut self.secrets, &previous.secrets, &keep);
        add(&mut self.grants, &previous.grants, &keep);
    }
}
