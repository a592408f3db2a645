//! Late answers, closes and duplicates: what must change nothing changes nothing, and leaves its receipt.

use std::time::Duration;

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn an_answer_after_the_close_leaves_only_a_stale_receipt() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    faulty.set("config://other", "other");
    let both = server(&faulty.url())
        + &watch("limits", &[URI], LAZY)
        + &watch("other", &["config://other"], LAZY);
    let world = World::start(&both).await;
    world.content(URI, "one").await;
    world.content("config://other", "other").await;

    let hold = faulty.hold(URI);
    faulty.change(URI, "two");
    hold.caught(SOON).await;
    world.write(&(server(&faulty.url()) + &watch("other", &["config://other"], LAZY)));
    let closed = world
        .resource("a closed generation", URI, |r| r["state"] == "CLOSED")
        .await;
    assert_eq!(
        closed["watches"].as_array().map(Vec::len),
        Some(0),
        "{closed}"
    );
    hold.release();
    let receipts = wait::until_value(
        "the receipt",
        SOON,
        async || world.receipts(&closed).await,
        |receipts| receipts.iter().all(|r| !r["outcome"].is_null()),
    )
    .await;
    assert_eq!(receipts[0]["ordinal"], 2);
    assert_eq!(receipts[0]["reason"], "STALE_AFTER_CLOSE");
    assert_eq!(world.versions(&closed).await.len(), 1);
    assert_eq!(
        world
            .sql("select count(*) from outbox where uri = 'config://limits'")
            .await,
        1
    );

    // Notifications that go on all the same cause no read.
    let reads = faulty.reads_of(URI);
    faulty.notify_everyone(URI);
    wait::stays(
        "no read after the close",
        Duration::from_secs(1),
        async || {
            if faulty.reads_of(URI) == reads {
                Ok(())
            } else {
                Err(faulty.reads_of(URI))
            }
        },
    )
    .await;
    world.ledger_holds().await;
}

#[tokio::test]
async fn watching_again_is_a_new_generation_that_keeps_the_watermark() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let with = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    let world = World::start(&with).await;
    let before = world.content(URI, "one").await;
    world.write(&server(&faulty.url()));
    world
        .resource("a closed generation", URI, |r| r["state"] == "CLOSED")
        .await;
    world.write(&with);
    let again = world
        .resource("an active one", URI, |r| {
            r["state"] == "ACTIVE" && r["refresh"] == "IDLE"
        })
        .await;
    assert!(again["generation"].as_i64() > before["generation"].as_i64());
    assert!(again["ordinal"].as_i64() >= before["ordinal"].as_i64());
    assert_eq!(again["digest"], before["digest"]);
    world.ledger_holds().await;
}

#[tokio::test]
async fn duplicated_notifications_cost_hardly_a_read() {
    let faulty = FaultyServer::start().await;
    let uris: Vec<String> = (0..20).map(|n| format!("config://r/{n}")).collect();
    for uri in &uris {
        faulty.set(uri, "0");
    }
    let names: Vec<&str> = uris.iter().map(String::as_str).collect();
    let world = World::start(&(server(&faulty.url()) + &watch("all", &names, LAZY))).await;
    for uri in &uris {
        world.content(uri, "0").await;
    }
    for round in 1..=5 {
        for uri in &uris {
            faulty.set(uri, &round.to_string());
            faulty.notify_times(uri, 5);
        }
        for uri in &uris {
            world.content(uri, &round.to_string()).await;
        }
    }
    let reads = world
        .sql("select count(*) from read where trigger = 'Notification'")
        .await;
    let versions = world.sql("select count(*) from resource_version v join read d using (resource_id, ordinal) where d.trigger = 'Notification'").await;
    assert_eq!(versions, 100);
    assert!(
        reads * 10 < versions * 12,
        "{reads} reads for {versions} versions"
    );
    world.ledger_holds().await;
}

#[tokio::test]
async fn a_storm_of_notifications_ends_in_the_last_state() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "0");
    let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY))).await;
    world.content(URI, "0").await;
    for round in 1..=100 {
        faulty.set(URI, &round.to_string());
        faulty.notify_times(URI, 100);
    }
    let after = world.content(URI, "100").await;
    let reads = world.receipts(&after).await.len();
    assert!(reads < 200, "{reads} reads of 10,000 notifications");
    world.ledger_holds().await;
}
