//! kill -9 between a read's issue and its acceptance: nothing lost, no ordinal reused, the resource converges.

use fencepost_tests::faulty::FaultyServer;

use crate::world::{LAZY, SOON, World, server, watch};

#[tokio::test]
async fn killed_between_issue_and_acceptance() {
    let faulty = FaultyServer::start().await;
    faulty.set("config://limits", "one");
    let manifests = server(&faulty.url()) + &watch("limits", &["config://limits"], LAZY);
    let mut world = World::start(&manifests).await;
    world.content("config://limits", "one").await;

    let hold = faulty.hold("config://limits");
    faulty.change("config://limits", "two");
    hold.caught(SOON).await;
    let issued = world
        .resource("an issued read", "config://limits", |r| {
            r["refresh"] == "READ_PENDING"
        })
        .await;
    assert_eq!(issued["issuedOrdinal"], 2);
    assert_eq!(issued["ordinal"], 1);
    world.fencepost.kill().await;
    hold.release();
    faulty.set("config://limits", "three");

    world.start_again().await;
    let after = world.content("config://limits", "three").await;
    assert!(after["issuedOrdinal"].as_i64() > Some(2), "{after}");
    assert!(after["generation"].as_i64() > issued["generation"].as_i64());
    let receipts = world.receipts(&after).await;
    let given_up = receipts.iter().find(|r| r["ordinal"] == 2).unwrap();
    assert_eq!(
        (&given_up["outcome"], &given_up["reason"]),
        (&"stale".into(), &"STALE_AFTER_CLOSE".into())
    );
    assert!(
        receipts.iter().all(|r| !r["outcome"].is_null()),
        "{receipts:#?}"
    );
    let versions = world.versions(&after).await;
    assert_eq!(
        versions.len(),
        2,
        "one and three; two was never accepted: {versions:#?}"
    );
    world.ledger_holds().await;
}
