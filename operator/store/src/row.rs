//! Between the core's types and the columns: counters, digests, spans of time, words.

use std::{str::FromStr, time::Duration};

use fencepost_ledger::Digest;
use sqlx::postgres::types::PgInterval;

use crate::error::StoreError;

/// A counter as its column holds it.
pub(crate) const fn column(counter: u64) -> i64 {
    counter.cast_signed()
}

/// A counter of the database; it has checks that none is below zero.
pub(crate) fn counter(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| StoreError::corrupt(format!("counter {value}")))
}

pub(crate) fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    <[u8; 32]>::try_from(bytes)
        .map(Digest::new)
        .map_err(|_| StoreError::corrupt(format!("a digest of {} bytes", bytes.len())))
}

/// A word of a checked column.
pub(crate) fn word<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::corrupt(format!("the word {text:?}")))
}

/// Whole microseconds, which is what the database keeps; longer than it can hold is for ever.
pub(crate) fn interval(span: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(span.as_micros()).unwrap_or(i64::MAX),
    }
}
