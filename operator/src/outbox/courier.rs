//! The task of one index: holds its lease, reads what it has to be told, tells it, records how far.

use std::{sync::Arc, time::Duration};

use fencepost_store::{DeliveryFailure, EventShape, IndexPosition, StoreError};
use fencepost_views::LiveKind;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Context,
    backlog::{Backlog, Next, Reached, Retries},
    webhook::{Endpoint, Refusal},
};
use crate::{desired::DesiredIndex, metrics::Name};

/// A replica that is killed is replaced within this time.
const LEASE: Duration = Duration::from_secs(10);
/// Three chances to renew before it runs out.
const RENEW: Duration = Duration::from_secs(3);
/// Progress goes to the ledger at most this often, since each time makes a dead row, and a snapshot
/// that somebody holds open keeps them all. What was not recorded is told again after a crash.
const RECORD: Duration = Duration::from_millis(250);
/// A database that is away, an object that is not published yet, a lease that another replica has.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// What is in flight may end after the shutdown: most receivers answer in less.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

pub(super) struct Courier {
    uid: Uuid,
    name: Name,
    index: DesiredIndex,
    context: Context,
    /// Events up to here are there and have their notes.
    head: watch::Receiver<i64>,
    stop: CancellationToken,
}

/// What became of a try.
enum Told {
    Confirmed,
    Refused(Refusal),
    /// The ledger could not be read: nothing was sent.
    NotRead,
}

impl Courier {
    pub fn new(
        uid: Uuid,
        index: DesiredIndex,
        context: Context,
        head: watch::Receiver<i64>,
        stop: CancellationToken,
    ) -> Self {
        let name = Name::new(&index.key.namespace, &index.key.name);
        Self {
            uid,
            name,
            index,
            context,
            head,
            stop,
        }
    }

    pub async fn run(mut self) {
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            if let Err(error) = self.hold().await {
                tracing::debug!(index = %self.name, category = error.category(), "deliveries wait for the database");
            }
            stop.run_until_cancelled(sleep(LOOK_AGAIN)).await;
        }
        if let Err(error) = self.context.store.release_delivery(self.uid).await {
            tracing::debug!(index = %self.name, category = error.category(), "the lease was not released; it runs out");
        }
    }

    /// Takes the lease if it can be had and delivers as long as it holds.
    async fn hold(&mut self) -> Result<(), StoreError> {
        let store = self.context.store.clone();
        // Its row comes with the publishing of the manifests; the lease refers to it.
        if store.load_index(self.uid).await?.is_none()
            || !store.claim_delivery(self.uid, LEASE).await?
        {
            return Ok(());
        }
        let claimed = Instant::now();
        // Again, under the lease: whoever had it may have come further since.
        let Some(position) = store.load_index(self.uid).await? else {
            return Ok(());
        };
        let endpoint = match Endpoint::new(
            &self.index,
            &self.context.egress,
            self.context.config.timeout,
        ) {
            Ok(endpoint) => Arc::new(endpoint),
            Err(error) => {
                return self.untold(&position, crate::sentence::chain(&error)).await;
            }
        };
        if position.attempts == 0 && position.last_error.is_some() {
            store.clear_failure(self.uid).await?;
            self.changed();
        }
        let attempts = u32::try_from(position.attempts).unwrap_or_default();
        let backlog = Backlog::after(
            position.acknowledged_position,
            attempts,
            Retries(self.context.config.retry),
        );
        let recorded = Reached {
            acknowledged: position.acknowledged_position,
            delivered: position.delivered_position,
        };
        let ledger = Ledger {
            recorded,
            confirmed: false,
            failure: None,
            next: Instant::now(),
        };
        self.deliver(&endpoint, backlog, ledger, claimed).await
    }

    /// Nothing can be sent until the object changes, which makes another courier.
    async fn untold(&self, position: &IndexPosition, error: String) -> Result<(), StoreError> {
        if position.last_error.as_ref() != Some(&error) {
            let failure = DeliveryFailure {
                attempts: 0,
                error,
                retry_in: LEASE,
            };
            self.context
                .store
                .record_failure(self.uid, &failure)
                .await?;
            self.changed();
        }
        self.stop.run_until_cancelled(sleep(RENEW)).await;
        Ok(())
    }

    /// Who looks at this index looks again.
    fn changed(&self) {
        let name = Some(self.name.to_string());
        self.context.live.tell(LiveKind::Index, name);
    }

    async fn deliver(
        &mut self,
        endpoint: &Arc<Endpoint>,
        mut backlog: Backlog,
        mut ledger: Ledger,
        mut claimed: Instant,
    ) -> Result<(), StoreError> {
        let store = self.context.store.clone();
        let mut renew = interval(RENEW);
        renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tries = FuturesUnordered::new();
        loop {
            self.read_on(&mut backlog).await?;
            while let Some(Next { position }) = backlog.next(Instant::now()) {
                tries.push(self.tell(Arc::clone(endpoint), position));
            }
            if ledger.is_due(&backlog) {
                ledger.record(self, &backlog).await?;
            }
            let wakes_at = backlog.wakes_at();
            let full = backlog.room().is_none();
            tokio::select! {
                () = self.stop.cancelled() => break,
                _ = renew.tick() => {
                    match store.claim_delivery(self.uid, LEASE).await {
                        Ok(true) => claimed = Instant::now(),
                        // Another replica has it: what is in flight is told twice at worst.
                        Ok(false) => return Ok(()),
                        Err(error) if claimed.elapsed() >= LEASE => return Err(error),
                        Err(_) => {}
                    }
                }
                Some((position, told)) = tries.next() => self.settle(&mut backlog, &mut ledger, position, told),
                changed = self.head.changed(), if !full => if changed.is_err() { break },
                () = sleep_until(wakes_at.unwrap_or_else(Instant::now)), if wakes_at.is_some() => {}
                () = sleep_until(ledger.next), if ledger.differs(&backlog) => {}
            }
        }
        let _late = timeout(LAST_ANSWERS, async {
            while let Some((position, told)) = tries.next().await {
                self.settle(&mut backlog, &mut ledger, position, told);
            }
        })
        .await;
        ledger.record(self, &backlog).await
    }

    async fn read_on(&mut self, backlog: &mut Backlog) -> Result<(), StoreError> {
        let head = *self.head.borrow_and_update();
        while let Some((after, limit)) = backlog.room()
            && after < head
        {
            let read = self
                .context
                .store
                .deliverables_after(self.uid, after, limit)
                .await?;
            backlog.take(read);
        }
        Ok(())
    }

    /// One try. The body comes from the ledger at that moment: a permission withdrawn since the event
    /// takes the content out of it, and nothing else ever changes it.
    fn tell(
        &self,
        endpoint: Arc<Endpoint>,
        position: i64,
    ) -> impl Future<Output = (i64, Told)> + use<> {
        let store = self.context.store.clone();
        let shape = EventShape {
            content: self.index.include_content,
            supersede: self.index.include_supersede,
        };
        async move {
            let event = match store.outbox_event(position, shape).await {
                Ok(Some(event)) => event,
                // Older than the outbox keeps: there is nothing left to tell.
                Ok(None) => return (position, Told::Confirmed),
                Err(_) => return (position, Told::NotRead),
            };
            let Ok(body) = serde_json::to_vec(&event) else {
                return (position, Told::NotRead);
            };
            let told = match endpoint.tell(&event.id, body).await {
                Ok(()) => Told::Confirmed,
                Err(refusal) => Told::Refused(refusal),
            };
            (position, told)
        }
    }

    fn settle(&self, backlog: &mut Backlog, ledger: &mut Ledger, position: i64, told: Told) {
        let now = Instant::now();
        let was_oldest = backlog
            .oldest()
            .is_some_and(|(oldest, _)| oldest == position);
        match told {
            Told::NotRead => backlog.put_back(position, now + LOOK_AGAIN),
            Told::Confirmed => {
                self.context.metrics.delivery(&self.name, "acknowledged");
                backlog.confirmed(position);
                ledger.confirmed = true;
                if was_oldest {
                    ledger.failure = None;
                }
            }
            Told::Refused(refusal) => {
                self.context.metrics.delivery(&self.name, refusal.outcome);
                let retry_in = if refusal.gone {
                    backlog.gone(position, now)
                } else {
                    backlog.failed(position, now, rand::random())
                };
                let attempts = backlog.oldest().map_or(1, |(_, attempts)| attempts);
                if was_oldest {
                    if attempts == 1 {
                        tracing::info!(index = %self.name, error = refusal.message, "an index was not told; it is tried again");
                    }
                    ledger.failure = Some(DeliveryFailure {
                        attempts,
                        error: refusal.message,
                        retry_in,
                    });
                }
            }
        }
    }
}

/// What the ledger knows of the progress, and when it may be told more.
struct Ledger {
    recorded: Reached,
    /// Something was confirmed since.
    confirmed: bool,
    /// A failure of the oldest event that is not recorded.
    failure: Option<DeliveryFailure>,
    next: Instant,
}

impl Ledger {
    fn differs(&self, backlog: &Backlog) -> bool {
        self.failure.is_some() || self.recorded != backlog.reached()
    }

    /// At once when nothing is in flight any more, else a few times a second.
    fn is_due(&self, backlog: &Backlog) -> bool {
        self.differs(backlog) && (backlog.in_flight() == 0 || self.next <= Instant::now())
    }

    async fn record(&mut self, courier: &Courier, backlog: &Backlog) -> Result<(), StoreError> {
        if !self.differs(backlog) {
            return Ok(());
        }
        let store = &courier.context.store;
        let reached = backlog.reached();
        if reached.delivered > self.recorded.delivered && reached.delivered > reached.acknowledged {
            store
                .record_delivered(courier.uid, reached.delivered)
                .await?;
        }
        if reached.acknowledged > self.recorded.acknowledged {
            store
                .record_acknowledged(courier.uid, reached.acknowledged, self.confirmed)
                .await?;
            self.confirmed = false;
        }
        self.recorded = reached;
        if let Some(failure) = self.failure.take() {
            store.record_failure(courier.uid, &failure).await?;
        }
        self.next = Instant::now() + RECORD;
        courier.changed();
        Ok(())
    }
}
