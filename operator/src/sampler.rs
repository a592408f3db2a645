//! Writes what this replica did in the last seconds as a sample, for the dashboard's charts.

use std::{sync::Arc, time::Duration};

use fencepost_store::{Store, WriteRefusal};
use tokio_util::sync::CancellationToken;

use crate::{live::Live, metrics::Metrics};

/// One sample each; an hour on a chart is then 720 points before they are folded.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// Samples until `shutdown`.
pub async fn run(store: Store, metrics: Arc<Metrics>, live: Live, shutdown: CancellationToken) {
    let mut interval = tokio::time::interval(SAMPLE_EVERY);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut refused = None;
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let before = refused;
        refused = store.writes_refused().map(|refused| refused.why);
        metrics.ledger_unwritable(refused.map(WriteRefusal::reason));
        match refused {
            Some(why) if before != refused => {
                tracing::error!(reason = why.reason(), "the ledger is not written: {why}");
            }
            None if before.is_some() => tracing::info!("the ledger is written again"),
            _ => {}
        }
        match store.gauges().await {
            Ok(gauges) => metrics.set_gauges(&gauges),
            Err(error) => {
                tracing::debug!(
                    category = error.category(),
                    "no gauges: the database is away"
                );
                continue;
            }
        }
        let sample = metrics.take_sample();
        if let Err(error) = store.insert_sample(&sample).await {
            tracing::debug!(category = error.category(), "a sample was not written");
        }
        live.sample();
    }
}
