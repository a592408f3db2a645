//! The API server is a real one, comes back from a stop with what it held, and leaves nothing behind.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use nix::sys::signal::Signal;

use super::{ApiServer, programs};
use crate::{process::Process, wait};

/// A controller's or a watch's reaction takes less than a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(15);

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {text: kept}
";

#[tokio::test]
async fn what_was_applied_is_there_after_a_stop() {
    let mut cluster = ApiServer::start().await;
    let namespace = cluster.namespace("flap").await;
    namespace.apply(NOTE).await.ok();

    cluster.stop_api_server().await;
    let refused = namespace.kubectl(["get", "configmap", "note"]).await;
    assert!(
        refused.refused().contains("refused"),
        "nobody listens while it is stopped"
    );
    cluster.start_api_server().await;
    cluster.kill_api_server().await;
    cluster.start_api_server().await;

    let notes: Api<ConfigMap> = Api::namespaced(cluster.client().await, namespace.name());
    let note = notes.get("note").await.unwrap();
    let kept = BTreeMap::from([("text".to_owned(), "kept".to_owned())]);
    assert_eq!(note.data, Some(kept));
}

#[tokio::test]
async fn a_namespace_ends_with_all_that_is_in_it_once_finalizers_are_gone() {
    let cluster = ApiServer::shared().await;
    let mut namespace = cluster.namespace("ending").await;
    namespace
        .apply(&NOTE.replace("name: note", "name: note, finalizers: [example.com/hold]"))
        .await
        .ok();
    namespace.start_deletion().await;
    let held = [
        "wait",
        "--for=jsonpath={.status.conditions[?(@.type==\"NamespaceFinalizersRemaining\")].status}=True",
        "namespace",
        namespace.name(),
    ];
    cluster.kubectl(held).await.ok();

    let release = [
        "patch",
        "configmap",
        "note",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ];
    namespace.kubectl(release).await.ok();
    namespace.gone().await;
}

#[tokio::test]
async fn a_service_account_has_the_rights_of_its_role_and_no_other() {
    let cluster = ApiServer::shared().await;
    let namespace = cluster.namespace("rights").await;
    namespace.apply(NOTE).await.ok();
    namespace
        .kubectl(["create", "serviceaccount", "reader"])
        .await
        .ok();
    let role = "--verb=get --resource=configmaps";
    namespace
        .kubectl(
            ["create", "role", "reader"]
                .into_iter()
                .chain(role.split(' ')),
        )
        .await
        .ok();
    let subject = format!("--serviceaccount={namespace}:reader");
    namespace
        .kubectl(["create", "rolebinding", "reader", "--role=reader", &subject])
        .await
        .ok();

    let kubeconfig = cluster.kubeconfig_for(namespace.name(), "reader").await;
    let client = cluster.client_for(&kubeconfig).await;
    let notes: Api<ConfigMap> = Api::default_namespaced(client.clone());
    // The authorizer learns of a new binding by a watch.
    wait::until("reading is allowed", LIMIT, async || {
        notes.get("note").await
    })
    .await;
    let secrets: Api<Secret> = Api::default_namespaced(client);
    let error = secrets.get("any").await.unwrap_err().to_string();
    assert!(error.contains("cannot get resource \"secrets\""), "{error}");
    let tools = cluster.tools_for(&kubeconfig);
    let error = tools.kubectl(["delete", "configmap", "note"]).await;
    assert!(error.refused().contains("cannot delete"));
}

#[tokio::test]
async fn a_manifest_that_breaks_a_rule_is_refused_with_our_message() {
    let cluster = ApiServer::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("rules").await;
    let refused = namespace
        .apply(
            "
apiVersion: fencepost.dev/v1alpha1
kind: MCPServer
metadata: {name: two-addresses}
spec:
  url: http://127.0.0.1:1/mcp
  service: {name: some, port: 80}
",
        )
        .await
        .refused();
    assert!(
        refused.contains("an address is given twice or not at all; give exactly one of"),
        "{refused}"
    );
}

#[tokio::test]
async fn helm_asks_the_api_server() {
    let cluster = ApiServer::shared().await;
    let namespace = cluster.namespace("helm").await;
    let args = ["list", "--namespace", namespace.name(), "-o", "json"];
    assert_eq!(cluster.helm(args).await.ok().trim(), "[]");
}

/// Run by the test below in a process of its own, which that one kills.
#[tokio::test]
#[ignore = "started and killed by nothing_is_left_behind_by_a_killed_test"]
async fn hold_a_cluster() {
    let cluster = ApiServer::shared().await;
    eprintln!("holding {}", cluster.folder().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_is_left_behind_by_a_killed_test() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture"]);
    command.arg("cluster::tests::hold_a_cluster");
    let mut test = Process::start("hold_a_cluster", &mut command);
    let folder = test
        .line("its folder", Duration::from_mins(2), |line| {
            Some(line.split_once("holding ")?.1.to_owned())
        })
        .await;
    // The shell is one of these: it has the folder as an argument.
    let alive = || {
        let ps = Command::new("ps").args(["-eww", "-o", "args="]).output();
        let all = String::from_utf8_lossy(&ps.unwrap().stdout).into_owned();
        let ours = all.lines().filter(|line| line.contains(&folder));
        ours.map(str::to_owned).collect::<Vec<_>>()
    };
    let started = alive();
    assert!(!started.is_empty(), "the shell watches over {folder}");
    let given = programs::set("KUBECONFIG").is_some();
    let ours = ["etcd ", "kube-apiserver ", "kube-controller-manager "];
    for program in ours.iter().filter(|_| !given) {
        assert!(
            started.iter().any(|line| line.contains(*program)),
            "{started:#?}"
        );
    }
    test.signal(Signal::SIGKILL);
    test.ended(LIMIT).await;
    wait::until_value("all ends", LIMIT, async || alive(), Vec::is_empty).await;
    assert!(!Path::new(&folder).exists(), "{folder} is removed");
}
