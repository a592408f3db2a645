//! Servers that nobody here wrote, in both eras and over both transports.

use fencepost_tests::{
    real_servers::{Edition, Everything, Memory, PythonModern, everything_stdio},
    wait,
};
use serde_json::Value;

use crate::world::{LAZY, SOON, World, server, watch};

async fn era(world: &World) -> Value {
    world.get("/api/v1/servers").await["items"][0].clone()
}

/// mcp-proxy before server-memory speaks both eras; the manifest says which is wanted.
#[tokio::test]
async fn memory_behind_mcp_proxy_in_both_eras() {
    for protocol in ["Legacy", "Modern", "Auto"] {
        let memory = Memory::start().await;
        let manifests = server(&memory.url())
            .replace("limits:", &format!("protocol: {protocol}, limits:"))
            + &watch("graph", &["memory://knowledge-graph"], LAZY);
        let world = World::start(&manifests).await;
        let uri = "memory://knowledge-graph";
        let before = world
            .resource("a first version", uri, |r| !r["digest"].is_null())
            .await;
        assert_eq!(before["mode"], "Subscribe", "{before}");
        memory.create_entity("fencepost").await;
        let after = world
            .resource("the changed version", uri, |r| {
                r["digest"] != before["digest"]
            })
            .await;
        let newest = &world.versions(&after).await[0];
        assert_eq!(newest["trigger"], "Notification", "{protocol}: {newest}");
        let expected = if protocol == "Legacy" {
            "legacy"
        } else {
            "modern"
        };
        assert_eq!(era(&world).await["era"], expected, "{protocol}");
        world.ledger_holds().await;
    }
}

/// server-everything 2025.12.18 updates each subscribed URI every ten seconds by itself.
#[tokio::test]
async fn everything_over_http() {
    let mut everything = Everything::start(Edition::December2025).await;
    let uri = "test://static/resource/1";
    let world = World::start(&(server(&everything.url()) + &watch("one", &[uri], LAZY))).await;
    let before = world
        .resource("a first version", uri, |r| !r["digest"].is_null())
        .await;
    assert_eq!(era(&world).await["era"], "legacy");
    let notified = async || {
        let receipts = world.receipts(&before).await;
        receipts
            .iter()
            .any(|r| r["trigger"] == "Notification" && !r["outcome"].is_null())
    };
    wait::until_value(
        "a read that a notification caused",
        SOON,
        notified,
        |seen| *seen,
    )
    .await;

    // It announces a lost session by 400 without an id; the next session is a new generation.
    everything.server.stop().await;
    everything.server.start_again().await;
    let after = world.resource("a new generation", uri, |r| {
        r["generation"].as_i64() > before["generation"].as_i64()
            && r["state"] == "ACTIVE"
            && r["refresh"] == "IDLE"
    });
    let after = after.await;
    assert!(
        world
            .receipts(&after)
            .await
            .iter()
            .any(|r| r["trigger"] == "Gap")
    );
    world.ledger_holds().await;
}

#[tokio::test]
async fn everything_over_stdio() {
    let command = everything_stdio(Edition::August2026);
    let args: Vec<String> = command[1..].iter().map(|arg| format!("{arg:?}")).collect();
    let manifest = format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server, namespace: agents}}\n\
         spec: {{stdio: {{command: {:?}, args: [{}]}}}}\n---\n",
        command[0],
        args.join(", ")
    );
    let uri = "demo://resource/dynamic/text/1";
    let mut world = World::start(&(manifest + &watch("one", &[uri], LAZY))).await;
    let resource = world
        .resource("a first version", uri, |r| !r["digest"].is_null())
        .await;
    assert_eq!(resource["mode"], "Subscribe");
    assert!(
        era(&world).await["address"]
            .as_str()
            .unwrap()
            .starts_with("stdio: ")
    );
    assert!(world.fencepost.interrupt().await.success());
    world.fencepost.no_orphans().await;
}

/// The Python SDK: modern with subscribe; its legacy side declares none.
#[tokio::test]
async fn python_modern_by_listen() {
    let python = PythonModern::start().await;
    let uri = "memo://notes/0";
    let world = World::start(&(server(&python.url()) + &watch("notes", &[uri], LAZY))).await;
    let before = world
        .resource("a first version", uri, |r| !r["digest"].is_null())
        .await;
    assert_eq!(
        (&era(&world).await["era"], &before["mode"]),
        (&"modern".into(), &"Subscribe".into())
    );
    python.set(uri, "changed by the test").await;
    world.content(uri, "changed by the test").await;
    world.ledger_holds().await;
}

#[tokio::test]
async fn python_legacy_declares_no_subscribe_and_is_polled() {
    let python = PythonModern::start().await;
    let uri = "memo://notes/1";
    let manifests = server(&python.url()).replace("limits:", "protocol: Legacy, limits:")
        + &watch(
            "notes",
            &[uri],
            "{mode: Auto, maxStaleness: 4s, pollInterval: 1s}",
        );
    let world = World::start(&manifests).await;
    let before = world
        .resource("a first version", uri, |r| !r["digest"].is_null())
        .await;
    assert_eq!(
        (&era(&world).await["era"], &before["mode"]),
        (&"legacy".into(), &"Poll".into())
    );
    python.set(uri, "changed by the test").await;
    world.content(uri, "changed by the test").await;
}
