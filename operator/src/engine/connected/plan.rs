//! From what is wanted to what is watched: generations opened, subscribed, activated, closed.

use std::{collections::HashMap, sync::Arc, time::Duration};

use fencepost_crds::RefreshMode;
use fencepost_ledger::{ResourceId, Trigger};
use fencepost_mcp::WatchOutcome;
use fencepost_store::{Mode, ResourceSpec, StoreError};

use super::{
    super::{
        subscribe::{self, Closing, Wanted, Watched},
        supervisor::SessionSpec,
        table::{Entry, Slot, refresh_of},
    },
    CHUNK, Connected,
};
use crate::desired::DesiredResource;

impl Connected {
    /// Brings the table in line with what is wanted: closes, opens, updates.
    pub(super) async fn apply(&mut self, spec: &SessionSpec) -> Result<(), StoreError> {
        let wanted: HashMap<&str, &DesiredResource> = spec
            .resources
            .iter()
            .map(|resource| (resource.uri.as_str(), resource))
            .collect();
        let mut gone = Vec::new();
        let mut updated = Vec::new();
        for (slot, entry) in self.table.entries() {
            match wanted.get(&*entry.uri) {
                // Another way of refresh, or a close that is still owed, is another generation.
                Some(resource) if resource.mode == entry.desired.mode => {
                    if **resource != entry.desired {
                        updated.push((slot, (*resource).clone()));
                    }
                }
                _ => gone.push(slot),
            }
        }
        self.close(&gone).await?;
        let keep: Vec<String> = spec.resources.iter().map(|r| r.uri.clone()).collect();
        self.context.store.unwatch_except(&self.key, &keep).await?;
        self.update(updated).await?;
        let added: Vec<DesiredResource> = spec
            .resources
            .iter()
            .filter(|resource| self.table.slot_of(&resource.uri).is_none())
            .cloned()
            .collect();
        self.open(added).await
    }

    pub(super) async fn close(&mut self, slots: &[Slot]) -> Result<(), StoreError> {
        for chunk in slots.chunks(CHUNK) {
            let entries: Vec<Entry> = chunk.iter().filter_map(|s| self.table.remove(*s)).collect();
            let items: Vec<_> = entries.iter().map(|e| (e.id, e.generation)).collect();
            self.context.store.begin_unsubscribe(&items).await?;
            let closing = entries
                .iter()
                .map(|entry| Closing {
                    resource: entry.id,
                    generation: entry.generation,
                    uri: entry.uri.to_string(),
                    subscribed: entry.mode == Mode::Subscribe || !entry.active,
                })
                .collect();
            for entry in &entries {
                self.context.live.resource(entry.id);
            }
            let task =
                subscribe::unsubscribe(self.client.clone(), self.context.store.clone(), closing);
            self.tasks
                .spawn(self.ended.clone().run_until_cancelled_owned(task));
        }
        Ok(())
    }

    /// Closes everything in order, then waits for the answers within the unsubscribe's deadline.
    pub(super) async fn close_all(&mut self, forgotten: bool) {
        let slots: Vec<Slot> = self.table.entries().map(|(slot, _)| slot).collect();
        if self.close(&slots).await.is_err() {
            return;
        }
        if forgotten && let Err(error) = self.context.store.unwatch_except(&self.key, &[]).await {
            tracing::warn!(category = error.category(), "watches were not taken off");
        }
        self.tasks.close();
        // Reads in flight settle as STALE_AFTER_CLOSE when answered; the rest is given up.
        let patience = Duration::from_secs(5);
        if tokio::time::timeout(patience, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::debug!("some reads and unsubscribes were given up");
        }
    }

    pub(super) async fn update(
        &mut self,
        updated: Vec<(Slot, DesiredResource)>,
    ) -> Result<(), StoreError> {
        for chunk in updated.chunks(CHUNK) {
            let specs: Vec<ResourceSpec> = chunk
                .iter()
                .map(|(slot, resource)| {
                    let mode = self.table.get_mut(*slot).map_or(Mode::Poll, |e| e.mode);
                    spec_row(resource, mode)
                })
                .collect();
            self.context.store.put_resources(&self.key, &specs).await?;
            for (slot, resource) in chunk {
                let Some(entry) = self.table.get_mut(*slot) else {
                    continue;
                };
                let fresh = Entry::new(
                    entry.id,
                    entry.generation,
                    resource.clone(),
                    entry.presence,
                    entry.has_version,
                    entry.delivery_proven,
                );
                // Asked for, or what is digested differs: only another read can tell what it comes to.
                let reread = fresh.desired.ignore_json_pointers
                    != entry.desired.ignore_json_pointers
                    || (fresh.desired.store && !entry.desired.store)
                    || fresh.desired.reconcile_at != entry.desired.reconcile_at;
                entry.rules = fresh.rules;
                entry.refresh = fresh.refresh;
                entry.desired = fresh.desired;
                self.schedule_next(*slot, None);
                if reread {
                    self.table.pulse(*slot, Trigger::Manual, Duration::ZERO);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn open(&mut self, added: Vec<DesiredResource>) -> Result<(), StoreError> {
        let limit = self.server.desired.limits.max_subscriptions_per_session as usize;
        for chunk in added.chunks(CHUNK) {
            let offers = self.client.receipt().subscribe;
            let specs: Vec<ResourceSpec> = chunk
                .iter()
                .map(|resource| {
                    let subscribes = offers && resource.mode != RefreshMode::Poll;
                    spec_row(
                        resource,
                        if subscribes {
                            Mode::Subscribe
                        } else {
                            Mode::Poll
                        },
                    )
                })
                .collect();
            let rows = self.context.store.put_resources(&self.key, &specs).await?;
            let ids: Vec<ResourceId> = rows.iter().map(|row| row.id).collect();
            let opened = self.context.store.open_generations(&self.key, &ids).await?;
            let mut to_subscribe = Vec::new();
            let mut to_poll = Vec::new();
            for ((resource, row), generation) in chunk.iter().zip(rows).zip(opened) {
                let Some(generation) = generation else {
                    self.reopen_later();
                    continue;
                };
                let subscribes =
                    resource.mode != RefreshMode::Poll && self.table.len() < limit && offers;
                let slot = self.table.insert(Entry::new(
                    row.id,
                    generation,
                    resource.clone(),
                    row.presence,
                    row.digest.is_some(),
                    row.delivery_proven,
                ));
                if subscribes {
                    to_subscribe.push(Wanted {
                        slot,
                        uri: Arc::from(resource.uri.as_str()),
                        again: false,
                    });
                } else {
                    to_poll.push(slot);
                }
            }
            self.activate(to_poll, Mode::Poll).await?;
            self.subscribe(to_subscribe);
        }
        Ok(())
    }

    pub(super) fn subscribe(&mut self, wanted: Vec<Wanted>) {
        if wanted.is_empty() {
            return;
        }
        let task = subscribe::subscribe(self.client.clone(), wanted, self.watched.0.clone());
        self.tasks
            .spawn(self.ended.clone().run_until_cancelled_owned(task));
    }

    pub(super) async fn on_watched(&mut self, first: Watched) -> Result<(), StoreError> {
        let mut answers = vec![first];
        while answers.len() < CHUNK
            && let Ok(more) = self.watched.1.try_recv()
        {
            answers.push(more);
        }
        let (mut subscribed, mut polled) = (Vec::new(), Vec::new());
        for Watched { wanted, outcome } in answers {
            let watching = matches!(outcome, WatchOutcome::Watching);
            let slot = wanted.slot;
            let Some(entry) = self.table.get_mut(slot) else {
                continue;
            };
            if !watching {
                tracing::debug!(?outcome, "a URI is polled instead of subscribed");
            }
            if wanted.again && entry.active {
                // Read after the acknowledgement, whatever it was.
                self.table.pulse(slot, Trigger::Gap, Duration::ZERO);
            } else if watching {
                subscribed.push(slot);
            } else {
                polled.push(slot);
            }
        }
        self.activate(subscribed, Mode::Subscribe).await?;
        self.activate(polled, Mode::Poll).await
    }

    /// The subscription was answered: reads may be issued, the first at once.
    pub(super) async fn activate(
        &mut self,
        slots: Vec<Slot>,
        mode: Mode,
    ) -> Result<(), StoreError> {
        for chunk in slots.chunks(CHUNK) {
            let mut rows = Vec::with_capacity(chunk.len());
            for slot in chunk {
                if let Some(entry) = self.table.get_mut(*slot) {
                    rows.push((*slot, (entry.id, entry.generation, mode)));
                }
            }
            let ledger: Vec<_> = rows.iter().map(|(_, row)| *row).collect();
            let activated = self.context.store.activate(&self.key, &ledger).await?;
            for ((slot, (id, ..)), active) in rows.into_iter().zip(activated) {
                let Some(entry) = self.table.get_mut(slot) else {
                    continue;
                };
                if !active {
                    // Withdrawn or taken over meanwhile.
                    self.table.remove(slot);
                    self.reopen_later();
                    continue;
                }
                entry.mode = mode;
                entry.active = true;
                let trigger = if entry.has_version {
                    Trigger::Gap
                } else {
                    Trigger::Baseline
                };
                self.table.pulse(slot, trigger, Duration::ZERO);
                self.context.live.resource(id);
            }
        }
        Ok(())
    }
}

fn spec_row(resource: &DesiredResource, mode: Mode) -> ResourceSpec {
    let refresh = refresh_of(resource);
    ResourceSpec {
        uri: resource.uri.clone(),
        uri_normal: resource.uri_normal.clone(),
        watches: resource
            .watches
            .iter()
            .map(|watch| format!("{}/{}", watch.namespace, watch.name))
            .collect(),
        mode,
        cohort: resource.cohort,
        max_staleness: resource.max_staleness,
        read_interval: match mode {
            Mode::Poll => resource.poll_interval,
            Mode::Subscribe => refresh.audit_interval(),
        },
        store_content: resource.store,
        keep_versions: resource.keep_versions,
    }
}
