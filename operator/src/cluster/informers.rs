//! All watches of one term: begun together, complete together.

use std::sync::Arc;

use kube::api::DynamicObject;

use super::{
    failure::Failure,
    informer::{Informer, InformerContext},
    scope::Scope,
    watched::Watched,
};

/// Every watch of everything.
pub struct Informers(Vec<Informer>);

impl Informers {
    pub fn start(context: &InformerContext, scope: &Scope) -> Self {
        let mut informers = Vec::new();
        for watched in Watched::all() {
            for namespace in scope.parts() {
                informers.push(Informer::start(context.clone(), watched, namespace));
            }
        }
        Self(informers)
    }

    /// Every list was complete once. Before that nothing may be concluded from what is not there.
    pub fn are_synced(&self) -> bool {
        self.0.iter().all(Informer::is_synced)
    }

    /// The resources that are not complete yet, and what was answered last.
    pub fn missing(&self) -> Vec<(String, Option<Failure>)> {
        let mut missing: Vec<_> = self
            .0
            .iter()
            .filter(|informer| !informer.is_synced())
            .map(|informer| (informer.watched.name(), informer.failure()))
            .collect();
        missing.sort_by(|a, b| a.0.cmp(&b.0));
        missing.dedup_by(|a, b| a.0 == b.0);
        missing
    }

    pub fn objects(&self) -> Vec<(Watched, Vec<Arc<DynamicObject>>)> {
        self.0
            .iter()
            .filter(|informer| !informer.is_absent())
            .map(|informer| (informer.watched, informer.objects()))
            .collect()
    }

    pub fn absent(&self) -> Vec<Watched> {
        self.0
            .iter()
            .filter(|informer| informer.is_absent())
            .map(|informer| informer.watched)
            .collect()
    }
}
