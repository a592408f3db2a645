//! Many objects, an API server that goes and comes back, few files and little memory: no restart, and none is passed over.

use std::{process::Command, time::Duration};

use fencepost_tests::{faulty::FaultyServer, wait};
use serde_json::Value;

use crate::world::{LAZY, SOON, World, server, watch};

const MANY: usize = 500;
/// Files that the process may have open, of which the start, its threads and Postgres take about forty.
const FILES: &str = "--nofile=256:256";
/// Half of the chart's limit.
const MEMORY_KIB: u64 = 256 * 1024;

#[tokio::test]
async fn flaps_with_many_objects_cost_no_restart_and_pass_none_over() {
    let faulty = FaultyServer::start().await;
    faulty.without_log();
    let uris: Vec<String> = (0..MANY).map(|n| format!("docs:///{n:03}.md")).collect();
    faulty.set_many(uris.iter().map(|uri| (uri, "text")));
    let mut world = World::alone("flaps").await;
    world.cluster.get().install_crds().await;
    let mut operator = world.ready("a").await;
    let pid = operator.process.pid().to_string();
    let limited = Command::new("prlimit")
        .args(["--pid", &pid, FILES])
        .status();
    assert!(limited.unwrap().success());
    let watches: String = uris
        .iter()
        .enumerate()
        .map(|(n, uri)| watch(&format!("w-{n:03}"), &[uri], LAZY))
        .collect();
    world.apply(&(server(&faulty.url()) + &watches)).await;
    all(&world, "every watch to be ready", |status| {
        let conditions = status["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|c| c["type"] == "Ready" && c["status"] == "True")
        })
    })
    .await;

    for flap in 0..3 {
        world.cluster.own().kill_api_server().await;
        // Long enough for every list and watch to fail and to be tried again some times.
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.cluster.own().start_api_server().await;
        let asked = format!("after-{flap}");
        let annotation = format!("fencepost.dev/reconcile-at={asked}");
        world
            .kubectl(&["annotate", "watch", "--all", "--overwrite", &annotation])
            .await;
        all(&world, "every watch to be reconciled", |status| {
            status["lastHandledReconcileAt"] == asked.as_str()
        })
        .await;
    }
    operator.is_ready().await;
    assert_eq!(operator.process.pid().to_string(), pid);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .unwrap();
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    let end = operator.process.terminate().await;
    assert!(end.success(), "{end}");
}

/// Waits until the status of every watch is as wanted.
async fn all(world: &World, what: &str, wanted: impl Fn(&Value) -> bool) {
    wait::until(what, SOON * 3, async || {
        let list = world.kubectl(&["get", "watch", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&list).unwrap();
        let items = list["items"].as_array().unwrap();
        let not_yet = items.iter().filter(|item| !wanted(&item["status"]));
        let not_yet: Vec<&Value> = not_yet.map(|item| &item["metadata"]["name"]).collect();
        if items.len() == MANY && not_yet.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{} of {}: {:?}",
                not_yet.len(),
                items.len(),
                not_yet.first()
            ))
        }
    })
    .await;
}
