//! The pure core and the store side by side: the same steps, the same verdicts, the same facts.
//!
//! Where the store knows more than the core, the difference is named here and nowhere else:
//! - the core forgets settled reads (`NeverIssued`), the store has their receipts (`AlreadySettled`);
//! - the core knows no leases: a generation opens only in the session that holds the lease and
//!   has not ended;
//! - the core leaves it to its caller how many reads confirm a tombstone; the store wants two.

use std::collections::{BTreeMap, BTreeSet};

use fencepost_ledger::{
    Answer, Digest, Epoch, Generation, IssueRefusal, Ordinal, RequestId, Resource,
    SessionGeneration, SubscriptionState, Trigger, Verdict,
};
use fencepost_store::{AnswerBody, IssueError, IssueRead, TombstonePolicy, TombstoneVerdict};
use proptest::prelude::*;
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{Facts, Read, TTL, Watched, World, answer, content, digest};

#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Whatever it takes to be ACTIVE, step by step.
    Ready,
    Open,
    Activate {
        earlier: bool,
    },
    Issue {
        earlier_generation: bool,
        earlier_session: bool,
    },
    /// Settles a read that has no receipt yet, whatever became of its generation; or `again` any one.
    Settle {
        which: prop::sample::Index,
        body: Body,
        again: bool,
        wrong_ordinal: bool,
    },
    Begin {
        earlier: bool,
    },
    Finish {
        earlier: bool,
        acknowledged: bool,
    },
    EndSession,
    TakeOver,
    Withdraw,
    Restore,
    Confirm {
        earlier: bool,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum Body {
    Content(u8),
    NotFound,
    Refused,
    Failed,
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        5 => (1..4_u8).prop_map(Body::Content),
        4 => Just(Body::NotFound),
        1 => Just(Body::Refused),
        1 => Just(Body::Failed),
    ]
}

/// Mostly steps that fit, so that sequences get somewhere; now and then one that does not.
pub fn step() -> impl Strategy<Value = Step> {
    let seldom = || prop::bool::weighted(0.1);
    let settle = (
        any::<prop::sample::Index>(),
        body(),
        seldom(),
        prop::bool::weighted(0.03),
    );
    prop_oneof![
        10 => Just(Step::Ready),
        3 => Just(Step::Open),
        3 => seldom().prop_map(|earlier| Step::Activate { earlier }),
        16 => (seldom(), seldom()).prop_map(|(earlier_generation, earlier_session)| Step::Issue {
            earlier_generation,
            earlier_session
        }),
        18 => settle.prop_map(|(which, body, again, wrong_ordinal)| Step::Settle {
            which,
            body,
            again,
            wrong_ordinal
        }),
        2 => seldom().prop_map(|earlier| Step::Begin { earlier }),
        3 => (seldom(), any::<bool>())
            .prop_map(|(earlier, acknowledged)| Step::Finish { earlier, acknowledged }),
        1 => Just(Step::EndSession),
        1 => Just(Step::TakeOver),
        1 => Just(Step::Withdraw),
        1 => Just(Step::Restore),
        6 => seldom().prop_map(|earlier| Step::Confirm { earlier }),
    ]
}

/// How often each verdict came up: a fence that no sequence runs into is not tested.
pub type Seen = BTreeMap<String, u32>;

pub struct Model {
    pub world: World,
    core: Resource,
    watched: Watched,
    reads: Vec<Read>,
    /// Reads that have their receipt.
    settled: BTreeSet<RequestId>,
    epoch: u64,
    ended: bool,
    /// Not found, in order, in this generation.
    not_found: u32,
    pub seen: Seen,
}

impl Model {
    pub async fn new(pool: PgPool) -> Self {
        let world = World::new(pool).await;
        let id = world.put("docs://a").await;
        let mut core = Resource::new();
        // The epoch of a new subject.
        core.withdraw(Epoch::new(1));
        core.restore();
        Self {
            world,
            core,
            watched: Watched {
                id,
                generation: Generation::ZERO,
            },
            reads: Vec::new(),
            settled: BTreeSet::new(),
            epoch: 1,
            ended: false,
            not_found: 0,
            seen: Seen::new(),
        }
    }

    fn generation(&self, earlier: bool) -> Generation {
        let current = self.core.generation().get();
        Generation::new(if earlier {
            current.saturating_sub(1)
        } else {
            current
        })
    }

    fn watched(&self, earlier: bool) -> Watched {
        Watched {
            generation: self.generation(earlier),
            ..self.watched
        }
    }

    /// The next step to ACTIVE; none when it is.
    fn towards_active(&self) -> Option<Step> {
        let earlier = false;
        match self.core.subscription() {
            _ if self.world.objects.subjects[0].revoked => Some(Step::Restore),
            _ if self.ended => Some(Step::TakeOver),
            SubscriptionState::Discovered | SubscriptionState::Closed => Some(Step::Open),
            SubscriptionState::Subscribing => Some(Step::Activate { earlier }),
            SubscriptionState::Unsubscribing => Some(Step::Finish {
                earlier,
                acknowledged: true,
            }),
            SubscriptionState::UnsubscribeUnknown => Some(Step::TakeOver),
            SubscriptionState::Active | SubscriptionState::ReconciliationRequired => None,
        }
    }

    /// Takes a step, or all that it stands for.
    pub async fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        if !matches!(step, Step::Ready) {
            return self.take_one(step).await;
        }
        while let Some(step) = self.towards_active() {
            self.take_one(step).await?;
        }
        Ok(())
    }

    /// Takes one step on both sides and compares what they say.
    async fn take_one(&mut self, step: Step) -> Result<(), TestCaseError> {
        let id = self.watched.id;
        match step {
            Step::Ready => {}
            Step::Open => {
                let expected = if self.ended {
                    None
                } else {
                    self.core
                        .open_generation(self.world.session.generation)
                        .ok()
                };
                if expected.is_some() {
                    self.not_found = 0;
                }
                prop_assert_eq!(self.world.open(id).await, expected);
            }
            Step::Activate { earlier } => {
                let generation = self.generation(earlier);
                let expected = self.core.activate(generation).is_ok();
                prop_assert_eq!(self.world.activate(id, generation).await, expected);
            }
            Step::Issue {
                earlier_generation,
                earlier_session,
            } => {
                self.issue(earlier_generation, earlier_session).await?;
            }
            Step::Settle {
                which,
                body,
                again,
                wrong_ordinal,
            } => {
                let fits = |read: &&Read| again || !self.settled.contains(&read.request);
                let reads: Vec<Read> = self.reads.iter().filter(fits).copied().collect();
                if !reads.is_empty() {
                    self.settle(*which.get(&reads), body, wrong_ordinal).await?;
                }
            }
            Step::Begin { earlier } => {
                let watched = self.watched(earlier);
                let expected = self.core.begin_unsubscribe(watched.generation).ok();
                prop_assert_eq!(self.world.close(watched).await, expected);
            }
            Step::Finish {
                earlier,
                acknowledged,
            } => {
                let generation = self.generation(earlier);
                let expected = self
                    .core
                    .finish_unsubscribe(generation, acknowledged)
                    .is_ok();
                let items = [(id, generation, acknowledged)];
                let taken = self.world.store.finish_unsubscribe(&items).await.unwrap();
                prop_assert_eq!(taken, [expected]);
            }
            Step::EndSession => {
                let given_up = self.end_core_sessions();
                self.ended = true;
                let end = self
                    .world
                    .store
                    .end_session(&self.world.session, "the end")
                    .await
                    .unwrap();
                prop_assert_eq!(end.given_up, given_up);
            }
            Step::TakeOver => {
                self.end_core_sessions();
                self.world.expire_lease().await;
                self.world.store = self.world.other_replica();
                let (server, subject) = (self.world.session.server, self.world.session.subject);
                let taken = self
                    .world
                    .store
                    .acquire_lease(server, subject, TTL)
                    .await
                    .unwrap();
                let next = self.world.session.generation.next();
                prop_assert_eq!(taken, Some(next));
                self.world.session.generation = next;
                self.ended = false;
            }
            Step::Withdraw => {
                if !self.world.objects.subjects[0].revoked {
                    self.epoch += 1;
                    self.core.withdraw(Epoch::new(self.epoch));
                }
                self.world.publish_revoked(true).await;
            }
            Step::Restore => {
                self.core.restore();
                self.world.publish_revoked(false).await;
            }
            Step::Confirm { earlier } => self.confirm(earlier).await?,
        }
        self.compare().await
    }

    async fn issue(
        &mut self,
        earlier_generation: bool,
        earlier_session: bool,
    ) -> Result<(), TestCaseError> {
        let request = RequestId::new(Uuid::now_v7());
        let generation = self.generation(earlier_generation);
        let session = self.world.session.generation.get() - u64::from(earlier_session);
        let session = SessionGeneration::new(session);
        let expected = self.core.issue(request, generation, session, Trigger::Poll);
        let read = IssueRead {
            request,
            resource: self.watched.id,
            generation,
            session,
            trigger: Trigger::Poll,
        };
        let issued: Result<(Ordinal, Epoch), IssueRefusal> =
            match self.world.store.issue_read(read).await {
                Ok(issued) => Ok((issued.ordinal, issued.epoch)),
                Err(IssueError::Refused(refusal)) => Err(refusal),
                Err(IssueError::Store(error)) => {
                    return Err(TestCaseError::fail(error.to_string()));
                }
            };
        prop_assert_eq!(
            issued,
            expected.map(|issued| (issued.ordinal, issued.epoch))
        );
        match &issued {
            Ok(_) => self.saw(&format_args!("Issued")),
            Err(refusal) => self.saw(refusal),
        }
        if let Ok((ordinal, _)) = issued {
            self.reads.push(Read {
                request,
                resource: self.watched.id,
                ordinal,
            });
        }
        Ok(())
    }

    async fn settle(
        &mut self,
        mut read: Read,
        body: Body,
        wrong_ordinal: bool,
    ) -> Result<(), TestCaseError> {
        if wrong_ordinal {
            read.ordinal = read.ordinal.next();
        }
        let (pure, sent) = match body {
            Body::Content(n) => (Answer::Content(digest(n)), content(n)),
            Body::NotFound => (Answer::NotFound, AnswerBody::NotFound),
            Body::Refused => (Answer::Refused, AnswerBody::Refused),
            Body::Failed => (Answer::Failed, AnswerBody::Failed),
        };
        let previous: Option<Digest> = self.core.digest();
        let mut expected = self.core.settle(read.request, read.ordinal, pure);
        if expected == Verdict::NeverIssued
            && !wrong_ordinal
            && self.settled.contains(&read.request)
        {
            expected = Verdict::AlreadySettled;
        }
        let settled = self
            .world
            .store
            .accept_resource_version(answer(read, sent))
            .await
            .unwrap();
        prop_assert_eq!(settled.verdict, expected);
        self.saw(&expected);
        if expected != Verdict::NeverIssued {
            prop_assert_eq!(settled.previous, previous);
            self.settled.insert(read.request);
        }
        prop_assert_eq!(
            settled.receipt.is_some(),
            expected == Verdict::AlreadySettled
        );
        match expected {
            Verdict::Accepted | Verdict::Unchanged => self.not_found = 0,
            Verdict::NotFound => self.not_found += 1,
            _ => {}
        }
        Ok(())
    }

    async fn confirm(&mut self, earlier: bool) -> Result<(), TestCaseError> {
        let generation = self.generation(earlier);
        let expected = if self.core.clone().confirm_tombstone(generation).is_err() {
            TombstoneVerdict::Refused
        } else if self.not_found < 2 {
            TombstoneVerdict::NotYet
        } else {
            self.core.confirm_tombstone(generation).unwrap();
            TombstoneVerdict::Confirmed
        };
        let items = [(self.watched.id, generation)];
        let verdicts = self
            .world
            .store
            .confirm_tombstones(&items, TombstonePolicy::default())
            .await
            .unwrap();
        prop_assert_eq!(verdicts, [expected]);
        self.saw(&expected);
        Ok(())
    }

    fn saw(&mut self, what: &impl std::fmt::Debug) {
        *self.seen.entry(format!("{what:?}")).or_default() += 1;
    }

    /// Ends every session up to the present one in the core; gives how many reads were given up.
    fn end_core_sessions(&mut self) -> u64 {
        let mut given_up = 0;
        for session in 1..=self.world.session.generation.get() {
            for read in self.core.end_session(SessionGeneration::new(session)) {
                self.settled.insert(read.request);
                given_up += 1;
            }
        }
        given_up
    }

    async fn compare(&self) -> Result<(), TestCaseError> {
        let core = &self.core;
        let expected = Facts {
            subscription: core.subscription().as_str().into(),
            presence: core.presence().as_str().into(),
            generation: core.generation().get().cast_signed(),
            last_issued_ordinal: core.last_issued().get().cast_signed(),
            settled_ordinal: core.settled().get().cast_signed(),
            ordinal: core.watermark().get().cast_signed(),
            close_ordinal: core.close_ordinal().map(|o| o.get().cast_signed()),
            digest: core.digest().map(|d| d.as_bytes().to_vec()),
            version_count: self.world.facts(self.watched.id).await.version_count,
        };
        prop_assert_eq!(self.world.facts(self.watched.id).await, expected);
        let (open, state): (i64, String) = sqlx::query_as(
            "select (select count(*) from read r where r.resource_id = res.id and r.outcome is null),
                 case when s.revoked then 'REVOKED' when res.presence <> 'PRESENT' then res.presence
                     else res.subscription end
             from resource res join subject s on s.uid = res.subject_uid where res.id = $1",
        )
        .bind(self.watched.id.get())
        .fetch_one(self.world.store.pool())
        .await
        .unwrap();
        prop_assert_eq!(usize::try_from(open).unwrap(), core.in_flight().count());
        prop_assert_eq!(state, core.state().as_str());
        Ok(())
    }
}
