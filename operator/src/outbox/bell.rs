//! Looks at the outbox for all couriers: on a hint at once, else once a second.
//!
//! Out goes the position up to which every event has its supersede note, so that no courier need wait
//! for one. A hint is only a hint: the look each second is what can be relied on.

use std::time::Duration;

use fencepost_store::{OutboxListener, Store};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_secs(1);
/// Notes written before couriers hear of the events: some tens of milliseconds of comparing.
const NOTES: u32 = 256;

/// The head so far, and the task that raises it until `shutdown`.
pub(super) fn start(
    store: Store,
    shutdown: CancellationToken,
) -> (JoinHandle<()>, watch::Receiver<i64>) {
    let (head, seen) = watch::channel(0);
    let listener = store.outbox_listener();
    let task = tokio::spawn(async move {
        shutdown
            .run_until_cancelled(ring(&store, listener, &head))
            .await;
    });
    (task, seen)
}

async fn ring(store: &Store, mut listener: OutboxListener, head: &watch::Sender<i64>) {
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = listener.heard() => {}
            _ = tick.tick() => {}
        }
        loop {
            let before = *head.borrow();
            match store.write_pending_supersedes(before, NOTES).await {
                Ok(through) if through > before => head.send_replace(through),
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(
                        category = error.category(),
                        "the outbox is looked at again in a second"
                    );
                    break;
                }
            };
        }
    }
}
