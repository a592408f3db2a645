//! The fences of the pure core, over many orders of reads, answers, closes, takeovers and withdrawals.
//!
//! The properties are stated here again, without looking at how the core decides: a shadow of what was
//! issued and settled is kept beside it, and after every step both are compared.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use fencepost_ledger::{
    Answer, Digest, Epoch, Issued, Ordinal, Presence, PublicState, RequestId, Resource,
    SessionGeneration, StaleReason, SubscriptionState, Trigger, Verdict,
};
use proptest::{prelude::*, sample::Index};
use uuid::Uuid;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Whatever it takes to be ACTIVE: sequences have to get somewhere.
    Ready,
    Open {
        new_session: bool,
    },
    Activate,
    Issue,
    /// Answers any read that was ever issued, as often as it comes.
    Settle(Index, Answer),
    Begin,
    Finish(bool),
    EndSession,
    Withdraw,
    Restore,
    Confirm,
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        6 => (1..4_u8).prop_map(|n| Answer::Content(Digest::new([n; 32]))),
        3 => Just(Answer::NotFound),
        1 => Just(Answer::Refused),
        1 => Just(Answer::Failed),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Ready),
        1 => any::<bool>().prop_map(|new_session| Step::Open { new_session }),
        1 => Just(Step::Activate),
        10 => Just(Step::Issue),
        12 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Settle(which, answer)),
        2 => Just(Step::Begin),
        2 => any::<bool>().prop_map(Step::Finish),
        1 => Just(Step::EndSession),
        1 => Just(Step::Withdraw),
        1 => Just(Step::Restore),
        2 => Just(Step::Confirm),
    ]
}

/// Everything that an answer may change.
type Truth = (Ordinal, Ordinal, Option<Digest>, Presence);

fn truth(core: &Resource) -> Truth {
    (
        core.watermark(),
        core.settled(),
        core.digest(),
        core.presence(),
    )
}

struct Shadow {
    core: Resource,
    session: SessionGeneration,
    /// Of the present generation.
    opened_in: SessionGeneration,
    epoch: Epoch,
    issued: Vec<Issued>,
    receipts: BTreeMap<RequestId, u32>,
}

impl Shadow {
    fn new() -> Self {
        Self {
            core: Resource::new(),
            session: SessionGeneration::new(1),
            opened_in: SessionGeneration::ZERO,
            epoch: Epoch::ZERO,
            issued: Vec::new(),
            receipts: BTreeMap::new(),
        }
    }

    fn receipt(&mut self, request: RequestId) {
        *self.receipts.entry(request).or_default() += 1;
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let before = self.core.clone();
        let generation = self.core.generation();
        match step {
            Step::Ready => return self.ready(),
            Step::Open { new_session } => {
                if new_session {
                    self.take(Step::EndSession)?;
                    self.session = self.session.next();
                }
                if let Ok(opened) = self.core.open_generation(self.session) {
                    self.opened_in = self.session;
                    prop_assert_eq!(opened, generation.next());
                    let unknown = before.subscription() == SubscriptionState::UnsubscribeUnknown;
                    prop_assert!(
                        !unknown || new_session,
                        "it never reopens in its own session"
                    );
                }
            }
            Step::Activate => {
                let _ = self.core.activate(generation);
            }
            Step::Issue => self.issue(&before)?,
            Step::Settle(which, answer) => {
                if !self.issued.is_empty() {
                    self.settle(*which.get(&self.issued), answer)?;
                }
            }
            Step::Begin => {
                if let Ok(close) = self.core.begin_unsubscribe(generation) {
                    prop_assert_eq!(close, self.core.last_issued());
                }
            }
            Step::Finish(acknowledged) => {
                let _ = self.core.finish_unsubscribe(generation, acknowledged);
            }
            Step::EndSession => {
                for issued in self.core.end_session(self.session) {
                    self.receipt(issued.request);
                }
            }
            Step::Withdraw => {
                self.epoch = self.epoch.next();
                self.core.withdraw(self.epoch);
                prop_assert_eq!(self.core.state(), PublicState::Revoked);
            }
            Step::Restore => self.core.restore(),
            Step::Confirm => {
                if self.core.confirm_tombstone(generation).is_ok() {
                    prop_assert_eq!(before.presence(), Presence::TombstonePending);
                    prop_assert_eq!(self.core.digest(), None);
                }
            }
        }
        self.always(&before, step)
    }

    fn ready(&mut self) -> Result<(), TestCaseError> {
        self.take(Step::Restore)?;
        match self.core.subscription() {
            SubscriptionState::Unsubscribing => self.take(Step::Finish(true))?,
            SubscriptionState::UnsubscribeUnknown => self.take(Step::EndSession)?,
            _ => {}
        }
        self.take(Step::Open { new_session: false })?;
        self.take(Step::Activate)?;
        prop_assert_eq!(self.core.subscription(), SubscriptionState::Active);
        Ok(())
    }

    /// The first fence that the answer of `issued` runs into.
    fn fence(&self, issued: &Issued) -> Option<StaleReason> {
        let core = &self.core;
        [
            (issued.epoch != self.epoch, StaleReason::StaleEpoch),
            (
                issued.generation != core.generation(),
                StaleReason::StaleGeneration,
            ),
            (
                issued.session != self.opened_in,
                StaleReason::StaleGeneration,
            ),
            (
                core.subscription() != SubscriptionState::Active,
                StaleReason::StaleAfterClose,
            ),
            (issued.ordinal <= core.settled(), StaleReason::StaleOrdinal),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    }

    fn issue(&mut self, before: &Resource) -> Result<(), TestCaseError> {
        let request = RequestId::new(Uuid::from_u128(self.issued.len() as u128));
        let generation = self.core.generation();
        let issued = self
            .core
            .issue(request, generation, self.session, Trigger::Poll);
        if let Ok(issued) = issued {
            prop_assert_eq!(before.subscription(), SubscriptionState::Active);
            prop_assert_eq!(issued.ordinal, before.last_issued().next());
            self.issued.push(issued);
        } else {
            prop_assert_eq!(self.core.last_issued(), before.last_issued());
        }
        Ok(())
    }

    fn settle(&mut self, issued: Issued, answer: Answer) -> Result<(), TestCaseError> {
        let before = self.core.clone();
        let fence = self.fence(&issued);
        let verdict = self.core.settle(issued.request, issued.ordinal, answer);
        let settled_before = self.receipts.contains_key(&issued.request);
        prop_assert_eq!(
            settled_before,
            verdict == Verdict::NeverIssued,
            "settles once"
        );
        if verdict.outcome().is_some() {
            self.receipt(issued.request);
        }
        if fence.is_some() || settled_before {
            prop_assert_eq!(
                truth(&self.core),
                truth(&before),
                "{:?} changed something",
                verdict
            );
            if !settled_before {
                prop_assert_eq!(Some(verdict), fence.map(Verdict::Stale));
            }
            return Ok(());
        }
        match verdict {
            Verdict::Accepted | Verdict::Unchanged => {
                prop_assert_eq!(self.core.watermark(), issued.ordinal);
                prop_assert_eq!(answer, Answer::Content(self.core.digest().unwrap()));
                prop_assert_eq!(
                    verdict == Verdict::Unchanged,
                    before.digest() == self.core.digest()
                );
                prop_assert_eq!(self.core.presence(), Presence::Present);
            }
            Verdict::NotFound => {
                prop_assert_eq!(answer, Answer::NotFound);
                prop_assert_ne!(self.core.presence(), Presence::Present);
                prop_assert_eq!(
                    self.core.digest(),
                    before.digest(),
                    "the content stays till it is confirmed"
                );
            }
            Verdict::Refused | Verdict::Failed => {
                prop_assert_eq!(truth(&self.core), truth(&before));
            }
            other => prop_assert!(false, "{other:?} of a read in order"),
        }
        Ok(())
    }

    fn always(&self, before: &Resource, step: Step) -> Result<(), TestCaseError> {
        let core = &self.core;
        prop_assert!(core.watermark() >= before.watermark(), "a watermark fell");
        prop_assert!(core.settled() >= before.settled());
        prop_assert!(core.last_issued() >= before.last_issued());
        prop_assert!(core.generation() >= before.generation());
        prop_assert!(core.watermark() <= core.settled() && core.settled() <= core.last_issued());
        prop_assert_eq!(
            core.close_ordinal().is_some(),
            core.subscription().is_closed()
        );
        if before.subscription().is_closed() && core.generation() == before.generation() {
            prop_assert_eq!(
                truth(core),
                truth(before),
                "{:?} changed a closed generation",
                step
            );
            prop_assert_eq!(
                core.last_issued(),
                before.last_issued(),
                "issued after the close"
            );
            prop_assert_eq!(core.close_ordinal(), before.close_ordinal());
            prop_assert!(
                core.subscription().is_closed(),
                "a closed generation reopened"
            );
        }
        prop_assert!(
            self.receipts.values().all(|receipts| *receipts == 1),
            "a read settled twice"
        );
        prop_assert_eq!(
            core.in_flight().count() + self.receipts.len(),
            self.issued.len()
        );
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_breaks_a_fence(steps in prop::collection::vec(step(), 1..80)) {
        let mut shadow = Shadow::new();
        for step in steps {
            shadow.take(step)?;
        }
        shadow.take(Step::EndSession)?;
        // Every issued read has exactly one receipt.
        prop_assert_eq!(shadow.receipts.len(), shadow.issued.len());
    }

    #[test]
    fn of_any_order_of_answers_the_highest_ordinal_wins(
        digests in prop::collection::vec(1..4_u8, 1..8),
        order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut core = Resource::new();
        let session = SessionGeneration::new(1);
        let generation = core.open_generation(session).unwrap();
        core.activate(generation).unwrap();
        let issued: Vec<Issued> = (0..digests.len())
            .map(|n| {
                let request = RequestId::new(Uuid::from_u128(n as u128));
                core.issue(request, generation, session, Trigger::Poll).unwrap()
            })
            .collect();
        for n in order.into_iter().filter(|n| *n < digests.len()) {
            core.settle(issued[n].request, issued[n].ordinal, Answer::Content(Digest::new([digests[n]; 32])));
        }
        prop_assert_eq!(core.watermark(), core.last_issued());
        prop_assert_eq!(core.digest(), Some(Digest::new([*digests.last().unwrap(); 32])));
    }
}
