//! Many resources, small status.

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{SOON, World, server};

const MANY: usize = 20_000;

#[tokio::test]
async fn the_status_of_a_watch_of_twenty_thousand_stays_small() {
    let faulty = FaultyServer::start().await;
    faulty.without_log();
    let uris: Vec<String> = (0..MANY)
        .map(|n| format!("docs:///pages/{n:05}.md"))
        .collect();
    faulty.set_many(uris.iter().map(|uri| (uri, "text")));
    let world = World::start("size").await;
    let operator = world.ready("a").await;
    let listed = format!("  - {}", uris.join("\n  - "));
    let server = server(&faulty.url()).replace(
        "requestsPerSecond: 1000",
        "requestsPerSecond: 10000, maxInFlight: 64",
    );
    world.apply(&server).await;
    // Too large for the annotation of a client-side apply.
    let manifest = format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: all}}\nspec:\n  serverRef: {{name: server}}\n  \
         refresh: {{mode: Poll, maxStaleness: 24h, pollInterval: 12h}}\n  content: {{store: false}}\n  uris:\n{listed}"
    );
    let cluster = world.cluster.get();
    cluster
        .kubectl_with(
            [
                "apply",
                "--server-side",
                "-n",
                world.namespace.name(),
                "-f",
                "-",
            ],
            &manifest,
        )
        .await
        .ok();
    let status = wait::until("every resource is counted", SOON * 5, async || {
        let object = world.object("watch/all").await;
        let status = object["status"].clone();
        if status["resources"] == MANY && status["converged"] == format!("{MANY}/{MANY}") {
            Ok(status)
        } else {
            Err((status["resources"].clone(), status["converged"].clone()))
        }
    })
    .await;
    let bytes = serde_json::to_vec(&status).unwrap().len();
    assert!(bytes < 64 * 1024, "{bytes} bytes");
    assert_eq!(status["sample"].as_array().map(Vec::len), Some(20));
    drop(operator);
}
