//! What stands now, for the gauges of `/metrics` and the charts' samples.
//!
//! Each replica counts only what it looks after, so that the sum over replicas is the whole.

use crate::{Store, StoreError};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    pub resources: Vec<StateGauge>,
    /// Resources that are ACTIVE and older than their bound, or whose last read did not confirm them.
    pub stale_resources: i64,
    /// For each index that this replica delivers to.
    pub outbox_lags: Vec<LagGauge>,
}

/// How many resources of a server are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateGauge {
    pub namespace: String,
    pub server: String,
    pub state: String,
    pub count: i64,
}

/// Age in seconds of the oldest event that an index has not confirmed.
#[derive(Debug, Clone, PartialEq)]
pub struct LagGauge {
    pub namespace: String,
    pub index: String,
    pub seconds: f64,
}

impl Store {
    pub async fn gauges(&self) -> Result<Gauges, StoreError> {
        // The last owner of the session counts its resources, also while the lease has run out.
        let rows: Vec<(String, String, String, i64, i64)> = sqlx::query_as(
            "select v.namespace, v.name,
                    case when s.revoked then 'REVOKED' when r.presence <> 'PRESENT' then r.presence
                         else r.subscription end as state,
                    count(*),
                    count(*) filter (where r.subscription = 'ACTIVE' and not s.revoked and (
                        r.confirmed_at is null or r.stale_reason is not null
                        or clock_timestamp() > r.confirmed_at + r.max_staleness))
             from resource r
             join session_lease l on l.server_uid = r.server_uid and l.subject_uid = r.subject_uid and l.owner = $1
             join server v on v.uid = r.server_uid and v.deleted_at is null
             join subject s on s.uid = r.subject_uid
             group by 1, 2, 3",
        )
        .bind(self.replica())
        .fetch_all(self.pool())
        .await?;
        let stale_resources = rows.iter().map(|row| row.4).sum();
        let resources = rows
            .into_iter()
            .map(|(namespace, server, state, count, _)| StateGauge {
                namespace,
                server,
                state,
                count,
            })
            .collect();
        let lags = self.outbox_lags().await?;
        let outbox_lags = lags
            .into_iter()
            .map(|(namespace, index, seconds)| LagGauge {
                namespace,
                index,
                seconds,
            })
            .collect();
        Ok(Gauges {
            resources,
            stale_resources,
            outbox_lags,
        })
    }
}
