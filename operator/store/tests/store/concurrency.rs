//! Many tasks of several replicas on the same resources: no deadlock, no error, all invariants.

use std::time::Duration;

use fencepost_ledger::{Generation, RequestId, ResourceId, Trigger};
use fencepost_store::{
    AnswerBody, IssueError, IssueRead, MarkKind, MarkRow, Mode, Store, TombstonePolicy,
};
use futures::future::join_all;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    invariants,
    world::{Read, World, answer, content, spec},
};

const TASKS: usize = 32;
const STEPS: usize = 25;

struct Crowd {
    world: World,
    ids: Vec<ResourceId>,
}

impl Crowd {
    fn any(&self) -> ResourceId {
        self.ids[rand::random_range(..self.ids.len())]
    }

    async fn generation(&self, id: ResourceId) -> Generation {
        Generation::new(u64::try_from(self.world.facts(id).await.generation).unwrap())
    }

    /// One random thing that replicas do; losing a race is no error, anything else is.
    async fn step(&self, store: &Store) {
        let session = &self.world.session;
        let (a, b) = (self.any(), self.any());
        let (of_a, of_b) = (self.generation(a).await, self.generation(b).await);
        match rand::random_range(0..12) {
            0 => {
                let items = [(a, of_a), (b, of_b)];
                store.begin_unsubscribe(&items).await.unwrap();
            }
            1 => {
                let items = [(a, of_a, true), (b, of_b, false)];
                store.finish_unsubscribe(&items).await.unwrap();
            }
            2 => {
                let ids = [b, a];
                let opened = self
                    .world
                    .store
                    .open_generations(session, &ids)
                    .await
                    .unwrap();
                let items: Vec<_> = ids
                    .iter()
                    .zip(opened)
                    .filter_map(|(id, generation)| Some((*id, generation?, Mode::Poll)))
                    .collect();
                store.activate(session, &items).await.unwrap();
            }
            3 => {
                let mark = |resource, generation| MarkRow {
                    resource,
                    age: Duration::ZERO,
                    kind: MarkKind::Notification,
                    generation,
                    detail: None,
                };
                store.mark(&[mark(b, of_b), mark(a, of_a)]).await.unwrap();
            }
            4 => {
                let items = [(b, of_b), (a, of_a)];
                store
                    .confirm_tombstones(&items, TombstonePolicy::default())
                    .await
                    .unwrap();
            }
            5 => {
                let mut specs: Vec<_> = (0..self.ids.len())
                    .map(|n| spec(&format!("docs://{n}")))
                    .collect();
                specs[rand::random_range(..self.ids.len())].cohort = rand::random();
                store.put_resources(session, &specs).await.unwrap();
                store
                    .set_flags(&[(b, rand::random(), true), (a, true, rand::random())])
                    .await
                    .unwrap();
            }
            n => {
                let request = RequestId::new(Uuid::now_v7());
                let issued = store
                    .issue_read(IssueRead {
                        request,
                        resource: a,
                        generation: of_a,
                        session: session.generation,
                        trigger: Trigger::Poll,
                    })
                    .await;
                let ordinal = match issued {
                    Ok(issued) => issued.ordinal,
                    Err(IssueError::Refused(_)) => return,
                    Err(IssueError::Store(error)) => panic!("{error}"),
                };
                let body = if n == 6 {
                    AnswerBody::NotFound
                } else {
                    content(rand::random_range(0..4))
                };
                let read = Read {
                    request,
                    resource: a,
                    ordinal,
                };
                store
                    .accept_resource_version(answer(read, body))
                    .await
                    .unwrap();
            }
        }
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn overlapping_work_of_four_replicas(pool: PgPool) {
    let world = World::new(pool).await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(world.active(&format!("docs://{n}")).await.id);
    }
    let replicas: Vec<Store> = (0..4).map(|_| world.other_replica()).collect();
    let crowd = Crowd { world, ids };
    join_all((0..TASKS).map(|n| {
        let (crowd, store) = (&crowd, &replicas[n % replicas.len()]);
        async move {
            for _ in 0..STEPS {
                crowd.step(store).await;
            }
        }
    }))
    .await;
    let world = &crowd.world;
    invariants::check(world.store.pool()).await.unwrap();
    // Retries would hide one; the server counts them.
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(world.count(deadlocks).await, 0);
    assert!(world.count("select count(*) from resource_version").await > 0);
}
