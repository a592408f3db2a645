//! Read-only questions to the ledger, each answered in the shapes of `fencepost-views`.
//!
//! In come filters and cursors of strangers, out go bounded pages. Nothing here writes. Whatever
//! returns content decides in the same statement whether it may still be returned: between a check
//! and a later read of the bytes a permission could be withdrawn.

mod content;
mod cursor;
mod error;
mod history;
mod index;
mod objective;
mod overview;
mod page;
mod resource;
mod series;
mod server;
mod shown;
mod status;
mod subject;
mod timeline;
mod trouble;
mod version_text;
mod watch;

use std::sync::Arc;

use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Store;

pub use content::{Bytes, Content};
pub use error::QueryError;
pub use page::PageSize;
pub use status::{Closing, SampledResource, WatchTally};
pub use version_text::{SupersedeAnswer, TextAnswer};

/// Questions asked at once. The pool has 10 connections by default and reads must not wait for a
/// crowd of dashboards: more than half of them stay with the engine.
const CONCURRENT: usize = 4;

/// Asks the ledger. Cheap to clone; clones share one bound on concurrency.
#[derive(Clone)]
pub struct Queries {
    store: Store,
    permits: Arc<Semaphore>,
}

impl Queries {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            permits: Arc::new(Semaphore::new(CONCURRENT)),
        }
    }

    async fn connection(&self) -> Result<Lent, QueryError> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| QueryError::Closed)?;
        Ok(Lent {
            connection: self.store.pool().acquire().await?,
            _permit: permit,
        })
    }
}

/// A connection and the permit to use it; both go back together.
struct Lent {
    connection: PoolConnection<Postgres>,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    fn get(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
