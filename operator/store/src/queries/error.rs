//! Why a question was not answered, by what the asker does next.

/// A question that got no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The asker wrote something that cannot be meant; `field` is the parameter.
    #[error("{field}: {detail}")]
    BadParameter { field: &'static str, detail: String },
    /// The database cannot be reached or is too busy; asking again later may help.
    #[error("the database does not answer; try again in a few seconds")]
    Unavailable(#[source] sqlx::Error),
    /// The process is ending.
    #[error("fencepost is shutting down; ask another replica or try again")]
    Closed,
    /// The database refused the statement or a row could not be read: a fault of this program.
    #[error(
        "the ledger's answer could not be read; this is a fault of fencepost, please report it"
    )]
    Failed(#[source] sqlx::Error),
}

impl QueryError {
    pub(super) fn bad(field: &'static str, detail: impl Into<String>) -> Self {
        Self::BadParameter {
            field,
            detail: detail.into(),
        }
    }
}

impl From<sqlx::Error> for QueryError {
    fn from(error: sqlx::Error) -> Self {
        let away = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            // Connection exception, insufficient resources, operator intervention (a statement
            // timeout among them): states of the server, not of the statement.
            sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| {
                ["08", "53", "57"]
                    .iter()
                    .any(|class| code.starts_with(class))
            }),
            _ => false,
        };
        if away {
            Self::Unavailable(error)
        } else {
            Self::Failed(error)
        }
    }
}
