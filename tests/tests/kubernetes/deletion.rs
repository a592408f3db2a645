//! What is deleted closes its generations before it goes, and what comes back under the same name inherits nothing.

use fencepost_tests::faulty::FaultyServer;

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn a_deleted_watch_goes_once_its_generation_is_closed() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("delete").await;
    let operator = world.ready("a").await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    operator.content(URI, "one").await;
    // kubectl waits for the finalizer.
    world
        .kubectl(&["delete", "watch/limits", "--timeout=60s"])
        .await;
    let open = "select count(*) from resource where subscription <> 'CLOSED'";
    assert_eq!(world.count(open).await, 0);
    let without = "select count(*) from read where outcome is null";
    assert_eq!(world.count(without).await, 0);
    assert_eq!(faulty.subscribers_of(URI), 0);
}

#[tokio::test]
async fn a_server_that_is_recreated_within_a_second_inherits_nothing() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("recreate").await;
    let operator = world.ready("a").await;
    let manifests = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    world.apply(&manifests).await;
    let first = operator.content(URI, "one").await;
    world
        .kubectl(&["delete", "mcpserver/server", "--timeout=60s"])
        .await;
    world.apply(&server(&faulty.url())).await;
    let second = operator
        .resource("another resource", URI, |r| {
            r["server"]["uid"] != first["server"]["uid"] && !r["digest"].is_null()
        })
        .await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["ordinal"], 1, "a new history begins: {second}");
    assert!(
        second["generation"].as_i64() > first["generation"].as_i64(),
        "events name the server by name, and newer ones must look newer: {second}"
    );
    world
        .counts(
            "the first is closed",
            "select count(*) from resource where subscription = 'CLOSED'",
            1,
        )
        .await;
    fencepost_tests::ledger::holds(&world.database.url).await;
}

#[tokio::test]
async fn a_namespace_with_everything_in_it_goes() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let mut world = World::start("vanish").await;
    let operator = world.ready("a").await;
    let subject = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {name: anonymous}\nspec: {}\n---\n";
    world
        .apply(&(server(&faulty.url()) + subject + &watch("limits", &[URI], LAZY)))
        .await;
    operator.content(URI, "one").await;
    // The operator's own roles stand in this namespace too and go with it, perhaps first: an administrator gives it rights that stay.
    let name = world.namespace.name().to_owned();
    let account = format!("--serviceaccount={name}:fencepost");
    let binding = format!("{name}-stays");
    world
        .cluster
        .get()
        .kubectl([
            "create",
            "clusterrolebinding",
            &binding,
            "--clusterrole=cluster-admin",
            &account,
        ])
        .await
        .ok();
    world.namespace.start_deletion().await;
    world.namespace.gone().await;
    world
        .counts(
            "everything is closed",
            "select count(*) from resource where subscription <> 'CLOSED'",
            0,
        )
        .await;
    world
        .cluster
        .get()
        .kubectl(["delete", "clusterrolebinding", &binding])
        .await
        .ok();
}

/// What cannot be known any more is not claimed any more.
#[tokio::test]
async fn without_a_ledger_objects_say_so() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("silent").await;
    let operator = world.ready("a").await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;
    world.database.cut().await;
    operator.misses("\"database\"").await;
    let lost = world.condition_within(SOON * 2, "watch/limits", "Ready", |ready| {
        ready.is_some_and(|ready| ready["reason"] == "LedgerUnavailable")
    });
    assert_eq!(lost.await.unwrap()["status"], "False");
    let status = world.object("watch/limits").await["status"].clone();
    assert_eq!(
        status["resources"], 1,
        "counts stay as last known: {status}"
    );
    world.database.mend().await;
    world.ready_reason("watch/limits", "Converged").await;
    operator.is_ready().await;
}

/// The ledger is gone, and an object must not hold a namespace for ever.
#[tokio::test]
async fn without_a_ledger_the_deadline_lets_an_object_go() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("deadline").await;
    let operator = world
        .operator_with("a", &["--finalizer-deadline", "3s"])
        .await;
    operator.is_ready().await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    operator.content(URI, "one").await;
    world.database.cut().await;
    world
        .kubectl(&["delete", "watch/limits", "--timeout=60s"])
        .await;
    let events = world.kubectl(&["get", "events"]).await;
    assert!(events.contains("ClosedLate"), "{events}");
    world.database.mend().await;
    world
        .counts(
            "closed once the ledger is back",
            "select count(*) from resource where subscription <> 'CLOSED'",
            0,
        )
        .await;
}
