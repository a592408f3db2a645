//! What the API server refuses by the rules of the definitions, with words that say what to do.

use crate::world::World;

#[tokio::test]
async fn a_manifest_that_breaks_a_rule_is_refused_with_its_message() {
    let world = World::start("refused").await;
    for (spec, said) in [
        (
            "kind: MCPServer, spec: {url: \"ftp://x/mcp\"}",
            "the url is neither http nor https; write it as http://HOST:PORT/mcp",
        ),
        (
            "kind: MCPServer, spec: {url: \"http://u:p@x/mcp\"}",
            "the url carries a user name or password",
        ),
        (
            "kind: MCPServer, spec: {url: \"http://x/mcp\", service: {name: x, port: 80}}",
            "give exactly one of url, serverRef, service and stdio",
        ),
        (
            "kind: MCPServer, spec: {}",
            "give exactly one of url, serverRef, service and stdio",
        ),
        (
            "kind: WatchedResource, spec: {serverRef: {name: s}}",
            "name resources in uris, or choose them with select",
        ),
        (
            "kind: WatchedResource, spec: {serverRef: {name: s}, uris: [\"guide.md\"]}",
            "the URI is not absolute; write the scheme too",
        ),
        (
            "kind: WatchedResource, spec: {serverRef: {name: s}, uris: [\"a:b\"], refresh: {maxStaleness: 10s, pollInterval: 20s}}",
            "pollInterval is longer than maxStaleness",
        ),
        (
            "kind: WatchedResource, spec: {serverRef: {name: s}, uris: [\"a:b\"], rollout: {stage: Canary}}",
            "a canary without a size; add percent",
        ),
        (
            "kind: WatchedResource, spec: {serverRef: {name: s}, uris: [\"a:b\", \"a:b\"]}",
            "Duplicate value",
        ),
        (
            "kind: MCPSubject, spec: {header: Host}",
            "this header belongs to the protocol",
        ),
        (
            "kind: DerivedIndex, spec: {webhook: {url: \"https://x\", signingSecretRef: {name: a, key: b}}, watches: {}}",
            "watches takes either names or matchLabels",
        ),
    ] {
        let manifest =
            format!("{{apiVersion: fencepost.dev/v1alpha1, metadata: {{name: broken}}, {spec}}}");
        let answer = world.namespace.apply(&manifest).await.refused();
        assert!(answer.contains(said), "{spec}:\n{answer}");
    }
}

/// Every example that `fencepost dev` runs is taken as it is.
#[tokio::test]
async fn the_examples_apply() {
    let world = World::start("examples").await;
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");
    world
        .kubectl(&[
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            workspace,
        ])
        .await;
}
