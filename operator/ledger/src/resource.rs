//! The state machine of one watched resource: issue, accept, close, not found.
//!
//! Holds: ordinals are never reused; the watermark never falls; after `begin_unsubscribe` nothing is
//! issued and no answer changes anything; every issued read settles exactly once; only an answer
//! that is in order (its ordinal above every settled one) changes what is true.

use std::collections::BTreeMap;

use crate::{
    content::Digest,
    identity::{Epoch, Generation, Ordinal, RequestId, SessionGeneration},
    receipt::{StaleReason, Verdict},
    state::{Presence, PublicState, SubscriptionState},
    trigger::Trigger,
};

/// A dispatched read that has no receipt yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    pub request: RequestId,
    pub ordinal: Ordinal,
    pub generation: Generation,
    pub session: SessionGeneration,
    pub epoch: Epoch,
    pub trigger: Trigger,
}

/// What the server's answer amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Content(Digest),
    NotFound,
    /// A typed refusal: the old value stays, marked stale.
    Refused,
    /// No usable answer: the old value stays, marked stale.
    Failed,
}

/// Why no read may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IssueRefusal {
    #[error("the subscription is not ACTIVE")]
    NotActive,
    #[error("another generation watches the resource")]
    OtherGeneration,
    #[error("another session holds the resource")]
    OtherSession,
    #[error("the subject's permission was withdrawn")]
    Revoked,
}

/// A transition that the state machine does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{from:?} has no such transition")]
pub struct NoTransition {
    pub from: SubscriptionState,
}

/// One resource: (server, subject, exact URI), whose identity is held by the caller.
#[derive(Debug, Clone)]
pub struct Resource {
    subscription: SubscriptionState,
    presence: Presence,
    revoked: bool,
    generation: Generation,
    session: SessionGeneration,
    epoch: Epoch,
    last_issued: Ordinal,
    /// Highest ordinal whose answer settled what is true: content or not found, in order.
    settled: Ordinal,
    watermark: Ordinal,
    close_ordinal: Option<Ordinal>,
    digest: Option<Digest>,
    in_flight: BTreeMap<RequestId, Issued>,
}

impl Default for Resource {
    fn default() -> Self {
        Self::new()
    }
}

impl Resource {
    /// A resource seen for the first time.
    pub const fn new() -> Self {
        Self {
            subscription: SubscriptionState::Discovered,
            presence: Presence::Present,
            revoked: false,
            generation: Generation::ZERO,
            session: SessionGeneration::ZERO,
            epoch: Epoch::ZERO,
            last_issued: Ordinal::ZERO,
            settled: Ordinal::ZERO,
            watermark: Ordinal::ZERO,
            close_ordinal: None,
            digest: None,
            in_flight: BTreeMap::new(),
        }
    }

    pub const fn subscription(&self) -> SubscriptionState {
        self.subscription
    }

    pub const fn presence(&self) -> Presence {
        self.presence
    }

    pub const fn state(&self) -> PublicState {
        PublicState::of(self.revoked, self.presence, self.subscription)
    }

    pub const fn generation(&self) -> Generation {
        self.generation
    }

    pub const fn last_issued(&self) -> Ordinal {
        self.last_issued
    }

    pub const fn watermark(&self) -> Ordinal {
        self.watermark
    }

    pub const fn settled(&self) -> Ordinal {
        self.settled
    }

    pub const fn close_ordinal(&self) -> Option<Ordinal> {
        self.close_ordinal
    }

    pub const fn digest(&self) -> Option<Digest> {
        self.digest
    }

    pub fn in_flight(&self) -> impl Iterator<Item = &Issued> {
        self.in_flight.values()
    }

    /// Opens the next generation, in a session that is newer than or the same as the last one.
    /// Only a resource that nobody watches has a next generation.
    pub fn open_generation(
        &mut self,
        session: SessionGeneration,
    ) -> Result<Generation, NoTransition> {
        let from = self.subscription;
        // UNSUBSCRIBE_UNKNOWN never reopens in its own session: only that session's end reconciles it.
        let may_open = match from {
            SubscriptionState::Discovered | SubscriptionState::Closed => session >= self.session,
            SubscriptionState::UnsubscribeUnknown => session > self.session,
            SubscriptionState::Subscribing
            | SubscriptionState::Active
            | SubscriptionState::Unsubscribing
            | SubscriptionState::ReconciliationRequired => false,
        };
        if !may_open || self.revoked {
            return Err(NoTransition { from });
        }
        self.generation = self.generation.next();
        self.session = session;
        self.subscription = SubscriptionState::Subscribing;
        self.close_ordinal = None;
        Ok(self.generation)
    }

    /// The subscription was acknowledged, or polling takes its place.
    pub fn activate(&mut self, generation: Generation) -> Result<(), NoTransition> {
        if self.subscription != SubscriptionState::Subscribing || self.generation != generation {
            return Err(NoTransition {
                from: self.subscription,
            });
        }
        self.subscription = SubscriptionState::Active;
        Ok(())
    }

    /// Raises `last_issued` and remembers the read. No row, no read.
    pub fn issue(
        &mut self,
        request: RequestId,
        generation: Generation,
        session: SessionGeneration,
        trigger: Trigger,
    ) -> Result<Issued, IssueRefusal> {
        if self.revoked {
            return Err(IssueRefusal::Revoked);
        }
        if self.generation != generation {
            return Err(IssueRefusal::OtherGeneration);
        }
        if self.session != session {
            return Err(IssueRefusal::OtherSession);
        }
        if self.subscription != SubscriptionState::Active {
            return Err(IssueRefusal::NotActive);
        }
        self.last_issued = self.last_issued.next();
        let issued = Issued {
            request,
            ordinal: self.last_issued,
            generation,
            session,
            epoch: self.epoch,
            trigger,
        };
        self.in_flight.insert(request, issued);
        Ok(issued)
    }

    /// The acceptance point. The only place where a version, a watermark or a presence changes.
    pub fn settle(&mut self, request: RequestId, ordinal: Ordinal, answer: Answer) -> Verdict {
        let Some(issued) = self.in_flight.get(&request).copied() else {
            // A request id that was issued once and settled is not told apart from one that never
            // was: the pure core forgets settled reads. The store keeps them and answers precisely.
            return Verdict::NeverIssued;
        };
        if issued.ordinal != ordinal {
            return Verdict::NeverIssued;
        }
        self.in_flight.remove(&request);
        if let Some(reason) = self.fence(&issued) {
            return Verdict::Stale(reason);
        }
        match answer {
            Answer::Content(digest) => {
                self.settled = issued.ordinal;
                self.watermark = issued.ordinal;
                self.presence = Presence::Present;
                if self.digest == Some(digest) {
                    return Verdict::Unchanged;
                }
                self.digest = Some(digest);
                Verdict::Accepted
            }
            Answer::NotFound => {
                self.settled = issued.ordinal;
                if self.presence == Presence::Present {
                    self.presence = Presence::TombstonePending;
                }
                Verdict::NotFound
            }
            Answer::Refused => Verdict::Refused,
            Answer::Failed => Verdict::Failed,
        }
    }

    /// The first fence that the answer of `issued` runs into.
    fn fence(&self, issued: &Issued) -> Option<StaleReason> {
        if issued.epoch != self.epoch {
            Some(StaleReason::StaleEpoch)
        } else if issued.generation != self.generation || issued.session != self.session {
            Some(StaleReason::StaleGeneration)
        } else if self.subscription != SubscriptionState::Active {
            Some(StaleReason::StaleAfterClose)
        } else if issued.ordinal <= self.settled {
            Some(StaleReason::StaleOrdinal)
        } else {
            None
        }
    }

    /// ACTIVE or SUBSCRIBING to UNSUBSCRIBING; freezes the close ordinal.
    pub fn begin_unsubscribe(&mut self, generation: Generation) -> Result<Ordinal, NoTransition> {
        let from = self.subscription;
        let open = matches!(
            from,
            SubscriptionState::Active | SubscriptionState::Subscribing
        );
        if !open || self.generation != generation {
            return Err(NoTransition { from });
        }
        self.subscription = SubscriptionState::Unsubscribing;
        self.close_ordinal = Some(self.last_issued);
        Ok(self.last_issued)
    }

    /// The unsubscribe was acknowledged, or it was not.
    pub fn finish_unsubscribe(
        &mut self,
        generation: Generation,
        acknowledged: bool,
    ) -> Result<(), NoTransition> {
        if self.subscription != SubscriptionState::Unsubscribing || self.generation != generation {
            return Err(NoTransition {
                from: self.subscription,
            });
        }
        self.subscription = if acknowledged {
            SubscriptionState::Closed
        } else {
            SubscriptionState::UnsubscribeUnknown
        };
        Ok(())
    }

    /// The session is over: its generation is closed, its reads in flight are given up. Returns those.
    pub fn end_session(&mut self, session: SessionGeneration) -> Vec<Issued> {
        if self.session != session {
            return Vec::new();
        }
        match self.subscription {
            SubscriptionState::Subscribing | SubscriptionState::Active => {
                self.close_ordinal = Some(self.last_issued);
                self.subscription = SubscriptionState::Closed;
            }
            SubscriptionState::Unsubscribing | SubscriptionState::UnsubscribeUnknown => {
                self.subscription = SubscriptionState::Closed;
            }
            SubscriptionState::Discovered
            | SubscriptionState::Closed
            | SubscriptionState::ReconciliationRequired => {}
        }
        std::mem::take(&mut self.in_flight).into_values().collect()
    }

    /// Confirms a pending tombstone: nothing is current any more and the generation is closed.
    /// Returns the digest that is withdrawn, if there was one.
    pub fn confirm_tombstone(
        &mut self,
        generation: Generation,
    ) -> Result<Option<Digest>, NoTransition> {
        if self.presence != Presence::TombstonePending
            || self.subscription != SubscriptionState::Active
            || self.generation != generation
        {
            return Err(NoTransition {
                from: self.subscription,
            });
        }
        self.presence = Presence::Tombstoned;
        self.subscription = SubscriptionState::Closed;
        self.close_ordinal = Some(self.last_issued);
        Ok(self.digest.take())
    }

    /// The subject's permission is withdrawn: the epoch rises and an open generation begins closing.
    pub fn withdraw(&mut self, epoch: Epoch) {
        self.epoch = epoch;
        self.revoked = true;
        if matches!(
            self.subscription,
            SubscriptionState::Active | SubscriptionState::Subscribing
        ) {
            self.subscription = SubscriptionState::Unsubscribing;
            self.close_ordinal = Some(self.last_issued);
        }
    }

    /// The permission is given again, under the epoch that the withdrawal set.
    pub const fn restore(&mut self) {
        self.revoked = false;
    }
}
