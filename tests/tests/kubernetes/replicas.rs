//! Several replicas: one holder for each (server, subject), one that publishes; a frozen one that wakes up changes nothing.

use std::time::Duration;

use fencepost_tests::{faulty::FaultyServer, ledger, wait};

use crate::world::{LAZY, Operator, SOON, World, server, watch};

const URI: &str = "config://limits";

/// Which of them has the open session, by the gauges that only an owner exports.
async fn owners(operators: &[&Operator]) -> Vec<usize> {
    let mut owners = Vec::new();
    for (index, operator) in operators.iter().enumerate() {
        let metrics = operator.metrics().await;
        let owns = metrics
            .lines()
            .any(|line| line.starts_with("fencepost_sessions{") && line.ends_with(" 1"));
        if owns {
            owners.push(index);
        }
    }
    owners
}

async fn one_owner(operators: &[&Operator]) -> usize {
    wait::until_value(
        "one owner",
        SOON,
        async || owners(operators).await,
        |o| o.len() == 1,
    )
    .await[0]
}

fn exports(metrics: &str, family: &str) -> bool {
    metrics.lines().any(|line| line.starts_with(family))
}

#[tokio::test]
async fn three_replicas_have_one_owner_and_a_frozen_one_changes_nothing() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("replicas").await;
    let mut operators = vec![
        world.ready("a").await,
        world.ready("b").await,
        world.ready("c").await,
    ];
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;
    let all: Vec<&Operator> = operators.iter().collect();
    let owner = one_owner(&all).await;
    all[owner].content(URI, "one").await;
    // The gauges of the ledger come with the next sample, on the owner alone.
    wait::until("the owner's gauges", SOON, async || {
        let metrics = all[owner].metrics().await;
        if exports(&metrics, "fencepost_resources{") {
            Ok(())
        } else {
            Err(())
        }
    })
    .await;
    let mut leaders = 0;
    for (index, operator) in all.iter().enumerate() {
        let metrics = operator.metrics().await;
        leaders += usize::from(exports(&metrics, "fencepost_leader"));
        if index != owner {
            assert!(
                !exports(&metrics, "fencepost_resources{"),
                "a standby exports: {metrics}"
            );
        }
    }
    assert_eq!(leaders, 1);
    assert_eq!(faulty.subscribers_of(URI), 1, "one session watches");

    // Frozen: another takes over, and what changes meanwhile is accepted.
    let frozen = operators.remove(owner);
    frozen.process.freeze();
    let others: Vec<&Operator> = operators.iter().collect();
    let heir = one_owner(&others).await;
    faulty.change(URI, "two");
    others[heir].content(URI, "two").await;
    let generations = "select max(session_generation) from session_lease";
    let generation = world.count(generations).await;

    frozen.process.thaw();
    frozen.is_ready().await;
    let awake = [&frozen, others[0], others[1]];
    wait::until("one owner again", SOON, async || {
        let owners = owners(&awake).await;
        if owners.len() == 1 && owners[0] != 0 {
            Ok(())
        } else {
            Err(owners)
        }
    })
    .await;
    faulty.change(URI, "three");
    others[heir].content(URI, "three").await;
    assert_eq!(
        world.count(generations).await,
        generation,
        "the heir keeps the lease"
    );
    ledger::holds(&world.database.url).await;

    // Killed: its sessions move within seconds.
    let mut dead = operators.remove(heir);
    dead.process.kill().await;
    let left = [&frozen, &operators[0]];
    let next = one_owner(&left).await;
    faulty.change(URI, "four");
    left[next].content(URI, "four").await;
    ledger::holds(&world.database.url).await;
}

/// The leader dies or is frozen; another leads, and a change of the manifests comes through. Awake again, the first publishes
/// nothing of what it last saw.
#[tokio::test]
async fn a_frozen_leader_does_not_bring_old_manifests_back() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    faulty.set("config://other", "other");
    let world = World::start("leader").await;
    let first = world.ready("a").await;
    wait::until("the first leads", SOON, async || {
        let metrics = first.metrics().await;
        if exports(&metrics, "fencepost_leader") {
            Ok(())
        } else {
            Err(())
        }
    })
    .await;
    let second = world.ready("b").await;
    let manifests = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    world.apply(&manifests).await;
    world.wait_for("condition=Ready", "watch/limits").await;

    first.process.freeze();
    world
        .apply(&watch("other", &["config://other"], LAZY))
        .await;
    world.wait_for("condition=Ready", "watch/other").await;
    world
        .kubectl(&["delete", "watch/limits", "--timeout=60s"])
        .await;
    let live = "select count(*) from watch where deleted_at is null and name = 'limits'";
    world.counts("it is gone from the ledger", live, 0).await;

    first.process.thaw();
    wait::stays(
        "it stays gone",
        Duration::from_secs(5),
        async || match world.count(live).await {
            0 => Ok(()),
            back => Err(back),
        },
    )
    .await;
    first.is_ready().await;
    let metrics = [first.metrics().await, second.metrics().await];
    let leaders = metrics
        .iter()
        .filter(|m| exports(m, "fencepost_leader"))
        .count();
    assert_eq!(leaders, 1);
    ledger::holds(&world.database.url).await;
}

/// An orderly end lets leases go at once: the next owner does not wait for them to run out.
#[tokio::test]
async fn an_orderly_end_hands_over() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("handover").await;
    let mut operators = vec![world.ready("a").await, world.ready("b").await];
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;
    let all: Vec<&Operator> = operators.iter().collect();
    let owner = one_owner(&all).await;
    let mut ending = operators.remove(owner);
    let end = ending.process.terminate().await;
    assert!(end.success(), "{end}");
    let left = [&operators[0]];
    one_owner(&left).await;
    faulty.change(URI, "two");
    left[0].content(URI, "two").await;
    world.wait_for("condition=Ready", "watch/limits").await;
}
