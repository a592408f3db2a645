//! `fencepost migrate`: brings a database to this version's schema, and says what it did.

use clap::Args;
use fencepost_store::{ConnectError, MigrateError, Store, StoreConfig};
use uuid::Uuid;

#[derive(Args)]
pub struct MigrateArgs {
    /// The database, as `postgres://user@host:5432/name`.
    #[arg(long, env = "FENCEPOST_DATABASE_URL", hide_env_values = true)]
    database_url: String,
}

/// Why a migration did not happen.
#[derive(Debug, thiserror::Error)]
pub enum MigrateCommandError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
}

pub async fn run(args: MigrateArgs) -> Result<(), MigrateCommandError> {
    let store = Store::connect(StoreConfig {
        database_url: args.database_url,
        max_connections: 2,
        replica: Uuid::now_v7(),
    })
    .await?;
    let report = store.migrate().await?;
    println!("{report}");
    Ok(())
}
