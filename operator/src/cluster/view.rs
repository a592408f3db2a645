//! What the watches show, as the objects that desired state is made of.
//!
//! In: objects as the API server has them. Out: an [`ObjectSet`], checked as files are. An object that is being deleted is no longer
//! in it; one that cannot be used keeps its last usable form and says what is wrong.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kube::{ResourceExt as _, api::DynamicObject};
use serde_json::{Value, json};

use super::{
    finalizer,
    secrets::Seen,
    watched::{OURS, Watched},
};
use crate::manifest::{
    ClusterObjects, Kind, ObjectId, ObjectName, ObjectSet, Origin, Publisher, Schemas, Violation,
    check,
};

/// Objects of one look.
#[derive(Default)]
pub struct View {
    pub objects: ObjectSet,
    /// Every object of the five kinds, also those that are being deleted or cannot be used.
    pub seen: BTreeMap<ObjectId, Arc<DynamicObject>>,
    /// Why an object cannot be used as it stands.
    pub unusable: BTreeMap<ObjectId, Vec<Violation>>,
    pub secrets: BTreeMap<ObjectName, Seen>,
}

/// What identifies the part of an object that is read: everything else may change as it likes.
#[derive(PartialEq)]
struct Read {
    uid: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Reads objects, and remembers those that did not change: checking one costs more than all the rest.
pub struct Reader {
    schemas: Schemas,
    domain: String,
    known: HashMap<ObjectId, (Read, Result<ObjectSet, Vec<Violation>>)>,
    /// The last usable form.
    usable: HashMap<ObjectId, (String, ObjectSet)>,
}

impl Reader {
    pub fn new(domain: String) -> Self {
        Self {
            schemas: Schemas::compile(),
            domain,
            known: HashMap::new(),
            usable: HashMap::new(),
        }
    }

    /// `objects`: what each watch shows; `absent`: kinds that the cluster does not have.
    pub fn read(
        &mut self,
        objects: &[(Watched, Vec<Arc<DynamicObject>>)],
        absent: &[Watched],
    ) -> View {
        let mut view = View::default();
        let mut cluster = ClusterObjects {
            domain: self.domain.clone(),
            ..ClusterObjects::default()
        };
        for watched in absent {
            if let Watched::Publisher(kind) = watched {
                cluster
                    .absent_kinds
                    .insert((kind.group.to_owned(), kind.kind.to_owned()));
            }
        }
        for (watched, objects) in objects {
            for object in objects {
                self.take(*watched, object, &mut view, &mut cluster);
            }
        }
        self.known.retain(|id, _| match id.kind {
            Kind::ReferenceGrant => view
                .objects
                .grants
                .contains_key(&ObjectName::new(&id.namespace, &id.name)),
            _ => view.seen.contains_key(id),
        });
        self.usable.retain(|id, _| view.seen.contains_key(id));
        view.objects.cluster = Some(cluster);
        view
    }

    fn take(
        &mut self,
        watched: Watched,
        object: &Arc<DynamicObject>,
        view: &mut View,
        cluster: &mut ClusterObjects,
    ) {
        let name = ObjectName::new(&object.namespace().unwrap_or_default(), &object.name_any());
        match watched {
            Watched::Ours(kind) => self.ours(kind, &name, object, view),
            Watched::ReferenceGrants => {
                let id = ObjectId::new(Kind::ReferenceGrant, &name.namespace, &name.name);
                if let Ok(read) = self.checked(&id, object) {
                    view.objects.absorb(read);
                }
            }
            Watched::Secrets => {
                let seen = Seen {
                    uid: object.uid().unwrap_or_default(),
                    version: object.resource_version().unwrap_or_default(),
                };
                view.secrets.insert(name, seen);
            }
            Watched::Services => {
                let ports = object.data["spec"]["ports"]
                    .as_array()
                    .into_iter()
                    .flatten();
                let numbers = ports
                    .filter_map(|port| u16::try_from(port["port"].as_u64()?).ok())
                    .collect();
                cluster.services.insert(name, numbers);
            }
            Watched::Publisher(kind) => {
                let publisher = Publisher {
                    group: kind.group.to_owned(),
                    kind: kind.kind.to_owned(),
                    name,
                };
                let said = json!({"spec": object.data["spec"], "status": object.data["status"]});
                cluster.publishers.insert(publisher, said);
            }
        }
    }

    fn ours(
        &mut self,
        kind: Kind,
        name: &ObjectName,
        object: &Arc<DynamicObject>,
        view: &mut View,
    ) {
        let id = ObjectId::new(kind, &name.namespace, &name.name);
        view.seen.insert(id.clone(), Arc::clone(object));
        let counts = object.metadata.deletion_timestamp.is_none()
            && (!finalizer::has_one(kind) || finalizer::is_borne_by(object));
        if !counts {
            return;
        }
        match self.checked(&id, object) {
            Ok(read) => view.objects.absorb(read),
            Err(violations) => {
                if let Some((known, last)) = self.usable.get(&id)
                    && *known == object.uid().unwrap_or_default()
                {
                    view.objects.absorb(last.clone());
                }
                view.unusable.insert(id, violations);
            }
        }
    }

    fn checked(
        &mut self,
        id: &ObjectId,
        object: &DynamicObject,
    ) -> Result<ObjectSet, Vec<Violation>> {
        let read = Read {
            uid: object.uid(),
            generation: object.metadata.generation,
            labels: object.metadata.labels.clone(),
            annotations: object.metadata.annotations.clone(),
        };
        if let Some((known, result)) = self.known.get(id)
            && *known == read
        {
            return result.clone();
        }
        let result = self.check(id, object);
        if let Ok(usable) = &result {
            let uid = object.uid().unwrap_or_default();
            self.usable.insert(id.clone(), (uid, usable.clone()));
        }
        self.known.insert(id.clone(), (read, result.clone()));
        result
    }

    fn check(&self, id: &ObjectId, object: &DynamicObject) -> Result<ObjectSet, Vec<Violation>> {
        // Only what a person writes: a status of another version must not make an object unusable.
        let value = json!({
            "apiVersion": id.kind.api_version(),
            "kind": id.kind.as_str(),
            "metadata": {
                "name": id.name,
                "namespace": id.namespace,
                "uid": object.metadata.uid,
                "labels": object.metadata.labels.clone().unwrap_or_default(),
                "annotations": object.metadata.annotations.clone().unwrap_or_default(),
            },
            "spec": object.data.get("spec").cloned().unwrap_or(Value::Null),
        });
        let checked = check(value, &self.schemas).map_err(|unusable| unusable.violations)?;
        let uid = checked.uid.clone().unwrap_or_default();
        let mut set = ObjectSet::default();
        checked
            .into_set(uid, Origin::cluster(), &mut set)
            .map_err(|violation| vec![violation])?;
        Ok(set)
    }
}

impl View {
    /// The kinds in the order that they are reported in.
    pub fn ids(&self) -> impl Iterator<Item = (&ObjectId, &Arc<DynamicObject>)> {
        OURS.into_iter()
            .flat_map(|kind| self.seen.iter().filter(move |(id, _)| id.kind == kind))
    }
}
