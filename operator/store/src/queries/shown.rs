//! How rows are shown: the SQL of derived words, said once, and how values are written.
//!
//! Every fragment speaks of `r` (resource) and `sub` (its subject).

use std::str::FromStr;

use fencepost_ledger::{Digest, PublicState, SubscriptionState};
use fencepost_views::{NameRef, StateCount};

use super::QueryError;

/// The permission is gone. A deleted subject gives no permission, whatever its row says.
macro_rules! revoked {
    () => {
        "(sub.revoked or sub.deleted_at is not null)"
    };
}

/// Content is not given: the permission is gone, or the server refused this resource to the subject when
/// it was last asked. What was read before must not be read on here.
macro_rules! withheld {
    () => {
        "(sub.revoked or sub.deleted_at is not null or coalesce(r.stale_reason = 'FORBIDDEN', false))"
    };
}

/// The public state: `PublicState::of` of the core, in SQL.
macro_rules! state {
    () => {
        concat!(
            "case when ",
            $crate::queries::shown::revoked!(),
            " then 'REVOKED' when r.presence <> 'PRESENT' then r.presence else r.subscription end"
        )
    };
}

/// The content may be older than its bound, or the last read did not confirm it.
macro_rules! stale {
    () => {
        "(r.confirmed_at is null or r.stale_reason is not null or now() > r.confirmed_at + r.max_staleness)"
    };
}

/// Why it is stale or not to be had: a stable upper-case word.
macro_rules! reason {
    () => {
        concat!(
            "case when ",
            $crate::queries::shown::revoked!(),
            " then 'REVOKED' when r.stale_reason is not null then r.stale_reason \
             when r.confirmed_at is null then 'NOT_READ_YET' \
             when now() > r.confirmed_at + r.max_staleness then 'PAST_MAX_STALENESS' end"
        )
    };
}

/// Stale where somebody relies on it: watched, permitted, there, of a server that is still declared. A resource that was never read is
/// counted once its bound has passed, so that a start is no alarm.
macro_rules! overdue {
    () => {
        concat!(
            "(cardinality(r.watches) > 0 and r.presence <> 'TOMBSTONED' and not ",
            $crate::queries::shown::revoked!(),
            " and r.server_uid not in (select uid from server where deleted_at is not null) \
              and (r.stale_reason is not null or now() > coalesce(r.confirmed_at, r.created_at) + r.max_staleness))"
        )
    };
}

/// Acknowledged, and yet an audit found a change that nothing had announced; not cleared since.
macro_rules! unproven {
    () => {
        "(r.mode = 'Subscribe' and r.subscription = 'ACTIVE' and not r.delivery_proven \
          and exists (select 1 from resource_version v \
                      where v.resource_id = r.id and v.generation = r.generation and v.trigger = 'Audit'))"
    };
}

pub(super) use {overdue, reason, revoked, stale, state, unproven, withheld};

/// A digest column as the API writes it.
pub(super) fn digest(bytes: Option<Vec<u8>>) -> Option<String> {
    let bytes: [u8; 32] = bytes?.try_into().ok()?;
    Some(Digest::new(bytes).to_string())
}

/// `namespace/name`, as the ledger keeps the names of watches.
pub(super) fn name_ref(text: &str) -> NameRef {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    NameRef {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// A filter that names an object.
pub(super) fn object_name(field: &'static str, text: &str) -> Result<(String, String), QueryError> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(QueryError::bad(field, "must be written namespace/name")),
    }
}

/// A filter that names a public state, as the condition that selects it.
pub(super) fn state_condition(text: &str) -> Result<String, QueryError> {
    const PERMITTED: &str = concat!("not ", revoked!());
    Ok(match text {
        "REVOKED" => revoked!().to_owned(),
        "TOMBSTONE_PENDING" => format!("{PERMITTED} and r.presence = 'TOMBSTONE_PENDING'"),
        "TOMBSTONED" => format!("{PERMITTED} and r.presence = 'TOMBSTONED'"),
        other => {
            let Ok(subscription) = SubscriptionState::from_str(other) else {
                return Err(QueryError::bad(
                    "state",
                    format!("must be one of {}", states().join(", ")),
                ));
            };
            format!(
                "{PERMITTED} and r.presence = 'PRESENT' and r.subscription = '{}'",
                subscription.as_str()
            )
        }
    })
}

/// Every word that a public state can be.
fn states() -> Vec<&'static str> {
    SubscriptionState::ALL
        .into_iter()
        .map(PublicState::Subscription)
        .chain([
            PublicState::TombstonePending,
            PublicState::Tombstoned,
            PublicState::Revoked,
        ])
        .map(PublicState::as_str)
        .collect()
}

/// Adds a group's count to those of its object.
pub(super) fn add_count(counts: &mut Vec<StateCount>, state: String, count: i64) {
    counts.push(StateCount { state, count });
    counts.sort_by(|a, b| a.state.cmp(&b.state));
}
