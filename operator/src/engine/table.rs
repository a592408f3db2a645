//! What one session watches, in memory: where each resource stands between pulse and read.
//!
//! A cache of intentions only. The ledger is the truth; when the session ends the table is dropped.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use fencepost_ledger::{
    Generation, Presence, ResourceId, Trigger,
    address::ancestors,
    coalesce::{Coalescer, Step},
    schedule::Refresh,
    volatile::Volatility,
};
use fencepost_store::Mode;
use tokio::time::Instant;

use super::answer::ContentRules;
use crate::desired::DesiredResource;

/// Key of an entry. Never given twice: an answer or a timer that comes after a removal finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u64);

/// One watched resource.
pub struct Entry {
    pub id: ResourceId,
    pub uri: Arc<str>,
    pub generation: Generation,
    pub desired: DesiredResource,
    pub rules: Arc<ContentRules>,
    pub refresh: Refresh,
    /// How refresh is driven in fact; settled when the subscription is answered.
    pub mode: Mode,
    /// Reads may be issued.
    pub active: bool,
    pub presence: Presence,
    pub has_version: bool,
    pub coalescer: Coalescer,
    pub failures: u32,
    pub volatility: Volatility,
    /// A notification has come for it in this or an earlier session.
    pub delivery_proven: bool,
    /// When its last read was begun, and the one before it, for the quiet window.
    pub begun_at: Option<Duration>,
    pub begun_before: Option<Duration>,
    due_at: Option<Duration>,
    due_trigger: Trigger,
    /// The entry's earliest timer in the heap. A later due time waits for it to fire: a resource that is
    /// read a hundred times a second does not fill the heap with the audits that it put off.
    timer_at: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The quiet window of a notification ends.
    Quiet,
    /// A poll, audit, retry or tombstone check is due.
    Due,
}

/// The watched resources of a session.
pub struct Table {
    origin: Instant,
    slots: BTreeMap<Slot, Entry>,
    next_slot: u64,
    by_uri: HashMap<Arc<str>, Slot>,
    by_normal: HashMap<String, Slot>,
    timers: BinaryHeap<Reverse<(Duration, Slot, Timer)>>,
    ready: VecDeque<Slot>,
}

/// Which watched resource a notification speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressed {
    Exactly(Slot),
    /// Equal only in RFC 3986 normal form.
    ByNormalForm(Slot),
    /// A sub-resource of a watched one.
    Below(Slot),
    Nobody,
}

impl Table {
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
            slots: BTreeMap::new(),
            next_slot: 0,
            by_uri: HashMap::new(),
            by_normal: HashMap::new(),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Time since the table's origin: the clock of coalescers and timers.
    pub fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub fn insert(&mut self, entry: Entry) -> Slot {
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        self.by_uri.insert(Arc::clone(&entry.uri), slot);
        if let Some(normal) = &entry.desired.uri_normal {
            self.by_normal.entry(normal.clone()).or_insert(slot);
        }
        self.slots.insert(slot, entry);
        slot
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.slots.remove(&slot)?;
        self.by_uri.remove(&entry.uri);
        if let Some(normal) = &entry.desired.uri_normal
            && self.by_normal.get(normal) == Some(&slot)
        {
            self.by_normal.remove(normal);
        }
        self.ready.retain(|ready| *ready != slot);
        Some(entry)
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.slots.get_mut(&slot)
    }

    pub fn slot_of(&self, uri: &str) -> Option<Slot> {
        self.by_uri.get(uri).copied()
    }

    pub fn entries(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        self.slots.iter().map(|(slot, entry)| (*slot, entry))
    }

    pub fn len(&self) -> usize {
        self.by_uri.len()
    }

    /// Finds the watched resource that an update's URI means. The normal form of an arriving URI is
    /// only worked out when nothing equals it.
    pub fn addressed(&self, uri: &str, normal: impl FnOnce(&str) -> Option<String>) -> Addressed {
        if let Some(slot) = self.slot_of(uri) {
            return Addressed::Exactly(slot);
        }
        if let Some(slot) = normal(uri).and_then(|n| self.by_normal.get(&n).copied()) {
            return Addressed::ByNormalForm(slot);
        }
        ancestors(uri)
            .find_map(|ancestor| self.slot_of(ancestor))
            .map_or(Addressed::Nobody, Addressed::Below)
    }

    /// Something asks for a read of an active resource.
    pub fn pulse(&mut self, slot: Slot, trigger: Trigger, window: Duration) {
        let now = self.now();
        if let Some(entry) = self.get_mut(slot)
            && entry.active
        {
            let step = entry.coalescer.pulse(trigger, now, window);
            self.take(slot, step);
        }
    }

    /// Acts on what a coalescer asks for.
    pub fn take(&mut self, slot: Slot, step: Step) {
        match step {
            Step::Nothing => {}
            Step::WakeAt(at) => self.timers.push(Reverse((at, slot, Timer::Quiet))),
            Step::Enqueue => self.ready.push_back(slot),
        }
    }

    /// Sets when the resource is next read without being asked; replaces what was set before.
    pub fn schedule(&mut self, slot: Slot, after: Duration, trigger: Trigger) {
        let at = self.now() + after;
        if let Some(entry) = self.get_mut(slot) {
            entry.due_at = Some(at);
            entry.due_trigger = trigger;
            if entry.timer_at.is_none_or(|timer| at < timer) {
                entry.timer_at = Some(at);
                self.timers.push(Reverse((at, slot, Timer::Due)));
            }
        }
    }

    /// When `fire` has something to do.
    pub fn next_timer(&self) -> Option<Instant> {
        let Reverse((at, ..)) = self.timers.peek()?;
        Some(self.origin + *at)
    }

    /// Fires the timers that are due.
    pub fn fire(&mut self) {
        let now = self.now();
        while let Some(Reverse((at, slot, timer))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(entry) = self.get_mut(slot) else {
                continue;
            };
            match timer {
                Timer::Quiet => {
                    let step = entry.coalescer.wake(now);
                    self.take(slot, step);
                }
                Timer::Due if entry.timer_at == Some(at) => {
                    entry.timer_at = entry.due_at.filter(|due| *due > now);
                    if let Some(later) = entry.timer_at {
                        self.timers.push(Reverse((later, slot, Timer::Due)));
                    } else if entry.due_at.take().is_some() {
                        let trigger = entry.due_trigger;
                        self.pulse(slot, trigger, Duration::ZERO);
                    }
                }
                // Overtaken by an earlier one.
                Timer::Due => {}
            }
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next resource whose turn it is, and why; it is in flight from now on.
    pub fn begin_next(&mut self) -> Option<(Slot, Trigger)> {
        let now = self.now();
        while let Some(slot) = self.ready.pop_front() {
            let Some(entry) = self.get_mut(slot) else {
                continue;
            };
            if let Some(trigger) = entry.coalescer.begin() {
                entry.begun_before = entry.begun_at.replace(now);
                return Some((slot, trigger));
            }
        }
        None
    }
}

impl Entry {
    pub fn new(
        id: ResourceId,
        generation: Generation,
        desired: DesiredResource,
        presence: Presence,
        has_version: bool,
        delivery_proven: bool,
    ) -> Self {
        Self {
            id,
            uri: Arc::from(desired.uri.as_str()),
            generation,
            rules: Arc::new(ContentRules {
                store: desired.store,
                ignore_json_pointers: desired.ignore_json_pointers.clone(),
            }),
            refresh: refresh_of(&desired),
            desired,
            mode: Mode::Poll,
            active: false,
            presence,
            has_version,
            coalescer: Coalescer::default(),
            failures: 0,
            volatility: Volatility::default(),
            delivery_proven,
            begun_at: None,
            begun_before: None,
            due_at: None,
            due_trigger: Trigger::Poll,
            timer_at: None,
        }
    }
}

/// The refresh settings of a desired resource.
pub fn refresh_of(desired: &DesiredResource) -> Refresh {
    Refresh {
        max_staleness: desired.max_staleness,
        poll_interval: desired.poll_interval,
        jitter_percent: desired.jitter_percent.into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use uuid::Uuid;

    fn desired(uri: &str) -> DesiredResource {
        DesiredResource {
            uri: uri.to_owned(),
            uri_normal: crate::desired::normal_form(uri),
            mode: fencepost_crds::RefreshMode::Auto,
            cohort: true,
            max_staleness: Duration::from_mins(1),
            poll_interval: Duration::from_secs(30),
            jitter_percent: 0,
            watches: Vec::new(),
            store: true,
            keep_versions: 1,
            reconcile_at: Vec::new(),
            ignore_json_pointers: Vec::new(),
        }
    }

    fn table(uris: &[&str]) -> Table {
        let mut table = Table::new();
        for uri in uris {
            let id = ResourceId::new(Uuid::now_v7());
            let mut entry = Entry::new(
                id,
                Generation::new(1),
                desired(uri),
                Presence::Present,
                false,
                false,
            );
            entry.active = true;
            table.insert(entry);
        }
        table
    }

    #[test]
    fn a_notification_finds_the_resource_that_it_means() {
        let table = table(&["docs://team/a", "docs://team/b/", "HTTP://Example.com/%7Ex"]);
        let meant = |uri: &str| table.addressed(uri, crate::desired::normal_form);
        assert_eq!(meant("docs://team/a"), Addressed::Exactly(Slot(0)));
        assert_eq!(meant("docs://team/a/part?x=1"), Addressed::Below(Slot(0)));
        assert_eq!(meant("docs://team/b/c"), Addressed::Below(Slot(1)));
        assert_eq!(
            meant("http://example.com/~x"),
            Addressed::ByNormalForm(Slot(2))
        );
        assert_eq!(meant("docs://team/other"), Addressed::Nobody);
        assert_eq!(meant("docs://team/ab"), Addressed::Nobody);
    }

    #[test]
    fn putting_off_a_due_time_does_not_fill_the_heap_and_the_last_one_counts() {
        let mut table = table(&["docs://a"]);
        for hours in 1..=1000 {
            table.schedule(Slot(0), Duration::from_hours(hours), Trigger::Audit);
        }
        assert_eq!(table.timers.len(), 1);
        table.fire();
        assert!(!table.has_ready());
        table.schedule(Slot(0), Duration::ZERO, Trigger::Poll);
        table.fire();
        assert_eq!(table.begin_next(), Some((Slot(0), Trigger::Poll)));
    }

    #[test]
    fn what_follows_a_removed_resource_is_not_reached_by_what_was_meant_for_that() {
        let mut table = table(&["docs://a"]);
        table.schedule(Slot(0), Duration::ZERO, Trigger::Poll);
        table.remove(Slot(0)).unwrap();
        let id = ResourceId::new(Uuid::now_v7());
        let mut entry = Entry::new(
            id,
            Generation::new(1),
            desired("docs://b"),
            Presence::Present,
            false,
            false,
        );
        entry.active = true;
        let next = table.insert(entry);
        assert_ne!(next, Slot(0));
        table.fire();
        assert!(!table.has_ready());
        assert_eq!(table.slot_of("docs://a"), None);
        // Same generation, and yet a late answer to the removed one finds nothing.
        assert!(table.get_mut(Slot(0)).is_none());
        assert_eq!(table.get_mut(next).unwrap().generation, Generation::new(1));
    }
}
