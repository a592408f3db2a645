//! What went wrong in the database, by what the caller does next.
//!
//! In comes what sqlx says, out goes one of six cases. The driver's words are chained as the source,
//! not pasted into the text. Clone, since one failed flush answers every caller that was in it.

use std::{sync::Arc, time::Duration};

use fencepost_ledger::backoff::Backoff;

use crate::writes::WriteRefusal;

/// An operation of the store failed; nothing of it is visible, unless `Unavailable` came at commit.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Not reached, or no answer in time. Retry with backoff; every operation may be repeated.
    #[error(
        "the database cannot be reached or did not answer in time; the operation may be repeated"
    )]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// Postgres answers, but takes no write now. Nothing was written; retry with backoff.
    #[error("{why}; the operation may be repeated")]
    Unwritable {
        why: WriteRefusal,
        #[source]
        source: Arc<sqlx::Error>,
    },
    /// Still in conflict with other transactions after every retry made here.
    #[error("the operation lost against other transactions {MAX_TRIES} times; repeat it later")]
    Conflict(#[source] Arc<sqlx::Error>),
    /// The database refused a change that would have broken an invariant. Nothing was written;
    /// repeating it gives the same. It is a fault of Fencepost: report it.
    #[error("fence {code} held: {message}")]
    Fence { code: String, message: String },
    /// The database refuses the statement for another reason: a missing table, a row that is not
    /// there to be referred to, no permission.
    #[error(
        "the database refuses the statement; check that its schema is migrated and the objects are published"
    )]
    Refused(#[source] Arc<sqlx::Error>),
    /// What is stored, or was given, cannot be read.
    #[error("{what} cannot be understood")]
    Corrupt {
        what: String,
        #[source]
        source: Option<Arc<sqlx::Error>>,
    },
}

impl StoreError {
    /// One word for log field and metric label.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Unwritable { why, .. } => why.reason(),
            Self::Conflict(_) => "conflict",
            Self::Fence { .. } => "fence",
            Self::Refused(_) => "refused",
            Self::Corrupt { .. } => "corrupt",
        }
    }

    /// Whether the database may take the same operation later: then it is repeated, not given up.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unwritable { .. } | Self::Conflict(_) => true,
            Self::Fence { .. } | Self::Refused(_) | Self::Corrupt { .. } => false,
        }
    }

    /// Whether the connection broke under the operation, so that another one may do.
    pub(crate) fn is_lost_connection(&self) -> bool {
        let Self::Unavailable(error) = self else {
            return false;
        };
        match error.as_ref() {
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(database) => database
                .code()
                .is_some_and(|code| code.starts_with("08") || code.starts_with("57P")),
            _ => false,
        }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt {
            what: what.into(),
            source: None,
        }
    }

    pub(crate) fn fence(code: &str, message: impl Into<String>) -> Self {
        Self::Fence {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => {
                let code = database.code().unwrap_or_default().into_owned();
                match code.as_str() {
                    // Serialization failure, deadlock.
                    "40001" | "40P01" => Self::Conflict(Arc::new(error)),
                    // The fences' own codes; check and unique constraints are fences too.
                    "FP001" | "FP002" | "FP003" | "FP004" | "23514" | "23505" => Self::Fence {
                        message: database.message().to_owned(),
                        code,
                    },
                    "53100" => Self::Unwritable {
                        why: WriteRefusal::DiskFull,
                        source: Arc::new(error),
                    },
                    "25006" => Self::Unwritable {
                        why: WriteRefusal::ReadOnly,
                        source: Arc::new(error),
                    },
                    // Lock not available in time, statement cancelled by its timeout.
                    "55P03" | "57014" => Self::Unavailable(Arc::new(error)),
                    // Connection exceptions, out of resources, operator intervention.
                    _ if ["08", "53", "57"]
                        .iter()
                        .any(|class| code.starts_with(class)) =>
                    {
                        Self::Unavailable(Arc::new(error))
                    }
                    _ => Self::Refused(Arc::new(error)),
                }
            }
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::Encode(_)
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::TypeNotFound { .. }
            | sqlx::Error::RowNotFound => Self::Corrupt {
                what: "an answer of the database".to_owned(),
                source: Some(Arc::new(error)),
            },
            _ => Self::Unavailable(Arc::new(error)),
        }
    }
}

/// Tries of a transaction in conflict: five contenders for the same rows get through one by one.
const MAX_TRIES: u32 = 5;

/// Between them: as long as a few short transactions take, and jittered.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(5),
    cap: Duration::from_millis(200),
};

/// Counts the tries of one operation.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Whether a whole transaction that failed with `error` is to be tried again; waits before.
    pub(crate) async fn again(&mut self, error: &StoreError) -> bool {
        matches!(error, StoreError::Conflict(_)) && self.wait().await
    }

    /// Waits before the next try; false when there is none left.
    pub(crate) async fn wait(&mut self) -> bool {
        self.0 += 1;
        if self.0 >= MAX_TRIES {
            return false;
        }
        tokio::time::sleep(BACKOFF.delay(self.0, rand::random())).await;
        true
    }
}
