//! Edits of manifests while it runs: a broken one changes nothing, a recreated server inherits nothing.

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn a_broken_edit_is_named_and_what_was_stays_in_force() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let right = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    let mut world = World::start(&right).await;
    world.content(URI, "one").await;
    world.write(&right.replace("maxStaleness: 10m", "maxStaleness: soon"));
    let line = world
        .fencepost
        .line_with("spec.refresh.maxStaleness", SOON)
        .await;
    assert!(line.contains("WatchedResource agents/limits"), "{line}");
    faulty.change(URI, "two");
    let after = world.content(URI, "two").await;
    assert_eq!(
        (&after["state"], &after["generation"]),
        (&"ACTIVE".into(), &1.into())
    );
}

#[tokio::test]
async fn a_server_recreated_with_another_address_inherits_nothing() {
    let (old, new) = (FaultyServer::start().await, FaultyServer::start().await);
    old.set(URI, "old");
    new.set(URI, "new");
    let world = World::start(&(server(&old.url()) + &watch("limits", &[URI], LAZY))).await;
    let before = world.content(URI, "old").await;
    world.write(&watch("limits", &[URI], LAZY));
    world
        .resource("a closed generation", URI, |r| r["state"] == "CLOSED")
        .await;
    world.write(&(server(&new.url()) + &watch("limits", &[URI], LAZY)));
    let page = wait::until("a resource of the new server", SOON, async || {
        let page = world.get("/api/v1/resources?state=ACTIVE").await;
        match page["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| !r["digest"].is_null())
        {
            Some(resource) => Ok(resource.clone()),
            None => Err(page),
        }
    })
    .await;
    assert_ne!(page["id"], before["id"]);
    assert_ne!(page["server"]["uid"], before["server"]["uid"]);
    assert_ne!(page["digest"], before["digest"]);
    world.ledger_holds().await;
}
