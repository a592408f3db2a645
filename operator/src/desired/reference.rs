//! References, resolved: within a namespace, or with a grant of the other one.

use std::collections::BTreeSet;

use fencepost_crds::{ObjectRef, SecretKeyRef};

use super::problem::{Problem, ProblemReason};
use crate::manifest::{Kind, ObjectId, ObjectName, ObjectSet, Secret};

/// The object and field that refers.
#[derive(Debug, Clone, Copy)]
pub struct Referrer<'a> {
    pub kind: Kind,
    pub name: &'a ObjectName,
    pub field: &'a str,
}

impl Referrer<'_> {
    pub fn id(&self) -> ObjectId {
        ObjectId::new(self.kind, &self.name.namespace, &self.name.name)
    }

    pub fn problem(
        &self,
        reason: ProblemReason,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Box<Problem> {
        Box::new(Problem::new(self.id(), self.field, reason, message, fix))
    }
}

/// The name that `reference` means, if it may be followed. Whether the object exists is not asked.
pub fn allowed(
    objects: &ObjectSet,
    from: Referrer<'_>,
    kind: Kind,
    reference: &ObjectRef,
) -> Result<ObjectName, Box<Problem>> {
    let namespace = reference
        .namespace
        .as_deref()
        .unwrap_or(&from.name.namespace);
    if namespace == from.name.namespace
        || is_granted(
            objects,
            from,
            (kind.group(), kind.as_str()),
            &ObjectName::new(namespace, &reference.name),
        )
    {
        return Ok(ObjectName::new(namespace, &reference.name));
    }
    // The same words whether or not the object exists: without a grant nothing of the other namespace is told.
    Err(from
        .problem(
            ProblemReason::ReferenceNotGranted,
            format!(
                "{kind} {namespace}/{} is in another namespace, which does not allow it",
                reference.name
            ),
            format!(
                "add a ReferenceGrant to namespace {namespace}: from {} of {}, to {kind}",
                from.kind, from.name.namespace
            ),
        )
        .about(ObjectId::new(kind, namespace, &reference.name)))
}

/// The problem of a reference that leads to nothing.
pub fn not_found(
    from: Referrer<'_>,
    kind: Kind,
    name: &ObjectName,
    known: impl Iterator<Item = ObjectName>,
) -> Box<Problem> {
    let reason = match kind {
        Kind::MCPServer => ProblemReason::ServerNotFound,
        Kind::MCPSubject => ProblemReason::SubjectNotFound,
        Kind::Secret => ProblemReason::SecretNotFound,
        _ => ProblemReason::WatchNotFound,
    };
    // A handful is enough to see a slip of the pen.
    let there: Vec<String> = known
        .filter(|other| other.namespace == name.namespace)
        .map(|other| other.name)
        .take(8)
        .collect();
    let fix = if there.is_empty() {
        format!("add the {kind}, or correct the name")
    } else {
        format!(
            "add the {kind}, or correct the name; there are: {}",
            there.join(", ")
        )
    };
    from.problem(reason, format!("there is no {kind} {name}"), fix)
        .about(ObjectId::new(kind, &name.namespace, &name.name))
}

/// The bytes of a Secret's key.
pub fn secret<'a>(
    objects: &'a ObjectSet,
    from: Referrer<'_>,
    reference: &SecretKeyRef,
) -> Result<&'a Secret, Box<Problem>> {
    let object = ObjectRef {
        name: reference.name.clone(),
        namespace: reference.namespace.clone(),
    };
    let name = allowed(objects, from, Kind::Secret, &object)?;
    let found = objects
        .secrets
        .get(&name)
        .ok_or_else(|| not_found(from, Kind::Secret, &name, objects.secrets.keys().cloned()))?;
    found.spec.0.get(&reference.key).ok_or_else(|| {
        let keys: Vec<&str> = found.spec.0.keys().map(String::as_str).take(8).collect();
        let there = if keys.is_empty() {
            "no keys at all".to_owned()
        } else {
            keys.join(", ")
        };
        from.problem(
            ProblemReason::SecretKeyNotFound,
            format!("Secret {name} has no key {:?}", reference.key),
            format!("add the key, or correct it; there are: {there}"),
        )
        .about(ObjectId::new(Kind::Secret, &name.namespace, &name.name))
    })
}

/// Every Secret that a manifest names and may name.
pub fn secrets_named(objects: &ObjectSet) -> BTreeSet<ObjectName> {
    let mut named = BTreeSet::new();
    let mut name = |kind, from: &ObjectName, reference: Option<&SecretKeyRef>| {
        let Some(reference) = reference else { return };
        let from = Referrer {
            kind,
            name: from,
            field: "",
        };
        let object = ObjectRef {
            name: reference.name.clone(),
            namespace: reference.namespace.clone(),
        };
        named.extend(allowed(objects, from, Kind::Secret, &object).ok());
    };
    for (from, object) in &objects.servers {
        let tls = object.spec.tls.as_ref();
        name(Kind::MCPServer, from, tls.map(|tls| &tls.ca_secret_ref));
    }
    for (from, object) in &objects.subjects {
        name(
            Kind::MCPSubject,
            from,
            object.spec.credential_secret_ref.as_ref(),
        );
    }
    for (from, object) in &objects.indexes {
        let webhook = &object.spec.webhook;
        name(Kind::DerivedIndex, from, Some(&webhook.signing_secret_ref));
        name(Kind::DerivedIndex, from, webhook.ca_secret_ref.as_ref());
    }
    named
}

/// Whether the namespace of `to` lets `from` refer to an object of that group and kind.
pub fn is_granted(
    objects: &ObjectSet,
    from: Referrer<'_>,
    (group, kind): (&str, &str),
    to: &ObjectName,
) -> bool {
    objects
        .grants
        .iter()
        .filter(|(grant, _)| grant.namespace == to.namespace)
        .any(|(_, grant)| {
            let comes_from = grant.spec.from.iter().any(|source| {
                source.group == from.kind.group()
                    && source.kind == from.kind.as_str()
                    && source.namespace == from.name.namespace
            });
            let leads_to = grant.spec.to.iter().any(|target| {
                target.group == group
                    && target.kind == kind
                    && target.name.as_deref().is_none_or(|only| only == to.name)
            });
            comes_from && leads_to
        })
}
