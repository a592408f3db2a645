//! What this process may do in the cluster: the one table, and the check of it.
//!
//! In: the table of what the operator does. Out: the RBAC rules that the chart and `fencepost rbac` render, and the verbs that are
//! missing now. The check asks the API server (`SelfSubjectAccessReview`, which every identity may), so that a role that was mended is
//! noticed without a restart.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    rbac::v1::PolicyRule,
};
use kube::{Api, Client, api::PostParams};

use super::{
    failure::Failure,
    scope::Scope,
    watched::{OURS, plural},
};
use crate::{desired::PUBLISHERS, manifest::Kind};

/// Where a permission must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Where {
    /// In each watched namespace, or in the whole cluster.
    Watched,
    /// In the namespace that the operator itself runs in.
    Own,
    /// On resources that have no namespace.
    Cluster,
}

/// One line of the table: a resource and the verbs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub place: Where,
    pub group: &'static str,
    /// With its subresource, as RBAC writes it.
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
}

/// Verbs of a watch.
const FOLLOW: &[&str] = &["list", "watch"];

/// What the operator does, all of it.
pub fn table(reviews: bool) -> Vec<Permission> {
    let watched = |group, resource, verbs| Permission {
        place: Where::Watched,
        group,
        resource,
        verbs,
    };
    let mut table = Vec::new();
    for kind in OURS {
        // Finalizers are written with patch, on the kinds that have one.
        let verbs: &[&str] = if super::finalizer::has_one(kind) {
            &["list", "watch", "patch"]
        } else {
            FOLLOW
        };
        table.push(watched(kind.group(), plural(kind), verbs));
        table.push(watched(kind.group(), status_of(kind), &["patch"]));
    }
    table.push(watched("", "secrets", &["get", "list", "watch"]));
    table.push(watched("", "services", FOLLOW));
    table.push(watched(
        Kind::ReferenceGrant.group(),
        plural(Kind::ReferenceGrant),
        FOLLOW,
    ));
    for publisher in &PUBLISHERS {
        table.push(watched(publisher.group, publisher.plural, FOLLOW));
    }
    table.push(watched("events.k8s.io", "events", &["create", "patch"]));
    table.push(Permission {
        place: Where::Own,
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["get", "create", "patch"],
    });
    if reviews {
        for (group, resource) in [
            ("authentication.k8s.io", "tokenreviews"),
            ("authorization.k8s.io", "subjectaccessreviews"),
        ] {
            table.push(Permission {
                place: Where::Cluster,
                group,
                resource,
                verbs: &["create"],
            });
        }
    }
    table
}

const fn status_of(kind: Kind) -> &'static str {
    match kind {
        Kind::MCPServer => "mcpservers/status",
        Kind::MCPSubject => "mcpsubjects/status",
        Kind::WatchedResource => "watchedresources/status",
        Kind::ResourceCatalog => "resourcecatalogs/status",
        Kind::DerivedIndex => "derivedindexes/status",
        Kind::Secret => "secrets/status",
        Kind::ReferenceGrant => "referencegrants/status",
    }
}

/// The rules of a role for one place, resources with the same group and verbs together.
pub fn rules(place: Where, reviews: bool) -> Vec<PolicyRule> {
    let mut gathered: BTreeMap<(&str, &[&str]), Vec<String>> = BTreeMap::new();
    for permission in table(reviews) {
        if permission.place == place {
            gathered
                .entry((permission.group, permission.verbs))
                .or_default()
                .push(permission.resource.to_owned());
        }
    }
    gathered
        .into_iter()
        .map(|((group, verbs), resources)| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(resources),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        })
        .collect()
}

/// A verb that is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingVerb {
    pub verb: &'static str,
    /// `plural.group`, or the plural alone for the core group; with the subresource.
    pub resource: String,
    /// None: in all namespaces, or on a resource without.
    pub namespace: Option<String>,
}

impl MissingVerb {
    /// A sentence for `/readyz` and the log.
    pub fn sentence(&self) -> String {
        let place = self.namespace.as_deref().map_or_else(
            || "in all namespaces".to_owned(),
            |namespace| format!("in namespace {namespace}"),
        );
        format!(
            "this ServiceAccount may not {} {} {place}; grant the verb, as the chart's roles and `fencepost rbac` do",
            self.verb, self.resource
        )
    }
}

/// Between two checks of everything. A role that was mended is noticed that soon.
const EVERY: Duration = Duration::from_secs(15);
/// Questions at a time: each is a short request to the API server.
const AT_ONCE: usize = 8;
/// Questions a second over all, so that many namespaces cost the API server no more than one.
const A_SECOND: u64 = 20;

/// What was missing at the last check. None: not checked yet.
pub type Missing = Arc<ArcSwap<Option<Vec<MissingVerb>>>>;

/// The questions of one check.
pub struct Checks {
    pub client: Client,
    pub scope: Scope,
    pub own_namespace: String,
    pub reviews: bool,
}

impl Checks {
    /// Checks for ever, and tells `found` each time.
    pub async fn run(self, missing: Missing, found: impl Fn(&[MissingVerb]) + Send + Sync) {
        let questions = self.questions();
        let pause = EVERY.max(Duration::from_secs(questions.len() as u64 / A_SECOND));
        loop {
            match self.ask(&questions).await {
                Ok(now) => {
                    let before = missing.load_full();
                    for verb in &now {
                        if before
                            .as_ref()
                            .as_ref()
                            .is_none_or(|before| !before.contains(verb))
                        {
                            tracing::error!(
                                verb = verb.verb,
                                resource = verb.resource,
                                namespace = verb.namespace.as_deref().unwrap_or("(all)"),
                                "a permission is missing; {}",
                                verb.sentence()
                            );
                        }
                    }
                    if now.is_empty() && before.as_ref().as_ref().is_some_and(|b| !b.is_empty()) {
                        tracing::info!("no permission is missing any more");
                    }
                    found(&now);
                    missing.store(Arc::new(Some(now)));
                }
                Err(failure) => tracing::warn!(
                    reason = failure.reason,
                    error = failure.message,
                    "the permissions could not be checked"
                ),
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn questions(&self) -> Vec<(Permission, &'static str, Option<String>)> {
        let mut questions = Vec::new();
        for permission in table(self.reviews) {
            let places = match permission.place {
                Where::Watched => self.scope.parts(),
                Where::Own => vec![Some(self.own_namespace.clone())],
                Where::Cluster => vec![None],
            };
            for place in places {
                for verb in permission.verbs {
                    questions.push((permission, *verb, place.clone()));
                }
            }
        }
        questions
    }

    async fn ask(
        &self,
        questions: &[(Permission, &'static str, Option<String>)],
    ) -> Result<Vec<MissingVerb>, Failure> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answers: Vec<_> = questions
            .iter()
            .map(|(permission, verb, namespace)| {
                let api = api.clone();
                async move {
                    let review = review(permission, verb, namespace.as_deref());
                    let answer = api
                        .create(&PostParams::default(), &review)
                        .await
                        .map_err(|error| Failure::of(&error))?;
                    let allowed = answer.status.is_some_and(|status| status.allowed);
                    Ok((!allowed).then(|| MissingVerb {
                        verb,
                        resource: full_name(permission),
                        namespace: namespace.clone(),
                    }))
                }
                .boxed()
            })
            .collect();
        let answers: Vec<Result<Option<MissingVerb>, Failure>> = stream::iter(answers)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut missing = answers
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        missing.sort();
        Ok(missing)
    }
}

fn full_name(permission: &Permission) -> String {
    if permission.group.is_empty() {
        permission.resource.to_owned()
    } else {
        match permission.resource.split_once('/') {
            Some((resource, sub)) => format!("{resource}.{}/{sub}", permission.group),
            None => format!("{}.{}", permission.resource, permission.group),
        }
    }
}

fn review(permission: &Permission, verb: &str, namespace: Option<&str>) -> SelfSubjectAccessReview {
    let (resource, subresource) = match permission.resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (permission.resource, None),
    };
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(permission.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(verb.to_owned()),
                namespace: namespace.map(ToOwned::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::watched::Watched;

    /// What is watched must be in the table, or a verb too few would show only in production.
    #[test]
    fn every_watch_is_in_the_table() {
        let table = table(true);
        for watched in Watched::all() {
            let resource = watched.resource();
            assert!(
                table
                    .iter()
                    .any(|permission| permission.group == resource.group
                        && permission.resource == resource.plural
                        && FOLLOW.iter().all(|verb| permission.verbs.contains(verb))),
                "{}",
                watched.name()
            );
        }
    }

    #[test]
    fn without_reviews_nothing_is_asked_of_the_whole_cluster() {
        assert!(rules(Where::Cluster, false).is_empty());
        assert_eq!(rules(Where::Cluster, true).len(), 2);
    }
}
