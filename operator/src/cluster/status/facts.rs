//! What the ledger knows of the objects, gathered once for all of them.

use std::collections::HashMap;

use fencepost_store::queries::{PageSize, Queries, QueryError, WatchTally};
use fencepost_views::{Index, Page, Server, Subject};

/// The ledger's side of every status. Keys are uids as the ledger writes them; tallies are by `namespace/name`.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub servers: HashMap<String, Server>,
    pub subjects: HashMap<String, Subject>,
    pub indexes: HashMap<String, Index>,
    pub tallies: HashMap<String, WatchTally>,
}

/// Watches asked for in one statement.
const WATCHES_AT_ONCE: usize = 500;

impl Facts {
    pub async fn gather(queries: &Queries, watches: &[String]) -> Result<Self, QueryError> {
        let mut facts = Self::default();
        let mut after = None;
        loop {
            let page: Page<Server> = queries.servers(PageSize::LARGEST, after.as_deref()).await?;
            facts
                .servers
                .extend(page.items.into_iter().map(|item| (item.uid.clone(), item)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        loop {
            let page: Page<Subject> = queries
                .subjects(PageSize::LARGEST, after.as_deref())
                .await?;
            facts.subjects.extend(
                page.items
                    .into_iter()
                    .map(|item| (item.object.uid.clone(), item)),
            );
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        loop {
            let page: Page<Index> = queries.indexes(PageSize::LARGEST, after.as_deref()).await?;
            facts
                .indexes
                .extend(page.items.into_iter().map(|item| (item.uid.clone(), item)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for chunk in watches.chunks(WATCHES_AT_ONCE) {
            facts.tallies.extend(queries.watch_tallies(chunk).await?);
        }
        Ok(facts)
    }
}
