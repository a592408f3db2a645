//! The schema: brought up to this binary's version, never down, never by two replicas at once.

use std::fmt;

use sqlx::migrate::{MigrateError as SqlxMigrateError, Migrator};

use crate::{Store, advisory};

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

impl Store {
    /// Applies what is missing, all of it in one transaction under a lock of that transaction, so
    /// that it also works behind a transaction pooler and leaves nothing half done.
    pub async fn migrate(&self) -> Result<MigrationReport, MigrateError> {
        let binary = MIGRATIONS.iter().map(|m| m.version).max().unwrap_or(0);
        let mut tx = self.pool().begin().await?;
        // Another replica's migration may take longer than a statement usually may.
        sqlx::query("select set_config('lock_timeout', '0', true), set_config('statement_timeout', '10min', true)")
            .execute(&mut *tx)
            .await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(advisory::MIGRATE)
            .execute(&mut *tx)
            .await?;
        let known: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
            .fetch_one(&mut *tx)
            .await?;
        let before: Option<i64> = if known {
            sqlx::query_scalar("select max(version) from _sqlx_migrations")
                .fetch_one(&mut *tx)
                .await?
        } else {
            None
        };
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
