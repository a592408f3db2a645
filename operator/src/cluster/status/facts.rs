//! What the ledger knows of the objects, gathered once for all of them.

use std::collections::HashMap;

use fencepost_store::queries::{PageSize, Queries, QueryError, WatchTally};
use fencepost_views::{Index, Page, Server, Subject};

/// The ledger's side of every status. Keys are uids as the ledger writes them; tallies are by `namespace/name`.
#[derive(Debug)]
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
        let size = PageSize::LARGEST;
        let servers = all(async |after| queries.servers(size, after).await).await?;
        let subjects = all(async |after| queries.subjects(size, after).await).await?;
        let indexes = all(async |after| queries.indexes(size, after).await).await?;
        let mut facts = Self {
            servers: by_uid(servers, |server: &Server| &server.uid),
            subjects: by_uid(subjects, |subject: &Subject| &subject.object.uid),
            indexes: by_uid(indexes, |index: &Index| &index.uid),
            tallies: HashMap::new(),
        };
        for chunk in watches.chunks(WATCHES_AT_ONCE) {
            facts.tallies.extend(queries.watch_tallies(chunk).await?);
        }
        Ok(facts)
    }
}

/// Every page of a list.
async fn all<T>(
    page: impl AsyncFn(Option<&str>) -> Result<Page<T>, QueryError>,
) -> Result<Vec<T>, QueryError> {
    let mut items = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let next = page(after.as_deref()).await?;
        items.extend(next.items);
        after = next.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}

fn by_uid<T>(items: Vec<T>, uid: impl Fn(&T) -> &String) -> HashMap<String, T> {
    items
        .into_iter()
        .map(|item| (uid(&item).clone(), item))
        .collect()
}
