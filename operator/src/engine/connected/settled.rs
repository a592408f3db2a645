//! Reads dispatched and settled: what their verdicts mean for the next one.

use std::{sync::Arc, time::Duration};

use fencepost_ledger::{Presence, Trigger, Verdict};
use fencepost_store::{Mode, StoreError, TombstoneVerdict};

use super::{
    super::{
        limits::ReadPermit,
        read::{self, ReadDone, ReadJob, ReadResult},
        table::Slot,
    },
    Connected, EndCause, HOLD, READ_AGAIN, REPEAT_WITHIN,
};

impl Connected {
    pub(super) fn dispatch(&mut self, permit: ReadPermit) {
        let Some((slot, trigger)) = self.table.begin_next() else {
            return;
        };
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        let job = ReadJob {
            slot,
            resource: entry.id,
            generation: entry.generation,
            session: self.key.generation,
            uri: Arc::clone(&entry.uri),
            trigger,
            rules: Arc::clone(&entry.rules),
            server_version: Arc::clone(&self.server_version),
            permit,
        };
        let (store, metrics) = (
            self.context.store.clone(),
            Arc::clone(&self.context.metrics),
        );
        let client = self.client.clone();
        let done = self.done.0.clone();
        let task = async move {
            let read = read::run(&store, &metrics, &client, job).await;
            // The loop is gone only when the session has ended, whose end settles the read.
            let _ = done.send(read).await;
        };
        self.tasks
            .spawn(self.ended.clone().run_until_cancelled_owned(task));
    }

    pub(super) async fn on_done(&mut self, done: ReadDone) -> Result<Option<EndCause>, StoreError> {
        let name = self.server.name.clone();
        let (verdict, reason, ttl) = match done.result {
            ReadResult::Settled {
                verdict,
                reason,
                ttl,
                retry_after,
                unauthorized,
            } => {
                if let Some(pause) = retry_after {
                    self.server.limits.pause(pause);
                }
                self.context
                    .metrics
                    .read_settled(&name, done.trigger, verdict, reason);
                self.context.live.resource(done.resource);
                if unauthorized {
                    return Ok(Some(EndCause::Unauthorized));
                }
                (verdict, reason, ttl)
            }
            ReadResult::NotIssued(refusal) => {
                tracing::debug!(%refusal, "a read was not issued");
                // The ledger holds another generation or session: what this table knew is gone.
                if self.table.remove(done.slot).is_some() {
                    self.reopen_later();
                }
                return Ok(None);
            }
            ReadResult::StoreAway => (Verdict::Failed, None, None),
        };
        let window = self.quiet.get();
        let now = self.table.now();
        let Some(entry) = self.table.get_mut(done.slot) else {
            return Ok(None);
        };
        match verdict {
            Verdict::Accepted | Verdict::Unchanged => {
                let changed = verdict == Verdict::Accepted;
                let had_version = entry.has_version;
                entry.failures = 0;
                entry.presence = Presence::Present;
                entry.has_version = true;
                self.learn(done.slot, done.trigger, changed, had_version);
                self.answered(done.slot, now, window);
                self.schedule_next(done.slot, ttl);
            }
            Verdict::NotFound => {
                entry.failures = 0;
                if entry.presence == Presence::Present {
                    entry.presence = Presence::TombstonePending;
                }
                self.answered(done.slot, now, window);
                self.on_missing(done.slot).await?;
            }
            Verdict::Refused | Verdict::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                let again = READ_AGAIN.delay(entry.failures, rand::random());
                let step = entry.coalescer.unanswered(now, window);
                self.table.take(done.slot, step);
                tracing::debug!(reason, "a read brought no usable answer");
                self.table.schedule(done.slot, again, done.trigger);
            }
            // Another generation, a close, or a later read: the ledger has moved on.
            Verdict::Stale(_) | Verdict::AlreadySettled | Verdict::NeverIssued => {
                let step = entry.coalescer.unanswered(now, window);
                self.table.take(done.slot, step);
                self.schedule_next(done.slot, None);
            }
        }
        Ok(None)
    }

    pub(super) fn answered(&mut self, slot: Slot, now: Duration, window: Duration) {
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        let (convergence, step) = entry.coalescer.answered(now, window);
        if let Some(convergence) = convergence {
            self.context
                .metrics
                .converged(&self.server.name, convergence);
        }
        self.table.take(slot, step);
    }

    /// What the read tells about the server's manners: repeats, noise, silence.
    pub(super) fn learn(&mut self, slot: Slot, trigger: Trigger, changed: bool, had_version: bool) {
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        if trigger == Trigger::Notification {
            if changed {
                self.quiet.useful();
            } else if let Some(read_of_the_change) = entry.begun_before
                && let Some(pulse) = entry.coalescer.dirty_since()
                && let Some(gap) = pulse.checked_sub(read_of_the_change)
                && gap < REPEAT_WITHIN
            {
                // The repeat came when the read of the change had been begun already.
                self.quiet.wasted(gap + self.quiet.get());
            }
            return;
        }
        if !had_version {
            return;
        }
        entry.volatility.record(changed);
        let silent = changed && trigger == Trigger::Audit && entry.mode == Mode::Subscribe;
        if silent {
            entry.delivery_proven = false;
        }
        self.flags.insert(
            entry.id,
            (entry.volatility.is_volatile(), entry.delivery_proven),
        );
    }

    pub(super) fn schedule_next(&mut self, slot: Slot, ttl: Option<Duration>) {
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        let unit = rand::random();
        let (after, trigger) = match (entry.presence, entry.mode) {
            (Presence::TombstonePending, _) => (
                entry.refresh.tombstone_check_after(unit),
                Trigger::TombstoneCheck,
            ),
            (Presence::Present | Presence::Tombstoned, Mode::Poll) => {
                (entry.refresh.poll_after(ttl, unit), Trigger::Poll)
            }
            (Presence::Present | Presence::Tombstoned, Mode::Subscribe) => {
                (entry.refresh.audit_after(unit), Trigger::Audit)
            }
        };
        self.table.schedule(slot, after, trigger);
    }

    /// An in-order read did not find the resource: confirm its tombstone when that is due.
    pub(super) async fn on_missing(&mut self, slot: Slot) -> Result<(), StoreError> {
        self.schedule_next(slot, None);
        let Some(entry) = self.table.get_mut(slot) else {
            return Ok(());
        };
        if entry.presence != Presence::TombstonePending {
            return Ok(());
        }
        let item = (entry.id, entry.generation);
        let verdicts = self.context.store.confirm_tombstones(&[item], HOLD).await?;
        match verdicts.first() {
            Some(TombstoneVerdict::Confirmed) => {
                self.told_of_hold = false;
                self.context.live.resource(item.0);
                // Its generation is closed; the next one watches for its return.
                if let Some(entry) = self.table.remove(slot) {
                    self.open(vec![entry.desired]).await?;
                }
            }
            Some(TombstoneVerdict::Held) if self.told_of_hold => {}
            Some(TombstoneVerdict::Held) => {
                self.told_of_hold = true;
                tracing::warn!(server = %self.server.name, "tombstones are held: too many resources vanished at once");
            }
            Some(TombstoneVerdict::NotYet | TombstoneVerdict::Refused) | None => {}
        }
        Ok(())
    }
}
