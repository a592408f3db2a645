//! The schema: brought up to this binary's version, never down, never by two replicas at once.

use std::fmt;

use sqlx::{
    PgConnection,
    migrate::{MigrateError as SqlxMigrateError, Migrator},
};

use crate::{Store, StoreError, advisory};

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationReport {
    /// Version found; none in an empty database.
    pub before: Option<i64>,
    /// Version now: the binary's.
    pub now: i64,
}

impl fmt::Display for MigrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            None => write!(f, "the ledger's schema was created at version {}", self.now),
            Some(before) if before == self.now => {
                write!(f, "the ledger's schema is at version {}", self.now)
            }
            Some(before) => {
                write!(
                    f,
                    "the ledger's schema went from version {before} to {}",
                    self.now
                )
            }
        }
    }
}

/// The schema was left as it was.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(
        "the database has schema version {database}, this binary knows {binary}; run the newer binary, or restore a backup that was made before it ran"
    )]
    Newer { database: i64, binary: i64 },
    #[error(
        "migration {version} in the database is not the one of this binary; run a released binary, or start from an empty database"
    )]
    Changed { version: i64 },
    #[error(
        "the schema could not be migrated; the database is unchanged, and it may be tried again"
    )]
    Failed(#[source] Box<SqlxMigrateError>),
    #[error("the database cannot be reached for the migration; it may be tried again")]
    Unavailable(#[from] sqlx::Error),
}

/// The schema in the database beside the one of this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// Nothing was ever created here.
    Empty,
    Older {
        database: i64,
        binary: i64,
    },
    /// This binary's, or one that a newer binary made and this one can work with.
    Usable,
}

/// The newest version of this binary.
fn binary_version() -> i64 {
    MIGRATIONS.iter().map(|m| m.version).max().unwrap_or(0)
}

/// The newest version that was applied to the database.
async fn database_version(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    let known: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if !known {
        return Ok(None);
    }
    sqlx::query_scalar("select max(version) from _sqlx_migrations")
        .fetch_one(connection)
        .await
}

impl Store {
    /// How the database's schema stands. Asks only, and takes no lock.
    pub async fn schema(&self) -> Result<SchemaState, StoreError> {
        let mut connection = self.pool().acquire().await?;
        let binary = binary_version();
        Ok(match database_version(&mut connection).await? {
            None => SchemaState::Empty,
            Some(database) if database < binary => SchemaState::Older { database, binary },
            Some(_) => SchemaState::Usable,
        })
    }

    /// Applies what is missing, all of it in one transaction under a lock of that transaction, so
    /// that it also works behind a transaction pooler and leaves nothing half done.
    pub async fn migrate(&self) -> Result<MigrationReport, MigrateError> {
        let binary = binary_version();
        let mut tx = self.pool().begin().await?;
        // Another replica's migration may take longer than a statement usually may.
        sqlx::query("select set_config('lock_timeout', '0', true), set_config('statement_timeout', '10min', true)")
            .execute(&mut *tx)
            .await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(advisory::MIGRATE)
            .execute(&mut *tx)
            .await?;
        let before = database_version(&mut tx).await?;
        if let Some(database) = before.filter(|database| *database > binary) {
            return Err(MigrateError::Newer { database, binary });
        }
        let mut migrator = Migrator {
            migrations: MIGRATIONS.migrations.clone(),
            ..Migrator::DEFAULT
        };
        // Its own lock is one of the session, which a transaction pooler would lose.
        migrator.set_locking(false);
        migrator
            .run_direct(None, &mut *tx, false)
            .await
            .map_err(|error| match error {
                SqlxMigrateError::VersionMismatch(version)
                | SqlxMigrateError::VersionMissing(version) => MigrateError::Changed { version },
                other => MigrateError::Failed(Box::new(other)),
            })?;
        tx.commit().await?;
        Ok(MigrationReport {
            before,
            now: binary,
        })
    }
}
