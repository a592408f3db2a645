//! What every object's status shall say. Pure: the same look and the same facts give the same drafts.

use std::collections::HashSet;

use super::{
    catalog, draft::Draft, facts::Facts, index, problems, problems::Problems, server, subject,
    watch,
};
use crate::{
    cluster::source::Look,
    desired::ObjectKey,
    manifest::{Kind, ObjectId, ObjectName},
    publish::ledger_uid,
};

/// One draft for each object that counts, in the order of reports.
pub fn drafts<'a>(look: &'a Look, facts: &Facts) -> Vec<(&'a ObjectId, Draft)> {
    let round = Round {
        look,
        facts,
        problems: Problems::of(&look.desired.problems),
        wanted: look
            .desired
            .sessions
            .iter()
            .map(|session| &session.server)
            .collect(),
    };
    look.view
        .ids()
        .filter(|(_, object)| object.metadata.deletion_timestamp.is_none())
        .filter_map(|(id, _)| Some((id, round.draft(id)?)))
        .collect()
}

/// What every object says while the ledger is away. Counts and samples stay as they were last known.
pub fn without_ledger(look: &Look) -> Vec<(&ObjectId, Draft)> {
    let living = look
        .view
        .ids()
        .filter(|(_, object)| object.metadata.deletion_timestamp.is_none());
    living
        .map(|(id, object)| {
            let mut draft = Draft::reconciling(
                "LedgerUnavailable",
                "the ledger (Postgres) does not answer: nothing is read, accepted or told until it does",
            );
            if let Some(status) = object.data["status"].as_object() {
                draft.fields.clone_from(status);
            }
            (id, draft)
        })
        .collect()
}

struct Round<'a> {
    look: &'a Look,
    facts: &'a Facts,
    problems: Problems<'a>,
    /// Servers that some session is wanted of.
    wanted: HashSet<&'a ObjectKey>,
}

impl Round<'_> {
    fn draft(&self, id: &ObjectId) -> Option<Draft> {
        if let Some(violations) = self.look.view.unusable.get(id) {
            return Some(problems::unusable(violations));
        }
        let about = self.problems.about(id);
        if let Some(draft) = problems::error(about) {
            return Some(draft);
        }
        let name = ObjectName::new(&id.namespace, &id.name);
        let objects = &self.look.view.objects;
        let mut draft = match id.kind {
            Kind::MCPServer => {
                let object = objects.servers.get(&name)?;
                let known = self.facts.servers.get(&uid(&object.uid));
                let wanted = self.wanted.iter().any(|key| key.uid == object.uid);
                server::draft(&object.spec, known, wanted)
            }
            Kind::MCPSubject => {
                let object = objects.subjects.get(&name)?;
                subject::draft(&object.spec, self.facts.subjects.get(&uid(&object.uid)))
            }
            Kind::WatchedResource => {
                let object = objects.watches.get(&name)?;
                let tally = self.facts.tallies.get(&name.to_string());
                watch::draft(&object.spec, tally, self.around(&object.uid))
            }
            Kind::ResourceCatalog => {
                objects.catalogs.get(&name)?;
                catalog::draft()
            }
            Kind::DerivedIndex => {
                let object = objects.indexes.get(&name)?;
                index::draft(self.facts.indexes.get(&uid(&object.uid)))
            }
            Kind::Secret | Kind::ReferenceGrant => return None,
        };
        if id.kind != Kind::ResourceCatalog {
            problems::warn(&mut draft, about);
        }
        Some(draft)
    }

    fn around(&self, watch_uid: &str) -> watch::Around {
        let desired = &self.look.desired;
        let Some(watch) = desired
            .watches
            .iter()
            .find(|watch| watch.key.uid == watch_uid)
        else {
            return watch::Around::default();
        };
        let server = watch.server.as_ref();
        let declared =
            server.and_then(|key| desired.servers.iter().find(|known| known.key == *key));
        let connected = server
            .and_then(|key| self.facts.servers.get(&uid(&key.uid)))
            .is_some_and(|known| known.ready);
        let subject = watch.subject.as_ref();
        watch::Around {
            server: match (server, declared) {
                (Some(_), None) => watch::ServerState::Unusable,
                (_, Some(known)) if known.suspend => watch::ServerState::Suspended,
                _ if connected => watch::ServerState::Connected,
                _ => watch::ServerState::Away,
            },
            subject_revoked: subject
                .and_then(|key| desired.subjects.iter().find(|known| known.key == *key))
                .is_some_and(crate::desired::DesiredSubject::revoked),
        }
    }
}

/// As the ledger writes it.
fn uid(uid: &str) -> String {
    ledger_uid(uid).to_string()
}
