//! Not found: a tombstone takes time and more than one look, a return is accepted, a mass vanishing is held.

use fencepost_tests::faulty::FaultyServer;

use crate::world::{World, server, watch};

const EAGER: &str = "{mode: Auto, maxStaleness: 4s, pollInterval: 1s}";

#[tokio::test]
async fn deleted_confirmed_announced_and_accepted_again() {
    let faulty = FaultyServer::start().await;
    for n in 0..4 {
        faulty.set(&format!("config://r/{n}"), "one");
    }
    let uris = [
        "config://r/0",
        "config://r/1",
        "config://r/2",
        "config://r/3",
    ];
    let world = World::start(&(server(&faulty.url()) + &watch("all", &uris, EAGER))).await;
    for uri in uris {
        world.content(uri, "one").await;
    }
    faulty.remove("config://r/0");
    faulty.notify("config://r/0");
    let pending = world
        .resource("a pending tombstone", uris[0], |r| {
            r["state"] == "TOMBSTONE_PENDING"
        })
        .await;
    assert!(
        !pending["digest"].is_null(),
        "nothing is withdrawn yet: {pending}"
    );
    let gone = world
        .resource("a tombstone", uris[0], |r| r["state"] == "TOMBSTONED")
        .await;
    assert!(gone["digest"].is_null(), "{gone}");
    let content = world
        .answer(&format!(
            "/api/v1/resources/{}/content",
            gone["id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(content.status(), 410);
    let events = world.get("/api/v1/outbox?after=0&limit=100").await;
    let told = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["type"] == "dev.fencepost.resource.tombstoned")
        .unwrap()
        .clone();
    assert_eq!(
        (&told["subject"], &told["data"]["basis"]),
        (&uris[0].into(), &"ReadsOnly".into())
    );

    faulty.set("config://r/0", "one");
    faulty.notify("config://r/0");
    let back = world.content(uris[0], "one").await;
    assert_eq!(back["state"], "ACTIVE");
    world.ledger_holds().await;
}

#[tokio::test]
async fn a_fleet_that_vanishes_at_once_is_held() {
    let faulty = FaultyServer::start().await;
    let uris: Vec<String> = (0..10).map(|n| format!("config://r/{n}")).collect();
    for uri in &uris {
        faulty.set(uri, "one");
    }
    let names: Vec<&str> = uris.iter().map(String::as_str).collect();
    let mut world = World::start(&(server(&faulty.url()) + &watch("all", &names, EAGER))).await;
    for uri in &uris {
        world.content(uri, "one").await;
    }
    for uri in &uris {
        faulty.remove(uri);
        faulty.notify(uri);
    }
    world
        .fencepost
        .line_with("tombstones are held", crate::world::SOON)
        .await;
    for uri in &uris {
        let held = world
            .resource("held", uri, |r| r["state"] == "TOMBSTONE_PENDING")
            .await;
        assert!(!held["digest"].is_null());
    }
    assert_eq!(
        world
            .sql("select count(*) from outbox where kind = 'resource.tombstoned'")
            .await,
        0
    );
}
