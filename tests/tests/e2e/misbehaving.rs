//! Servers that break their word: what was accepted stays, says how old it is, and the rest of the fleet goes on.

use fencepost_tests::faulty::{Eras, Faults, FaultyServer, ReadFault, SubscribeFault};

use crate::world::{LAZY, World, server, watch};

const URI: &str = "config://limits";
const EAGER: &str = "{mode: Auto, maxStaleness: 3s, pollInterval: 1s}";

#[tokio::test]
async fn a_server_without_subscribe_is_polled_within_its_bound() {
    for subscribe in [SubscribeFault::NotOffered, SubscribeFault::MethodNotFound] {
        let faulty = FaultyServer::start_with(Faults {
            subscribe,
            ..Faults::default()
        })
        .await;
        faulty.set(URI, "one");
        let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], EAGER))).await;
        let first = world.content(URI, "one").await;
        assert_eq!(first["mode"], "Poll");
        assert!(!first["staleAfter"].is_null(), "{first}");
        faulty.set(URI, "two");
        let after = world.content(URI, "two").await;
        assert_eq!(
            world
                .receipts(&after)
                .await
                .iter()
                .find(|r| r["outcome"] == "accepted")
                .unwrap()["trigger"],
            "Poll"
        );
        world.ledger_holds().await;
    }
}

#[tokio::test]
async fn a_subscription_that_never_tells_is_found_by_the_audit() {
    let faulty = FaultyServer::start_with(Faults {
        subscribe: SubscribeFault::AckedButSilent,
        ..Faults::default()
    })
    .await;
    faulty.set(URI, "one");
    let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], EAGER))).await;
    world.content(URI, "one").await;
    faulty.set(URI, "two");
    let after = world.content(URI, "two").await;
    assert_eq!(after["mode"], "Subscribe");
    let detail = world
        .get(&format!(
            "/api/v1/resources/{}",
            after["id"].as_str().unwrap()
        ))
        .await;
    let conditions = detail["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().any(|c| c["type"] == "DeliveryUnproven"),
        "{detail:#}"
    );
}

#[tokio::test]
async fn a_failed_read_keeps_the_old_value_and_marks_it_stale() {
    for fault in [
        ReadFault::Status(500),
        ReadFault::NoAnswer,
        ReadFault::ResultAndError,
        ReadFault::EmptyContents,
        ReadFault::InputRequired,
        ReadFault::Forbidden,
        ReadFault::Cut,
    ] {
        let named = format!("{fault:?}");
        let faulty = FaultyServer::start().await;
        faulty.set(URI, "one");
        let world = World::start(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY))).await;
        let before = world.content(URI, "one").await;
        faulty.fail_read(URI, Some(fault));
        faulty.change(URI, "two");
        let stale = world
            .resource(&format!("stale after {named}"), URI, |r| r["stale"] == true)
            .await;
        assert_eq!(stale["digest"], before["digest"], "{named}");
        assert!(!stale["reason"].is_null(), "{named}: {stale}");
        faulty.fail_read(URI, None);
        let after = world.content(URI, "two").await;
        assert_eq!(after["stale"], false, "{named}");
        world.ledger_holds().await;
    }
}

#[tokio::test]
async fn one_swallowed_subscribe_delays_no_other() {
    let faulty = FaultyServer::start_with(Faults {
        eras: Eras::Legacy,
        swallow_subscribe: Some(4),
        ..Faults::default()
    })
    .await;
    let uris: Vec<String> = (0..10).map(|n| format!("config://r/{n}")).collect();
    for uri in &uris {
        faulty.set(uri, "one");
    }
    let names: Vec<&str> = uris.iter().map(String::as_str).collect();
    let world = World::start(&(server(&faulty.url()) + &watch("all", &names, LAZY))).await;
    let mut polled = 0;
    for uri in &uris {
        polled += i32::from(world.content(uri, "one").await["mode"] == "Poll");
    }
    assert_eq!(polled, 1);
}
