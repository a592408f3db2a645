//! Derived indexes with their watches, keys and trust resolved.

use std::collections::BTreeSet;

use fencepost_crds::{DerivedIndexSpec, EventKind, IndexWatches};

use super::{
    ObjectKey,
    credential::{certificates, signing_keys},
    problem::{Problem, ProblemReason},
    reference::{Referrer, not_found, secret},
};
use crate::manifest::{Kind, ObjectName, ObjectSet, Secret};

/// The watches that an index follows, of its own namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchSelection {
    All,
    /// By name; may be empty, where labels match nothing.
    Named(BTreeSet<String>),
}

impl WatchSelection {
    /// Whether an event of this watch is for the index.
    pub fn contains(&self, watch: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(watch),
        }
    }
}

/// What an index is told with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub ca_pem: Option<Vec<u8>>,
    /// HMAC keys, decoded; each signs every event.
    pub signing_secrets: Vec<Secret>,
}

/// A consumer to tell. It is one as long as its object exists: what it is not told now, it is still owed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredIndex {
    pub key: ObjectKey,
    pub url: String,
    /// Or why it cannot be told, as its object's problem says.
    pub channel: Result<Channel, String>,
    pub watches: WatchSelection,
    pub events: Vec<EventKind>,
    pub include_content: bool,
    pub include_supersede: bool,
}

pub(super) fn indexes(objects: &ObjectSet, problems: &mut Vec<Problem>) -> Vec<DesiredIndex> {
    let mut found = Vec::with_capacity(objects.indexes.len());
    for (name, object) in &objects.indexes {
        let watches = selection(objects, name, object.spec.watches.as_ref(), problems);
        let channel = channel(objects, name, &object.spec, problems);
        found.push(DesiredIndex {
            key: ObjectKey::new(name, &object.uid),
            url: object.spec.webhook.url.clone(),
            channel,
            watches,
            events: object
                .spec
                .events
                .clone()
                .unwrap_or_else(|| EventKind::ALL.to_vec()),
            include_content: object.spec.include_content,
            include_supersede: object.spec.include_supersede,
        });
    }
    found
}

fn channel(
    objects: &ObjectSet,
    name: &ObjectName,
    spec: &DerivedIndexSpec,
    problems: &mut Vec<Problem>,
) -> Result<Channel, String> {
    let keys = signing(objects, name, spec, problems);
    let trust = ca(objects, name, spec);
    let mut untold = |problem: Box<Problem>| {
        let why = problem.message.clone();
        problems.push(*problem);
        why
    };
    match (keys.map_err(&mut untold), trust.map_err(&mut untold)) {
        (Ok(signing_secrets), Ok(ca_pem)) => Ok(Channel {
            ca_pem,
            signing_secrets,
        }),
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

fn selection(
    objects: &ObjectSet,
    name: &ObjectName,
    watches: Option<&IndexWatches>,
    problems: &mut Vec<Problem>,
) -> WatchSelection {
    let Some(watches) = watches else {
        return WatchSelection::All;
    };
    if let Some(labels) = &watches.match_labels {
        let matching = objects
            .watches
            .iter()
            .filter(|(watch, _)| watch.namespace == name.namespace)
            .filter(|(_, object)| {
                labels
                    .iter()
                    .all(|(label, value)| object.labels.get(label) == Some(value))
            })
            .map(|(watch, _)| watch.name.clone());
        return WatchSelection::Named(matching.collect());
    }
    let names = watches.names.as_deref().unwrap_or_default();
    for (index, watch) in names.iter().enumerate() {
        let watch = ObjectName::new(&name.namespace, watch);
        if !objects.watches.contains_key(&watch) {
            let field = format!("spec.watches.names[{index}]");
            let from = Referrer {
                kind: Kind::DerivedIndex,
                name,
                field: &field,
            };
            problems.push(*not_found(
                from,
                Kind::WatchedResource,
                &watch,
                objects.watches.keys().cloned(),
            ));
        }
    }
    WatchSelection::Named(names.iter().cloned().collect())
}

fn signing(
    objects: &ObjectSet,
    name: &ObjectName,
    spec: &DerivedIndexSpec,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Secret>, Box<Problem>> {
    let from = Referrer {
        kind: Kind::DerivedIndex,
        name,
        field: "spec.webhook.signingSecretRef",
    };
    let bytes = secret(objects, from, &spec.webhook.signing_secret_ref)?;
    let found = signing_keys(bytes).map_err(|unfit| {
        from.problem(
            ProblemReason::SigningSecretInvalid,
            unfit.message,
            unfit.fix,
        )
    })?;
    if found.weak {
        problems.push(*from.problem(
            ProblemReason::SigningSecretWeak,
            "the signing secret is shorter than the 24 bytes that Standard Webhooks asks for",
            "make a longer one: echo whsec_$(head -c 32 /dev/urandom | base64)",
        ));
    }
    Ok(found.keys)
}

fn ca(
    objects: &ObjectSet,
    name: &ObjectName,
    spec: &DerivedIndexSpec,
) -> Result<Option<Vec<u8>>, Box<Problem>> {
    let Some(reference) = &spec.webhook.ca_secret_ref else {
        return Ok(None);
    };
    let from = Referrer {
        kind: Kind::DerivedIndex,
        name,
        field: "spec.webhook.caSecretRef",
    };
    let bytes = secret(objects, from, reference)?;
    certificates(bytes)
        .map(Some)
        .map_err(|unfit| from.problem(ProblemReason::CertificateInvalid, unfit.message, unfit.fix))
}
