//! What the server and the wire tell: each is a reason to look again, never data.

use std::{sync::Arc, time::Duration};

use fencepost_crds::RefreshMode;
use fencepost_ledger::{Presence, Trigger};
use fencepost_mcp::{EndReason, SessionEvent};
use fencepost_store::Mode;

use super::{
    super::{
        subscribe::Wanted,
        table::{Addressed, Slot},
    },
    Connected, EndCause,
};

impl Connected {
    pub(super) fn on_event(&mut self, event: Option<SessionEvent>) -> Option<EndCause> {
        let metrics = Arc::clone(&self.context.metrics);
        let name = &self.server.name;
        match event {
            None => return Some(EndCause::Server(EndReason::Closed)),
            Some(SessionEvent::Ended { reason }) => return Some(EndCause::Server(reason)),
            Some(SessionEvent::Updated { uri }) => self.on_updated(&uri),
            Some(SessionEvent::ListChanged) => {
                metrics.notification(name, "list_changed", "counted");
                self.look_for_the_missing();
            }
            Some(SessionEvent::StreamOpened) => metrics.notification(name, "stream", "opened"),
            Some(SessionEvent::StreamFailed { reason, retry_in }) => {
                metrics.notification(name, "stream", "failed");
                tracing::info!(%name, %reason, retry_in_ms = retry_in.as_millis(), "the notification stream ended");
            }
            Some(SessionEvent::Gap { reason }) => {
                metrics.notification(name, "gap", reason.as_str());
                self.on_gap(reason.as_str());
            }
            Some(SessionEvent::Ignored { kind }) => metrics.notification(name, kind, "ignored"),
        }
        None
    }

    pub(super) fn on_updated(&mut self, uri: &str) {
        let (slot, disposition) = match self.table.addressed(uri, crate::desired::normal_form) {
            Addressed::Exactly(slot) => (slot, "pulsed"),
            Addressed::ByNormalForm(slot) => (slot, "normal_form"),
            Addressed::Below(slot) => (slot, "sub_resource"),
            Addressed::Nobody => {
                // Counted without its name: it may be another tenant's.
                self.context
                    .metrics
                    .notification(&self.server.name, "updated", "unknown_uri");
                return;
            }
        };
        let window = self.quiet.get();
        let Some(entry) = self.table.get_mut(slot) else {
            return;
        };
        if entry.desired.mode == RefreshMode::Poll {
            self.context
                .metrics
                .notification(&self.server.name, "updated", "polled");
            return;
        }
        self.context
            .metrics
            .notification(&self.server.name, "updated", disposition);
        self.context.marks.notification(entry.id, entry.generation);
        if !entry.delivery_proven {
            entry.delivery_proven = true;
            self.flags
                .insert(entry.id, (entry.volatility.is_volatile(), true));
        }
        // A volatile resource changes with each read: it is read at its interval, not at each word.
        let window = if entry.volatility.is_volatile() {
            entry
                .refresh
                .poll_interval
                .min(entry.refresh.max_staleness / 2)
        } else {
            window
        };
        self.table.pulse(slot, Trigger::Notification, window);
    }

    /// Notifications may have been missed: subscribe again, read after the acknowledgement.
    pub(super) fn on_gap(&mut self, reason: &'static str) {
        let mut again = Vec::new();
        let mut polled = Vec::new();
        for (slot, entry) in self.table.entries() {
            if !entry.active {
                continue;
            }
            self.context.marks.gap(entry.id, entry.generation, reason);
            if entry.mode == Mode::Subscribe {
                again.push(Wanted {
                    slot,
                    uri: Arc::clone(&entry.uri),
                    again: true,
                });
            } else {
                polled.push(slot);
            }
        }
        self.subscribe(again);
        for slot in polled {
            self.table.pulse(slot, Trigger::Gap, Duration::ZERO);
        }
    }

    /// The list changed: what was not found may be there again.
    pub(super) fn look_for_the_missing(&mut self) {
        let missing: Vec<Slot> = self
            .table
            .entries()
            .filter(|(_, entry)| entry.presence != Presence::Present)
            .map(|(slot, _)| slot)
            .collect();
        for slot in missing {
            self.table
                .pulse(slot, Trigger::TombstoneCheck, Duration::ZERO);
        }
    }
}
