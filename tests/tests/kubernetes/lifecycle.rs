//! Applied, changed, suspended, looked at again: what a user does with kubectl, and what comes of it.

use std::time::Duration;

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn apply_wait_get_describe_and_change() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("apply").await;
    let operator = world.ready("a").await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world
        .wait_for("condition=Ready", "watchedresource/limits")
        .await;
    world.wait_for("condition=Ready", "mcpserver/server").await;
    operator.content(URI, "one").await;

    let row = world.kubectl(&["get", "watch", "limits"]).await;
    let columns: Vec<&str> = row.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        columns[..5],
        ["limits", "True", "server", "1", "1/1"],
        "{row}"
    );
    let wide = world
        .kubectl(&["get", "mcps", "server", "-o", "wide"])
        .await;
    assert!(wide.contains("Connected") || wide.contains("era"), "{wide}");
    let all = world.kubectl(&["get", "fencepost"]).await;
    assert!(all.contains("mcpserver.fencepost.dev/server"), "{all}");

    // Events come on transitions, and one alone for each.
    let described = wait::until("the Event", SOON, async || {
        let described = world.kubectl(&["describe", "watch", "limits"]).await;
        if described.contains("Converged  ") {
            Ok(described)
        } else {
            Err(described)
        }
    })
    .await;
    assert_eq!(
        described.matches("fencepost.dev/operator").count(),
        1,
        "{described}"
    );

    faulty.change(URI, "two");
    operator.content(URI, "two").await;
    let status = world.object("watch/limits").await["status"].clone();
    assert_eq!(status["observedGeneration"], 1, "{status}");
}

/// Polled every second, and nothing changes: the object is left alone.
#[tokio::test]
async fn the_resource_version_of_an_idle_object_stands_still() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("idle").await;
    let _operator = world.ready("a").await;
    let often = "{mode: Poll, maxStaleness: 20s, pollInterval: 1s}";
    let subject = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {name: anonymous}\nspec: {}\n---\n";
    world
        .apply(&(server(&faulty.url()) + subject + &watch("limits", &[URI], often)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;
    world.wait_for("condition=Ready", "mcpsub/anonymous").await;
    let versions = async || {
        let path = "jsonpath={range .items[*]}{.kind} {.metadata.resourceVersion} {.status.lastUsed}\n{end}";
        world
            .kubectl(&["get", "mcps,mcpsub,watch", "-o", path])
            .await
    };
    // The first reads settle the counts; from then on nothing is new.
    let mut before = versions().await;
    let quiet = wait::until("two looks that are the same", SOON, async || {
        tokio::time::sleep(Duration::from_secs(6)).await;
        let now = versions().await;
        let same = now == before;
        before.clone_from(&now);
        if same { Ok(now) } else { Err(now) }
    })
    .await;
    let reads = faulty.reads_of(URI);
    wait::stays("the same versions", Duration::from_secs(25), async || {
        let now = versions().await;
        if now == quiet { Ok(()) } else { Err(now) }
    })
    .await;
    assert!(
        faulty.reads_of(URI) > reads + 5,
        "it was read all the while"
    );
}

#[tokio::test]
async fn reconcile_now_reads_and_is_echoed() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("now").await;
    let operator = world.ready("a").await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    let resource = operator.content(URI, "one").await;
    // Silent: only the annotation can bring it.
    faulty.set(URI, "two");
    world
        .kubectl(&[
            "annotate",
            "watch/limits",
            "fencepost.dev/reconcile-at=now-1",
        ])
        .await;
    operator.content(URI, "two").await;
    let receipts = operator.receipts(&resource).await;
    assert_eq!(receipts[0]["trigger"], "Manual", "{receipts:?}");
    world
        .wait_for(
            "jsonpath={.status.lastHandledReconcileAt}=now-1",
            "watch/limits",
        )
        .await;
}

#[tokio::test]
async fn suspend_closes_and_resume_opens_a_new_generation() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let world = World::start("suspend").await;
    let operator = world.ready("a").await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    let first = operator.content(URI, "one").await;
    let patch = |suspend: bool| format!("{{\"spec\":{{\"suspend\":{suspend}}}}}");
    world
        .kubectl(&["patch", "watch/limits", "--type=merge", "-p", &patch(true)])
        .await;
    world.ready_reason("watch/limits", "Suspended").await;
    operator
        .resource("closed", URI, |r| r["state"] == "CLOSED")
        .await;
    let reads = faulty.reads_of(URI);
    faulty.change(URI, "two");
    wait::stays("no read", Duration::from_secs(2), async || {
        if faulty.reads_of(URI) == reads {
            Ok(())
        } else {
            Err(faulty.reads_of(URI))
        }
    })
    .await;
    world
        .kubectl(&["patch", "watch/limits", "--type=merge", "-p", &patch(false)])
        .await;
    operator.content(URI, "two").await;
    world.wait_for("condition=Ready", "watch/limits").await;
    let second = operator
        .resource("open", URI, |r| r["state"] == "ACTIVE")
        .await;
    assert!(second["generation"].as_i64() > first["generation"].as_i64());
    let status = world.object("watch/limits").await["status"].clone();
    assert_eq!(status["observedGeneration"], 3, "{status}");
}
