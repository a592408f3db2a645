//! The API server is away, definitions are missing, a verb is missing: said by name, and over without a restart.

use std::time::Duration;

use fencepost_tests::{faulty::FaultyServer, wait};

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

#[tokio::test]
async fn definitions_come_late_and_the_api_server_goes_and_comes_back() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let mut world = World::alone("trouble").await;
    let mut operator = world.operator("a").await;
    let missing = operator.misses("fencepost crds | kubectl apply").await;
    assert!(
        missing.contains("the cluster has no watchedresources.fencepost.dev"),
        "{missing}"
    );
    // No hot loop: ten seconds of it are a handful of requests a resource.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let metrics = operator.metrics().await;
    let failed = metrics
        .lines()
        .find(|line| {
            line.starts_with("fencepost_kubernetes_watch_errors_total{")
                && line.contains("watchedresources")
        })
        .and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .unwrap_or_else(|| panic!("{metrics}"));
    assert!((1.0..20.0).contains(&failed), "{failed} tries");

    world.cluster.get().install_crds().await;
    operator.is_ready().await;
    world
        .apply(&(server(&faulty.url()) + &watch("limits", &[URI], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;

    // A definition that is too old for a field that is needed.
    let crd = "crd/watchedresources.fencepost.dev";
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/rollout";
    let remove = format!("[{{\"op\":\"remove\",\"path\":\"{field}\"}}]");
    let cluster = world.cluster.get();
    cluster
        .kubectl(["patch", crd, "--type=json", "-p", &remove])
        .await
        .ok();
    let missing = operator.misses("too old").await;
    assert!(missing.contains("spec.rollout"), "{missing}");
    cluster.install_crds().await;
    operator.is_ready().await;

    let pid = operator.process.pid();
    world.cluster.own().kill_api_server().await;
    // Reading goes on: the cluster says what to read, not whether.
    faulty.change(URI, "two");
    operator.content(URI, "two").await;
    wait::stays("it stays ready", Duration::from_secs(12), async || {
        let answer = operator.answer("/readyz").await;
        match answer.status().as_u16() {
            200 => Ok(()),
            _ => Err(answer.text().await),
        }
    })
    .await;
    world.cluster.own().start_api_server().await;
    faulty.set("config://more", "more");
    world.apply(&watch("more", &["config://more"], LAZY)).await;
    operator.content("config://more", "more").await;
    world.wait_for("condition=Ready", "watch/more").await;
    operator.is_ready().await;
    assert_eq!(operator.process.pid(), pid);
    let end = operator.process.terminate().await;
    assert!(end.success(), "{end}");
}

#[tokio::test]
async fn a_missing_verb_is_named_and_its_return_is_noticed() {
    let world = World::start("verb").await;
    let mut operator = world.ready("a").await;
    let role = world.object("role/fencepost").await;
    // Without `watch` on Secrets a rotation would go unnoticed.
    let mut less = role.clone();
    for rule in less["rules"].as_array_mut().unwrap() {
        if rule["resources"] == serde_json::json!(["secrets"]) {
            rule["verbs"] = serde_json::json!(["get", "list"]);
        }
    }
    assert_ne!(less, role);
    let replace = async |role: &serde_json::Value| {
        let mut role = role.clone();
        role["metadata"] = serde_json::json!({"name": "fencepost"});
        let cluster = world.cluster.get();
        let args = ["replace", "-n", world.namespace.name(), "-f", "-"];
        cluster.kubectl_with(args, &role.to_string()).await.ok();
    };
    replace(&less).await;
    let missing = operator.misses("permission watch secrets").await;
    assert!(missing.contains(world.namespace.name()), "{missing}");
    let metrics = operator.metrics().await;
    assert!(
        metrics.contains("fencepost_missing_permissions{resource=\"secrets\",verb=\"watch\"} 1"),
        "{metrics}"
    );
    operator
        .process
        .line_with("a permission is missing", SOON)
        .await;
    replace(&role).await;
    operator.is_ready().await;
    wait::until("the metric is gone", SOON, async || {
        let metrics = operator.metrics().await;
        if metrics.contains("fencepost_missing_permissions{") {
            Err(())
        } else {
            Ok(())
        }
    })
    .await;
}
