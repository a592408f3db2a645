//! What shall be, from the objects that were declared. Pure: no clock, no I/O, the same objects give the same answer.
//!
//! In: an [`ObjectSet`], from files or a cluster. Out: servers, subjects, sessions and indexes with every default filled in and every
//! reference resolved, and a [`Problem`] for whatever was left out. What must hold: nothing that is declared and not done goes
//! without a problem that says why, and no reference crosses a namespace without a grant.

mod address;
mod cohort;
mod credential;
mod index;
pub mod load;
mod problem;
mod reference;
mod server;
mod session;
mod subject;

use std::fmt;

use crate::manifest::{Kind, ObjectId, ObjectName, ObjectSet};

pub use fencepost_crds::RefreshMode;

pub use address::{PUBLISHERS, PublisherKind};
pub use cohort::{bucket, in_cohort};
pub use index::{Channel, DesiredIndex, WatchSelection};
pub use problem::{Problem, ProblemReason, Severity};
pub use reference::secrets_named;
pub use server::{DesiredServer, Endpoint};
pub use session::{DeclaredWatch, DesiredResource, DesiredSession, DesiredWatch, normal_form};
pub use subject::{Credential, DesiredSubject, Withdrawal, anonymous_uid};

/// An object by name and identity. The same name with another uid is another object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl ObjectKey {
    pub(crate) fn new(name: &ObjectName, uid: &str) -> Self {
        Self {
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: uid.to_owned(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Everything that shall be. Each list is ordered by key, so that two of them compare.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    pub servers: Vec<DesiredServer>,
    pub subjects: Vec<DesiredSubject>,
    pub watches: Vec<DesiredWatch>,
    pub sessions: Vec<DesiredSession>,
    pub indexes: Vec<DesiredIndex>,
    pub problems: Vec<Problem>,
}

/// Resolves `objects` into what shall be.
pub fn desired(objects: &ObjectSet) -> Desired {
    let mut problems = Vec::new();
    let servers = server::servers(objects, &mut problems);
    let mut subjects = subject::subjects(objects, &mut problems);
    let (watches, sessions) = session::sessions(objects, &servers, &mut subjects, &mut problems);
    let indexes = index::indexes(objects, &mut problems);
    for name in objects.catalogs.keys() {
        problems.push(*Problem::not_acted_on(
            ObjectId::new(Kind::ResourceCatalog, &name.namespace, &name.name),
            "spec",
            "catalogs are not scanned",
        ));
    }
    problems.sort();
    Desired {
        servers,
        subjects,
        watches,
        sessions,
        indexes,
        problems,
    }
}

#[cfg(test)]
mod tests;
