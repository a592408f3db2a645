//! Whether Postgres takes writes: it may answer every question and refuse them all.
//!
//! In come the results of writes that go on all the time, out goes why they are refused. Each writer
//! counts for itself: a row that fits into a page passes on a full disk while a content does not. A
//! refusal counts until the same writer succeeds, or until it has not been repeated for a while.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::error::StoreError;

/// A refusal that is not repeated for so long is over: whoever was refused tries again sooner.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// Why Postgres refuses writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteRefusal {
    /// SQLSTATE 53100, `disk_full`.
    DiskFull,
    /// SQLSTATE 25006, `read_only_sql_transaction`.
    ReadOnly,
}

impl WriteRefusal {
    /// One word for log field and metric label.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
        }
    }
}

/// What is the matter and what to do.
impl fmt::Display for WriteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskFull => {
                "Postgres has no disk space left and refuses writes; give its volume more space"
            }
            Self::ReadOnly => {
                "the database is read-only; see why its transactions are (default_transaction_read_only, a guard of its provider)"
            }
        })
    }
}

/// Who writes all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Writer {
    Issues,
    Answers,
    Leases,
    Samples,
}

/// Writes are refused, as far as this process has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritesRefused {
    pub why: WriteRefusal,
    /// Since the first refusal that no success of the same writer has followed.
    pub lasting: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    why: WriteRefusal,
    since: Instant,
    last: Instant,
}

/// The last word of each writer that is refused.
#[derive(Debug, Default)]
pub(crate) struct Writes(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    refused: HashMap<Writer, Refusal>,
    /// When a write was last refused because the database is read-only.
    read_only: Option<Instant>,
}

impl Writes {
    pub(crate) fn observe<T>(&self, writer: Writer, result: &Result<T, StoreError>) {
        self.at(writer, result, Instant::now());
    }

    fn at<T>(&self, writer: Writer, result: &Result<T, StoreError>, now: Instant) {
        let mut seen = self.seen();
        match result {
            Err(StoreError::Unwritable { why, .. }) => {
                if *why == WriteRefusal::ReadOnly {
                    seen.read_only = Some(now);
                }
                let before = seen.refused.get(&writer);
                let since = before.map_or(now, |before| before.since);
                seen.refused.insert(
                    writer,
                    Refusal {
                        why: *why,
                        since,
                        last: now,
                    },
                );
            }
            // A database that does not answer says nothing of its disk.
            Err(StoreError::Unavailable(_) | StoreError::Conflict(_)) => {}
            Ok(_)
            | Err(StoreError::Fence { .. } | StoreError::Refused(_) | StoreError::Corrupt { .. }) =>
            {
                seen.refused.remove(&writer);
            }
        }
    }

    pub(crate) fn refused(&self) -> Option<WritesRefused> {
        self.refused_at(Instant::now())
    }

    fn refused_at(&self, now: Instant) -> Option<WritesRefused> {
        let mut seen = self.seen();
        seen.refused
            .retain(|_, refusal| now.saturating_duration_since(refusal.last) < FORGOTTEN_AFTER);
        let newest = seen.refused.values().max_by_key(|refusal| refusal.last)?;
        let since = seen.refused.values().map(|refusal| refusal.since).min()?;
        Some(WritesRefused {
            why: newest.why,
            lasting: now.saturating_duration_since(since),
        })
    }

    /// Whether a connection of that age may know a setting that has changed since: it takes
    /// `default_transaction_read_only` once, when it begins.
    pub(crate) fn outlived(&self, age: Duration) -> bool {
        let read_only = self.seen().read_only;
        read_only.is_some_and(|at| at.elapsed() < age)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const FULL: WriteRefusal = WriteRefusal::DiskFull;

    fn refused(why: WriteRefusal) -> Result<(), StoreError> {
        Err(StoreError::Unwritable {
            why,
            source: Arc::new(sqlx::Error::WorkerCrashed),
        })
    }

    #[test]
    fn a_refusal_lasts_until_its_own_writer_succeeds() {
        let writes = Writes::default();
        let why = |writes: &Writes| writes.refused().map(|refused| refused.why);
        assert_eq!(why(&writes), None);
        writes.observe(Writer::Answers, &refused(FULL));
        writes.observe(Writer::Leases, &Ok(()));
        assert_eq!(why(&writes), Some(FULL));
        let away: Result<(), _> = Err(StoreError::Unavailable(Arc::new(sqlx::Error::PoolTimedOut)));
        writes.observe(Writer::Answers, &away);
        assert_eq!(why(&writes), Some(FULL));
        writes.observe(Writer::Answers, &Ok(()));
        assert_eq!(why(&writes), None);
    }

    #[test]
    fn a_refusal_that_nobody_repeats_is_forgotten_and_the_newest_is_told() {
        let writes = Writes::default();
        let start = Instant::now();
        writes.at(Writer::Answers, &refused(FULL), start);
        let later = start + FORGOTTEN_AFTER / 2;
        writes.at(Writer::Leases, &refused(WriteRefusal::ReadOnly), later);
        let both = WritesRefused {
            why: WriteRefusal::ReadOnly,
            lasting: FORGOTTEN_AFTER / 2,
        };
        assert_eq!(writes.refused_at(later), Some(both));
        assert_eq!(writes.refused_at(later + FORGOTTEN_AFTER), None);
    }

    #[test]
    fn a_connection_from_before_a_read_only_database_is_not_used_again() {
        let writes = Writes::default();
        writes.observe(Writer::Answers, &refused(FULL));
        assert!(!writes.outlived(Duration::from_hours(1)));
        writes.observe(Writer::Answers, &refused(WriteRefusal::ReadOnly));
        assert!(writes.outlived(Duration::from_hours(1)));
        assert!(!writes.outlived(Duration::ZERO));
    }
}
