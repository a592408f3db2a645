//! Opening the store: the pool, its limits, and a clear word when the database is not there.

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    Inner, Store, accept::AcceptFlush, batch::Batcher, issue::IssueFlush, outbox_hint,
    writes::Writes,
};

/// Connections of a replica unless told otherwise: two flushers, the outbox and the API's reads.
pub const DEFAULT_CONNECTIONS: u32 = 10;

/// Waits for a connection at most this long: a full pool shows as an error, not as silence.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach the database. No Debug: the URL may carry a password.
#[derive(Clone)]
pub struct StoreConfig {
    pub database_url: String,
    pub max_connections: u32,
    /// This process, as the owner of leases.
    pub replica: Uuid,
}

/// The database was not opened. Names host and database, never the password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "the database URL cannot be read; write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    BadUrl,
    #[error(
        "database {database} at {host} cannot be opened; check that Postgres runs there, that the database exists and that the user may log in"
    )]
    Unreachable {
        host: String,
        database: String,
        #[source]
        source: sqlx::Error,
    },
    /// A standby lags: what it answers may be withdrawn already. So it is not read from either.
    #[error(
        "database {database} at {host} is a standby in recovery; give the address of the primary"
    )]
    Standby { host: String, database: String },
}

impl Store {
    /// Connects and makes sure of one connection.
    pub async fn connect(config: StoreConfig) -> Result<Self, ConnectError> {
        // The parser's error may quote the URL, and with it the password: it is not chained.
        let options = PgConnectOptions::from_str(&config.database_url)
            .map_err(|_| ConnectError::BadUrl)?
            .application_name("fencepost")
            .options([
                // A transaction that waits for something else than the database is a fault here.
                ("idle_in_transaction_session_timeout", "10s"),
                ("statement_timeout", "30s"),
                ("lock_timeout", "10s"),
            ]);
        let host = options.get_socket().map_or_else(
            || format!("{}:{}", options.get_host(), options.get_port()),
            |socket| format!("{} (port {})", socket.display(), options.get_port()),
        );
        let database = options
            .get_database()
            .unwrap_or(options.get_username())
            .to_owned();
        let standby = Arc::new(AtomicBool::new(false));
        let seen = standby.clone();
        let writes = Arc::new(Writes::default());
        let told = writes.clone();
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections.max(3))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // After a failover a name may lead to the old primary for a while.
            .after_connect(move |connection, _| {
                let seen = seen.clone();
                Box::pin(async move { refuse_standby(connection, &seen).await })
            })
            .before_acquire(move |_, connection| {
                let current = !told.outlived(connection.age);
                Box::pin(async move { Ok(current) })
            })
            .connect_with(options)
            .await
            .map_err(|source| {
                if standby.load(Ordering::Relaxed) {
                    ConnectError::Standby { host, database }
                } else {
                    ConnectError::Unreachable {
                        host,
                        database,
                        source,
                    }
                }
            })?;
        Ok(Self::assemble(pool, config.replica, writes))
    }

    /// A store on an open pool. Starts its flushers on the current runtime; they end with the store.
    pub fn with_pool(pool: PgPool, replica: Uuid) -> Self {
        Self::assemble(pool, replica, Arc::default())
    }

    fn assemble(pool: PgPool, replica: Uuid, writes: Arc<Writes>) -> Self {
        // One waiting hint is enough: it says no more than "look again".
        let (hint, hints) = mpsc::channel(1);
        tokio::spawn(outbox_hint::run(pool.clone(), hints));
        let issues = IssueFlush { pool: pool.clone() };
        let answers = AcceptFlush {
            pool: pool.clone(),
            hint: hint.clone(),
        };
        Self {
            inner: Arc::new(Inner {
                issues: Batcher::start(issues, writes.clone()),
                answers: Batcher::start(answers, writes.clone()),
                pool,
                replica,
                hint,
                writes,
            }),
        }
    }
}

/// The pool logs the error, closes the connection and tries again until its caller has waited long enough.
async fn refuse_standby(connection: &mut PgConnection, seen: &AtomicBool) -> sqlx::Result<()> {
    let standby: bool = sqlx::query_scalar("select pg_is_in_recovery()")
        .fetch_one(connection)
        .await?;
    seen.store(standby, Ordering::Relaxed);
    if standby {
        let why = "the database is a standby in recovery; fencepost needs the primary";
        return Err(sqlx::Error::Configuration(why.into()));
    }
    Ok(())
}
