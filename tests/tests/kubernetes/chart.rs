//! The chart against the API server: every rendering is taken, and the operator has exactly the rights that it needs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use fencepost_tests::{
    binary::{self, Fencepost},
    cluster::ApiServer,
    faulty::FaultyServer,
    postgres::Database,
    wait,
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::world::{LAZY, SOON, server, watch};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const RELEASE: &str = "fencepost";

fn values(name: &str) -> PathBuf {
    Path::new(WORKSPACE)
        .join("tests/chart/values")
        .join(format!("{name}.yaml"))
}

async fn render(cluster: &ApiServer, values: &Path) -> String {
    let chart = format!("{WORKSPACE}/charts/fencepost");
    let values = values.to_str().unwrap();
    cluster
        .helm([
            "template",
            RELEASE,
            &chart,
            "--namespace",
            RELEASE,
            "--values",
            values,
        ])
        .await
        .ok()
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_norway::Deserializer::from_str(yaml)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|value| !value.is_null())
        .collect()
}

/// A cluster with our kinds, those of others that the chart may render, and the namespaces that the values name.
async fn cluster() -> ApiServer {
    let cluster = ApiServer::start().await;
    cluster.install_crds().await;
    let theirs = format!("{WORKSPACE}/tests/chart/crds");
    cluster
        .kubectl(["apply", "--server-side", "-f", &theirs])
        .await
        .ok();
    for namespace in [RELEASE, "agents", "search", "support"] {
        cluster
            .kubectl(["create", "namespace", namespace])
            .await
            .ok();
    }
    wait::until("the kinds of others are served", SOON, async || {
        let kinds = "servicemonitors.monitoring.coreos.com,prometheusrules.monitoring.coreos.com,clusters.postgresql.cnpg.io";
        let seen = cluster.kubectl(["get", kinds, "-A"]).await;
        if seen.succeeded() { Ok(()) } else { Err(seen) }
    })
    .await;
    cluster
}

#[tokio::test]
async fn every_rendering_is_taken_by_the_api_server() {
    let cluster = cluster().await;
    let mut files: Vec<PathBuf> = fs::read_dir(Path::new(WORKSPACE).join("tests/chart/values"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let rendered = render(&cluster, &file).await;
        let args = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
        ];
        let taken = cluster.kubectl_with(args, &rendered).await;
        assert!(taken.succeeded(), "{}: {}", file.display(), taken.stderr);
    }
}

/// One (group, resource, verb) for each right of these roles.
fn rights<'a>(roles: impl Iterator<Item = &'a Value>) -> BTreeSet<(String, String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut rights = BTreeSet::new();
    for rule in roles.flat_map(|role| role["rules"].as_array().unwrap()) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    rights
}

/// What the operator's own `ServiceAccount` is bound to in this rendering.
fn bound<'a>(objects: &'a [Value], account: &str) -> Vec<&'a Value> {
    let bindings = objects.iter().filter(|object| {
        object["kind"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("RoleBinding"))
            && object["subjects"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|subject| subject["name"] == account)
    });
    bindings
        .map(|binding| {
            let role = &binding["roleRef"];
            objects
                .iter()
                .find(|object| {
                    object["kind"] == role["kind"]
                        && object["metadata"]["name"] == role["name"]
                        && (role["kind"] == "ClusterRole"
                            || object["metadata"]["namespace"] == binding["metadata"]["namespace"])
                })
                .unwrap()
        })
        .collect()
}

/// Starts the operator with the arguments and variables of the rendered container.
fn as_the_pod_would(container: &Value, kubeconfig: &Path, database: &Database) -> Fencepost {
    let args: Vec<&str> = container["args"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|arg| arg.as_str().unwrap())
        // A port that is free here.
        .map(|arg| {
            if arg.starts_with("--listen=") {
                "--listen=127.0.0.1:0"
            } else {
                arg
            }
        })
        .collect();
    assert_eq!(args.first(), Some(&"operator"), "{container}");
    Fencepost::start_with(args, |command| {
        for variable in container["env"].as_array().into_iter().flatten() {
            if let Some(value) = variable["value"].as_str() {
                command.env(variable["name"].as_str().unwrap(), value);
            }
        }
        // What the pod's own place gives it.
        command
            .env("KUBECONFIG", kubeconfig)
            .env("FENCEPOST_DATABASE_URL", &database.url)
            .env("POD_NAMESPACE", RELEASE)
            .env("POD_NAME", "fencepost-0")
            .env("FENCEPOST_ALLOW_LOOPBACK", "true");
    })
}

async fn runs_with_the_rights_of(values_name: &str, namespaces: &[&str]) {
    let cluster = cluster().await;
    let objects = documents(&render(&cluster, &values(values_name)).await);
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().unwrap();

    // No verb more and none less than what the operator says it needs.
    let mut printed = vec!["rbac", "--own-namespace", RELEASE];
    for namespace in namespaces {
        printed.extend(["--namespace", namespace]);
    }
    let needed = String::from_utf8(binary::run(printed).stdout).unwrap();
    assert_eq!(
        rights(bound(&objects, account).into_iter()),
        rights(documents(&needed).iter()),
        "{values_name}: the chart's roles and `fencepost rbac` differ"
    );

    // Only what gives rights: no pod runs here, the operator is started below as the pod would start it.
    for object in &objects {
        let kind = object["kind"].as_str().unwrap();
        if kind.contains("Role") || kind == "ServiceAccount" {
            let args = ["apply", "--server-side", "-f", "-"];
            cluster.kubectl_with(args, &object.to_string()).await.ok();
        }
    }
    let kubeconfig = cluster.kubeconfig_for(RELEASE, account).await;
    let database = Database::fresh().await;
    let migrated = binary::run(["migrate", "--database-url", &database.url]);
    assert!(migrated.status.success(), "{migrated:?}");
    let mut process = as_the_pod_would(&pod["containers"][0], &kubeconfig, &database);
    let base = process.base_url().await;
    wait::until("ready with the chart's rights", SOON, async || {
        let answer = reqwest::get(format!("{base}/readyz")).await.unwrap();
        let status = answer.status();
        let body = answer.text().await.unwrap();
        if status == 200 { Ok(()) } else { Err(body) }
    })
    .await;

    let faulty = FaultyServer::start().await;
    faulty.set("config://limits", "one");
    let manifests = server(&faulty.url()) + &watch("limits", &["config://limits"], LAZY);
    let args = ["apply", "--namespace", "agents", "-f", "-"];
    cluster.kubectl_with(args, &manifests).await.ok();
    let wait = [
        "wait",
        "--namespace",
        "agents",
        "--for=condition=Ready",
        "watch/limits",
        "--timeout=60s",
    ];
    cluster.kubectl(wait).await.ok();
    let gone = [
        "delete",
        "--namespace",
        "agents",
        "watch/limits",
        "--timeout=60s",
    ];
    cluster.kubectl(gone).await.ok();
    let events = cluster
        .kubectl(["get", "events", "--namespace", "agents"])
        .await
        .ok();
    assert!(events.contains("Converged"), "{events}");
    let refused: Vec<String> = process
        .output()
        .into_iter()
        .filter(|line| line.contains("orbidden"))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let end = process.terminate().await;
    assert!(end.success(), "{end}");
}

#[tokio::test]
async fn the_operator_runs_cluster_wide_with_the_rights_of_the_chart() {
    runs_with_the_rights_of("default", &[]).await;
}

#[tokio::test]
async fn the_operator_runs_in_two_namespaces_with_the_rights_of_the_chart() {
    runs_with_the_rights_of("namespaced", &["agents", "search"]).await;
}
