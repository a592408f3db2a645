//! What is known of a server from talking to it: its handshake, or why there is no session.

use serde_json::Value;
use uuid::Uuid;

use crate::{Store, error::StoreError};

/// How it stands with a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerStatus {
    Well {
        /// `legacy` or `modern`.
        era: String,
        protocol_version: String,
        server_name: String,
        server_version: String,
        capabilities: Value,
        subscribe: bool,
    },
    Unwell {
        /// A stable upper-case word.
        reason: String,
        /// A sentence that says what to do; no secrets.
        message: String,
    },
}

impl Store {
    /// Stores it. While the reason stays the same, so does the time since when it holds.
    pub async fn set_server_status(
        &self,
        server: Uuid,
        status: ServerStatus,
    ) -> Result<(), StoreError> {
        let query = match status {
            ServerStatus::Well {
                era,
                protocol_version,
                server_name,
                server_version,
                capabilities,
                subscribe,
            } => sqlx::query(
                "update server
                 set era = $2, protocol_version = $3, server_name = $4, server_version = $5,
                     capabilities = $6, subscribe = $7, reason = null, message = null, reason_since = null
                 where uid = $1",
            )
            .bind(server)
            .bind(era)
            .bind(protocol_version)
            .bind(server_name)
            .bind(server_version)
            .bind(capabilities)
            .bind(subscribe),
            ServerStatus::Unwell { reason, message } => sqlx::query(
                "update server
                 set reason_since = case when reason = $2 then reason_since else now() end,
                     reason = $2, message = $3
                 where uid = $1",
            )
            .bind(server)
            .bind(reason)
            .bind(message),
        };
        query.execute(self.pool()).await?;
        Ok(())
    }
}
