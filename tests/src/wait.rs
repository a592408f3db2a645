//! Waiting for what must come true, with a limit, and saying what was seen last when it does not.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// Between two looks: short enough for latencies to be measured by it, long enough not to be load.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Looks until `probe` gives `Ok`, and returns what it gave. `Err` carries what was seen instead.
///
/// # Panics
///
/// When the limit passes, with `what` and the last thing seen.
pub async fn until<T, S: Debug>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let start = Instant::now();
    let mut last: Option<S> = None;
    loop {
        let left = limit.saturating_sub(start.elapsed());
        match tokio::time::timeout(left, probe()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(seen)) => last = Some(seen),
            Err(_elapsed) => {
                assert!(
                    last.is_some(),
                    "{what}: not within {limit:?}; the first look did not even end"
                );
            }
        }
        assert!(
            start.elapsed() < limit,
            "{what}: not within {limit:?}; last seen: {last:#?}"
        );
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Looks until the value that `probe` gives passes `wanted`.
///
/// # Panics
///
/// When the limit passes, with `what` and the last value.
pub async fn until_value<T: Debug>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    until(what, limit, async || {
        let value = probe().await;
        if wanted(&value) {
            Ok(value)
        } else {
            Err(value)
        }
    })
    .await
}

/// Watches for `span` that `probe` stays `Ok`: for what must not happen.
///
/// # Panics
///
/// At the first `Err`, with `what` and its value.
pub async fn stays<S: Debug>(
    what: &str,
    span: Duration,
    mut probe: impl AsyncFnMut() -> Result<(), S>,
) {
    let start = Instant::now();
    while start.elapsed() < span {
        if let Err(seen) = probe().await {
            panic!(
                "{what}: no longer true after {:?}; seen: {seen:#?}",
                start.elapsed()
            );
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
