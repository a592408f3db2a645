//! Sessions: one for each server and subject, with the resources that all watches of the pair ask for.
//!
//! Several watches may name one URI. It is read once, as strictly as the strictest of them asks.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use fencepost_crds::{
    ANONYMOUS, ObjectRef, RECONCILE_AT, RefreshMode, Rollout, RolloutStage, WatchedResourceSpec,
};
use iri_string::types::UriStr;

use super::{
    DesiredServer, DesiredSubject, ObjectKey,
    cohort::{bucket, in_cohort},
    problem::{Problem, ProblemReason},
    reference::{Referrer, allowed, not_found},
};
use crate::manifest::{ByName, Kind, ObjectName, ObjectSet};

/// A declared watch, also one that is suspended or whose references lead nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredWatch {
    pub key: ObjectKey,
    /// The server and the subject, where the references lead to them.
    pub server: Option<ObjectKey>,
    pub subject: Option<ObjectKey>,
    /// How many resources it names.
    pub resources: usize,
    pub declared: DeclaredWatch,
}

/// What a watch asks for, with its defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredWatch {
    pub server: ObjectName,
    pub subject: ObjectName,
    pub mode: RefreshMode,
    pub max_staleness: Duration,
    pub poll_interval: Duration,
    pub stage: RolloutStage,
    pub percent: u32,
    pub suspended: bool,
}

/// One connection to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSession {
    pub server: ObjectKey,
    pub subject: ObjectKey,
    /// Ordered by URI, each once.
    pub resources: Vec<DesiredResource>,
}

/// One resource to keep fresh, with the strictest demands of its watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredResource {
    /// The bytes that go on the wire.
    pub uri: String,
    /// RFC 3986 normal form; absent where the URI does not parse. It detects ambiguity and never merges.
    pub uri_normal: Option<String>,
    /// The mode after the rollout: what is outside the cohort is polled.
    pub mode: RefreshMode,
    /// The rollout takes this resource.
    pub cohort: bool,
    pub max_staleness: Duration,
    pub poll_interval: Duration,
    /// By how many percent intervals are shortened at most.
    pub jitter_percent: u8,
    pub watches: Vec<ObjectKey>,
    pub store: bool,
    pub keep_versions: u32,
    pub ignore_json_pointers: Vec<String>,
    /// What the reconcile-now annotations of its watches say, in their order: another value asks for a read now.
    pub reconcile_at: Vec<String>,
}

type Pair = (ObjectKey, ObjectKey);

pub(super) fn sessions(
    objects: &ObjectSet,
    servers: &[DesiredServer],
    subjects: &mut Vec<DesiredSubject>,
    problems: &mut Vec<Problem>,
) -> (Vec<DesiredWatch>, Vec<DesiredSession>) {
    let mut watches = Vec::new();
    let mut pairs: BTreeMap<Pair, BTreeMap<String, DesiredResource>> = BTreeMap::new();
    for (name, object) in &objects.watches {
        let field = |field| Referrer {
            kind: Kind::WatchedResource,
            name,
            field,
        };
        if object.spec.select.is_some() {
            let id = field("spec.select").id();
            problems.push(*Problem::not_acted_on(
                id,
                "spec.select",
                "nothing is chosen from a catalog; name the resources in uris",
            ));
        }
        let server = server(
            objects,
            field("spec.serverRef"),
            &object.spec.server_ref,
            problems,
        );
        let subject = subject(
            objects,
            field("spec.subjectRef"),
            object.spec.subject_ref.as_ref(),
            subjects,
            problems,
        );
        let watch = ObjectKey::new(name, &object.uid);
        watches.push(DesiredWatch {
            key: watch.clone(),
            server: server.clone(),
            subject: subject.as_ref().map(|(key, _)| key.clone()),
            resources: object.spec.uris.len(),
            declared: declared(name, &object.spec),
        });
        let (Some(server), Some((subject, revoked))) = (server, subject) else {
            continue;
        };
        // A server whose address is unresolved has a problem of its own.
        let Some(server) = servers.iter().find(|desired| desired.key == server) else {
            continue;
        };
        if object.spec.suspend || object.spec.uris.is_empty() {
            continue;
        }
        if server.suspend || revoked {
            continue;
        }
        // Asking a server or a subject to be looked at again asks for all that is read of it.
        let asks = [
            object.annotations.get(RECONCILE_AT),
            annotation(&objects.servers, &server.key),
            annotation(&objects.subjects, &subject),
        ];
        let reconcile_at: Vec<String> = asks.into_iter().flatten().cloned().collect();
        let resources = pairs
            .entry((server.key.clone(), subject.clone()))
            .or_default();
        for (index, uri) in object.spec.uris.iter().enumerate() {
            let mut asked = resource(&server.key, &subject, &watch, uri.as_str(), &object.spec);
            asked.reconcile_at.clone_from(&reconcile_at);
            match resources.get_mut(uri.as_str()) {
                None => drop(resources.insert(uri.0.clone(), asked)),
                Some(known) => {
                    if known.mode != asked.mode {
                        let field = format!("spec.uris[{index}]");
                        problems.push(*modes_differ(
                            Referrer {
                                kind: Kind::WatchedResource,
                                name,
                                field: &field,
                            },
                            known,
                            &asked,
                        ));
                    }
                    known.merge(asked);
                }
            }
        }
    }
    let sessions: Vec<DesiredSession> = pairs
        .into_iter()
        .map(|((server, subject), resources)| DesiredSession {
            server,
            subject,
            resources: resources.into_values().collect(),
        })
        .collect();
    for session in &sessions {
        ambiguities(objects, session, problems);
    }
    (watches, sessions)
}

fn annotation<'a, T>(objects: &'a ByName<T>, key: &ObjectKey) -> Option<&'a String> {
    objects
        .get(&ObjectName::new(&key.namespace, &key.name))
        .and_then(|object| object.annotations.get(RECONCILE_AT))
}

fn server(
    objects: &ObjectSet,
    from: Referrer<'_>,
    reference: &ObjectRef,
    problems: &mut Vec<Problem>,
) -> Option<ObjectKey> {
    let found = allowed(objects, from, Kind::MCPServer, reference).and_then(|name| {
        match objects.servers.get(&name) {
            Some(object) => Ok(ObjectKey::new(&name, &object.uid)),
            None => Err(not_found(
                from,
                Kind::MCPServer,
                &name,
                objects.servers.keys().cloned(),
            )),
        }
    });
    found.map_err(|problem| problems.push(*problem)).ok()
}

/// The subject of a watch and whether its permission is withdrawn. An undeclared anonymous one comes into being here.
fn subject(
    objects: &ObjectSet,
    from: Referrer<'_>,
    reference: Option<&ObjectRef>,
    subjects: &mut Vec<DesiredSubject>,
    problems: &mut Vec<Problem>,
) -> Option<(ObjectKey, bool)> {
    let anonymous = ObjectRef {
        name: ANONYMOUS.to_owned(),
        namespace: None,
    };
    let name = allowed(
        objects,
        from,
        Kind::MCPSubject,
        reference.unwrap_or(&anonymous),
    );
    let name = name.map_err(|problem| problems.push(*problem)).ok()?;
    let place = subjects.binary_search_by(|subject| {
        (&subject.key.namespace, &subject.key.name).cmp(&(&name.namespace, &name.name))
    });
    let place = match place {
        Ok(place) => place,
        Err(place) if name.name == ANONYMOUS => {
            subjects.insert(place, DesiredSubject::anonymous(&name.namespace));
            place
        }
        Err(_) => {
            problems.push(*not_found(
                from,
                Kind::MCPSubject,
                &name,
                objects.subjects.keys().cloned(),
            ));
            return None;
        }
    };
    Some((subjects[place].key.clone(), subjects[place].revoked()))
}

fn resource(
    server: &ObjectKey,
    subject: &ObjectKey,
    watch: &ObjectKey,
    uri: &str,
    spec: &WatchedResourceSpec,
) -> DesiredResource {
    let cohort = match &spec.rollout {
        None
        | Some(Rollout {
            stage: RolloutStage::Full,
            ..
        }) => true,
        Some(Rollout {
            stage: RolloutStage::Shadow,
            ..
        }) => false,
        Some(Rollout {
            stage: RolloutStage::Canary,
            percent,
        }) => in_cohort(bucket(&server.uid, &subject.uid, uri), percent.unwrap_or(0)),
    };
    DesiredResource {
        uri: uri.to_owned(),
        uri_normal: normal_form(uri),
        mode: if cohort {
            spec.refresh.mode
        } else {
            RefreshMode::Poll
        },
        cohort,
        max_staleness: spec.refresh.max_staleness.get(),
        poll_interval: spec.refresh.effective_poll_interval().get(),
        jitter_percent: spec.refresh.jitter_percent,
        watches: vec![watch.clone()],
        store: spec.content.store,
        keep_versions: spec.content.keep_versions,
        ignore_json_pointers: spec.digest.ignore_json_pointers.clone(),
        reconcile_at: Vec::new(),
    }
}

fn declared(name: &ObjectName, spec: &WatchedResourceSpec) -> DeclaredWatch {
    let named = |reference: &ObjectRef| {
        ObjectName::new(
            reference.namespace.as_deref().unwrap_or(&name.namespace),
            &reference.name,
        )
    };
    let (stage, percent) = match &spec.rollout {
        Some(Rollout {
            stage: RolloutStage::Shadow,
            ..
        }) => (RolloutStage::Shadow, 0),
        Some(Rollout {
            stage: RolloutStage::Canary,
            percent,
        }) => (RolloutStage::Canary, percent.unwrap_or(0).into()),
        None | Some(Rollout { .. }) => (RolloutStage::Full, 100),
    };
    DeclaredWatch {
        server: named(&spec.server_ref),
        subject: spec
            .subject_ref
            .as_ref()
            .map_or_else(|| ObjectName::new(&name.namespace, ANONYMOUS), named),
        mode: spec.refresh.mode,
        max_staleness: spec.refresh.max_staleness.get(),
        poll_interval: spec.refresh.effective_poll_interval().get(),
        stage,
        percent,
        suspended: spec.suspend,
    }
}

impl DesiredResource {
    /// Takes on the demands of another watch of the same URI.
    fn merge(&mut self, other: Self) {
        self.mode = stricter(self.mode, other.mode);
        self.cohort |= other.cohort;
        self.max_staleness = self.max_staleness.min(other.max_staleness);
        self.poll_interval = self.poll_interval.min(other.poll_interval);
        self.jitter_percent = self.jitter_percent.min(other.jitter_percent);
        self.store |= other.store;
        self.keep_versions = self.keep_versions.max(other.keep_versions);
        // A value counts unless every watch leaves it out.
        self.ignore_json_pointers
            .retain(|pointer| other.ignore_json_pointers.contains(pointer));
        self.watches.extend(other.watches);
        self.reconcile_at.extend(other.reconcile_at);
    }
}

/// Being told of changes is stricter than asking for them; `Subscribe` also complains where it cannot be had.
const fn stricter(one: RefreshMode, other: RefreshMode) -> RefreshMode {
    match (one, other) {
        (RefreshMode::Subscribe, _) | (_, RefreshMode::Subscribe) => RefreshMode::Subscribe,
        (RefreshMode::Auto, _) | (_, RefreshMode::Auto) => RefreshMode::Auto,
        (RefreshMode::Poll, RefreshMode::Poll) => RefreshMode::Poll,
    }
}

fn modes_differ(
    from: Referrer<'_>,
    known: &DesiredResource,
    asked: &DesiredResource,
) -> Box<Problem> {
    let other = known
        .watches
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    from.problem(
        ProblemReason::ModesDiffer,
        format!(
            "watch {other} asks for {:?} and this one for {:?}; {:?} is used",
            known.mode,
            asked.mode,
            stricter(known.mode, asked.mode)
        ),
        "give both watches the same mode and rollout, or remove the URI from one",
    )
}

fn ambiguities(objects: &ObjectSet, session: &DesiredSession, problems: &mut Vec<Problem>) {
    let mut seen: HashMap<&str, &DesiredResource> = HashMap::new();
    for resource in &session.resources {
        let Some(normal) = resource.uri_normal.as_deref() else {
            continue;
        };
        let Some(first) = seen.insert(normal, resource) else {
            continue;
        };
        for watch in &resource.watches {
            let name = ObjectName::new(&watch.namespace, &watch.name);
            let index = objects.watches.get(&name).and_then(|object| {
                object
                    .spec
                    .uris
                    .iter()
                    .position(|uri| uri.as_str() == resource.uri)
            });
            let field = index.map_or_else(
                || "spec.uris".to_owned(),
                |index| format!("spec.uris[{index}]"),
            );
            let from = Referrer {
                kind: Kind::WatchedResource,
                name: &name,
                field: &field,
            };
            problems.push(*from.problem(
                ProblemReason::UriAmbiguous,
                format!("{} and {} are the same by RFC 3986 and differ in bytes; they are watched as two", first.uri, resource.uri),
                "keep the one that the server lists",
            ));
        }
    }
}

/// RFC 3986 normal form, where the URI parses.
pub fn normal_form(uri: &str) -> Option<String> {
    let normal = UriStr::new(uri).ok()?.normalize();
    normal.ensure_rfc3986_normalizable().ok()?;
    Some(normal.to_string())
}
