//! How many reads a second go through issue and acceptance. Ignored: it measures the machine.

use std::time::{Duration, Instant};

use fencepost_ledger::{Digest, RequestId, Trigger, Verdict};
use fencepost_store::{AnswerBody, IssueRead, Mode, SessionKey, Store};
use futures::future::join_all;
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{Read, Watched, World, answer, spec};

const RESOURCES: usize = 1024;
const ROUNDS: usize = 20;
/// Far below what any machine does in batches, far above what it does one by one in debug.
const FLOOR: f64 = 2_000.0;

#[sqlx::test(migrations = "../migrations")]
#[ignore = "a measurement: cargo test -p fencepost-store --test store -- --ignored --nocapture rate"]
async fn accepted_a_second(pool: PgPool) {
    let world = World::new(pool).await;
    let specs: Vec<_> = (0..RESOURCES)
        .map(|n| spec(&format!("docs://{n}")))
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
        .map(|(id, generation)| (*id, generation.unwrap(), Mode::Poll))
        .collect();
    world.store.activate(&world.session, &items).await.unwrap();
    let mut issuing = Duration::ZERO;
    let (mut accepted, mut unchanged) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS * 2 {
        let start = Instant::now();
        // A task for each, as the engine has: one task alone hands in no more than its poll budget.
        let reads = join_all(items.iter().map(|(id, generation, _)| {
            let watched = Watched {
                id: *id,
                generation: *generation,
            };
            tokio::spawn(issue(world.store.clone(), world.session, watched))
        }))
        .await;
        issuing += start.elapsed();
        let start = Instant::now();
        let settled = join_all((0_usize..).zip(reads).map(|(n, read)| {
            let mut bytes = [0; 32];
            // Each content is read twice.
            bytes[..8].copy_from_slice(&(round / 2 * RESOURCES + n).to_be_bytes());
            let body = AnswerBody::Content {
                digest: Digest::new(bytes),
                mime_type: Some("text/plain".into()),
                size: 32,
                bytes: Some(bytes.to_vec()),
                server_version: "docs/1.0".into(),
            };
            let store = world.store.clone();
            let answer = answer(read.unwrap(), body);
            tokio::spawn(async move { store.accept_resource_version(answer).await })
        }))
        .await;
        let (expected, spent) = match round % 2 {
            0 => (Verdict::Accepted, &mut accepted),
            _ => (Verdict::Unchanged, &mut unchanged),
        };
        *spent += start.elapsed();
        assert!(
            settled
                .iter()
                .all(|s| s.as_ref().unwrap().as_ref().unwrap().verdict == expected)
        );
    }
    let rate = |rounds: usize, spent: Duration| (RESOURCES * rounds) as f64 / spent.as_secs_f64();
    println!(
        "issued {:.0}/s, accepted {:.0}/s, unchanged {:.0}/s",
        rate(2 * ROUNDS, issuing),
        rate(ROUNDS, accepted),
        rate(ROUNDS, unchanged)
    );
    assert!(rate(ROUNDS, accepted) > FLOOR);
}

async fn issue(store: Store, session: SessionKey, watched: Watched) -> Read {
    let request = RequestId::new(Uuid::now_v7());
    let read = IssueRead {
        request,
        resource: watched.id,
        generation: watched.generation,
        session: session.generation,
        trigger: Trigger::Poll,
    };
    let ordinal = store.issue_read(read).await.unwrap().ordinal;
    Read {
        request,
        resource: watched.id,
        ordinal,
    }
}
