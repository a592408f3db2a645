//! What `dev` remembers of the files it reads: the uids it gave to objects that have none.
//!
//! Kept in the database, because the uids are keys of the rows in it.

use serde_json::Value;

use crate::{Store, StoreError};

impl Store {
    /// What was saved last.
    pub async fn load_file_source(&self) -> Result<Option<Value>, StoreError> {
        Ok(sqlx::query_scalar("select state from file_source")
            .fetch_optional(self.pool())
            .await?)
    }

    /// Replaces it.
    pub async fn save_file_source(&self, state: &Value) -> Result<(), StoreError> {
        sqlx::query(
            "insert into file_source (singleton, state) values (true, $1)
             on conflict (singleton) do update set state = excluded.state",
        )
        .bind(state)
        .execute(self.pool())
        .await?;
        Ok(())
    }
}
