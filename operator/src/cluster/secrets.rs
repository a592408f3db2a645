//! The content of those Secrets that a manifest names, and of no other.
//!
//! In: names, and the metadata that the watch shows. Out: the content of each, read again when its version changes. What must
//! hold: a Secret that cannot be read now is never taken for one that is gone.

use std::collections::{BTreeMap, BTreeSet};

use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1;
use kube::{Api, Client};

use super::failure::Failure;
use crate::manifest::{ObjectName, Secret, SecretData};

/// Reads at a time.
const AT_ONCE: usize = 8;

/// A Secret as its metadata shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub uid: String,
    pub version: String,
}

/// Content by name, with the version it was read at.
#[derive(Default)]
pub struct SecretContents {
    held: BTreeMap<ObjectName, (Seen, SecretData)>,
}

impl SecretContents {
    /// Reads what is wanted and new. Afterwards [`Self::get`] answers for every wanted Secret that is there. An error: one could not
    /// be read, and of it there is the content before, or none at all.
    pub async fn refresh(
        &mut self,
        client: &Client,
        wanted: &BTreeSet<ObjectName>,
        seen: &BTreeMap<ObjectName, Seen>,
    ) -> Result<(), Failure> {
        self.held
            .retain(|name, _| wanted.contains(name) && seen.contains_key(name));
        let due: Vec<(&ObjectName, &Seen)> = wanted
            .iter()
            .filter_map(|name| Some((name, seen.get(name)?)))
            .filter(|(name, seen)| self.held.get(*name).is_none_or(|(held, _)| held != *seen))
            .collect();
        let reads: Vec<_> = due
            .into_iter()
            .map(|(name, seen)| async move { (name, seen, read(client, name).await) }.boxed())
            .collect();
        let answers: Vec<_> = stream::iter(reads)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut failed = None;
        for (name, seen, answer) in answers {
            match answer {
                Ok(Some(data)) => {
                    self.held.insert(name.clone(), (seen.clone(), data));
                }
                // Deleted since: the watch will say so.
                Ok(None) => drop(self.held.remove(name)),
                Err(failure) => failed = Some(failure),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    pub fn get(&self, name: &ObjectName) -> Option<(&Seen, &SecretData)> {
        self.held.get(name).map(|(seen, data)| (seen, data))
    }
}

async fn read(client: &Client, name: &ObjectName) -> Result<Option<SecretData>, Failure> {
    let api: Api<v1::Secret> = Api::namespaced(client.clone(), &name.namespace);
    let secret = api
        .get_opt(&name.name)
        .await
        .map_err(|error| Failure::of(&error))?;
    Ok(secret.map(|secret| {
        let keys = secret.data.unwrap_or_default();
        SecretData(
            keys.into_iter()
                .map(|(key, bytes)| (key, Secret::new(bytes.0)))
                .collect(),
        )
    }))
}
