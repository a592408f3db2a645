//! Gaps: whatever ends a stream or a session, what changed meanwhile is accepted, and the receipts show why it was read.

use fencepost_tests::faulty::{Eras, Faults, FaultyServer};
use serde_json::Value;

use crate::world::{LAZY, World, server, watch};

const URI: &str = "config://limits";

async fn world(faulty: &FaultyServer) -> World {
    faulty.set(URI, "one");
    let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY))).await;
    world.content(URI, "one").await;
    world
}

/// Some read that brought it says that it was a gap's.
async fn gap_shows(world: &World, resource: &Value) {
    let receipts = world.receipts(resource).await;
    assert!(
        receipts
            .iter()
            .any(|r| r["trigger"] == "Gap" && r["outcome"] == "accepted"),
        "{receipts:#?}"
    );
    world.ledger_holds().await;
}

async fn of_era(eras: Eras) -> FaultyServer {
    FaultyServer::start_with(Faults {
        eras,
        ..Faults::default()
    })
    .await
}

#[tokio::test]
async fn the_server_is_stopped_and_started_while_its_content_changes() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let faulty = of_era(eras).await;
        let world = world(&faulty).await;
        let addr = faulty.addr();
        faulty.stop().await;
        let faulty = FaultyServer::start_on(
            addr,
            Faults {
                eras,
                ..Faults::default()
            },
        )
        .await;
        faulty.set(URI, "two");
        let after = world.content(URI, "two").await;
        assert!(after["generation"].as_i64() > Some(1), "{after}");
        gap_shows(&world, &after).await;
        // And the new session is told of the next change.
        faulty.change(URI, "three");
        world.content(URI, "three").await;
    }
}

#[tokio::test]
async fn a_dropped_stream_is_read_after() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let faulty = of_era(eras).await;
        let world = world(&faulty).await;
        faulty.set(URI, "two");
        faulty.drop_streams();
        let after = world.content(URI, "two").await;
        gap_shows(&world, &after).await;
        faulty.change(URI, "three");
        world.content(URI, "three").await;
    }
}

#[tokio::test]
async fn a_forgotten_session_is_a_new_generation() {
    let faulty = of_era(Eras::Legacy).await;
    let world = world(&faulty).await;
    faulty.set(URI, "two");
    faulty.forget_sessions();
    let after = world.content(URI, "two").await;
    assert!(after["generation"].as_i64() > Some(1), "{after}");
    gap_shows(&world, &after).await;
}

#[tokio::test]
async fn a_listen_that_ends_gracefully_is_a_gap_too() {
    let faulty = of_era(Eras::Modern).await;
    let world = world(&faulty).await;
    faulty.set(URI, "two");
    faulty.end_listens();
    let after = world.content(URI, "two").await;
    gap_shows(&world, &after).await;
}
