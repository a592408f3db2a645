//! The micro-batcher, seen from its callers.

use std::collections::BTreeSet;

use fencepost_ledger::{IssueRefusal, Ordinal, Verdict};
use fencepost_store::IssueError;
use futures::future::join_all;
use sqlx::PgPool;

use crate::world::{Watched, World, content, digest};

#[sqlx::test(migrations = "../migrations")]
async fn each_caller_gets_its_own_answer(pool: PgPool) {
    let world = World::new(pool).await;
    let mut fleet = Vec::new();
    for n in 0..40 {
        fleet.push(world.active(&format!("docs://{n}")).await);
    }
    for (watched, n) in fleet.iter().zip(0..) {
        // Different histories, so that an answer that went to another caller shows.
        for _ in 0..n % 3 {
            world.read(*watched, content(n)).await;
        }
    }
    let wrong = |w: &Watched, n: u64| Watched {
        generation: if n % 4 == 3 {
            w.generation.next()
        } else {
            w.generation
        },
        ..*w
    };
    let asked: Vec<Watched> = fleet.iter().zip(0..).map(|(w, n)| wrong(w, n)).collect();
    let issued = join_all(asked.iter().map(|w| world.try_issue(*w))).await;
    for (n, issued) in (0_u64..).zip(&issued) {
        if n % 4 == 3 {
            let refused = issued.as_ref().unwrap_err();
            assert!(matches!(
                refused,
                IssueError::Refused(IssueRefusal::OtherGeneration)
            ));
        } else {
            assert_eq!(issued.as_ref().unwrap().ordinal, Ordinal::new(n % 3 + 1));
        }
    }
    let reads: Vec<_> = (0_u8..)
        .zip(issued)
        .filter_map(|(n, read)| Some((n, read.ok()?)))
        .collect();
    let settled = join_all(
        reads
            .iter()
            .map(|(n, read)| world.settle(*read, content(*n))),
    )
    .await;
    for ((n, _), settled) in reads.iter().zip(settled) {
        if n % 3 == 0 {
            assert_eq!(
                (settled.verdict, settled.previous),
                (Verdict::Accepted, None)
            );
        } else {
            assert_eq!(
                (settled.verdict, settled.previous),
                (Verdict::Unchanged, Some(digest(*n)))
            );
        }
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn many_reads_of_one_resource_get_different_ordinals(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let reads = join_all((0..50).map(|_| world.issue(watched))).await;
    let ordinals: BTreeSet<u64> = reads.iter().map(|r| r.ordinal.get()).collect();
    assert_eq!(ordinals, (1..=50).collect());
    let settled = join_all(reads.iter().map(|read| world.settle(*read, content(1)))).await;
    let accepted = settled
        .iter()
        .filter(|s| s.verdict == Verdict::Accepted)
        .count();
    assert_eq!(accepted, 1, "one digest, one version");
    assert_eq!(
        world
            .count("select count(*) from read where outcome is null")
            .await,
        0
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn more_than_a_flush_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    let specs: Vec<_> = (0..600)
        .map(|n| crate::world::spec(&format!("docs://{n}")))
        .collect();
    let rows = world
        .store
        .put_resources(&world.session, &specs)
        .await
        .unwrap();
    let ids: Vec<_> = rows.iter().map(|r| r.id).collect();
    let opened = world
        .store
        .open_generations(&world.session, &ids)
        .await
        .unwrap();
    let items: Vec<_> = ids
        .iter()
        .zip(opened)
        .map(|(id, generation)| (*id, generation.unwrap(), fencepost_store::Mode::Poll))
        .collect();
    assert!(
        world
            .store
            .activate(&world.session, &items)
            .await
            .unwrap()
            .into_iter()
            .all(|a| a)
    );
    let verdicts = join_all(items.iter().map(|(id, generation, _)| {
        world.read(
            Watched {
                id: *id,
                generation: *generation,
            },
            content(1),
        )
    }))
    .await;
    assert!(verdicts.iter().all(|s| s.verdict == Verdict::Accepted));
    assert_eq!(world.count("select count(*) from outbox").await, 600);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_failed_flush_answers_everybody_with_the_error(pool: PgPool) {
    let world = World::new(pool).await;
    let (a, b) = (
        world.active("docs://a").await,
        world.active("docs://b").await,
    );
    let (a, b) = (world.issue(a).await, world.issue(b).await);
    world.sql("alter table outbox rename to elsewhere").await;
    let answer = |read| {
        world
            .store
            .accept_resource_version(crate::world::answer(read, content(1)))
    };
    for settled in join_all([answer(a), answer(b)]).await {
        assert_eq!(settled.unwrap_err().category(), "refused");
    }
    world.sql("alter table elsewhere rename to outbox").await;
    assert_eq!(world.settle(a, content(1)).await.verdict, Verdict::Accepted);
}
