//! A real Prometheus scrapes the operator: every query of the dashboard and every alert is evaluated there.

use std::{fs, path::Path, process::Command, time::Duration};

use fencepost_tests::{
    api::Api, faulty::FaultyServer, postgres::free_port, process::Process, receiver::Receiver,
    report, wait,
};
use serde_json::Value;

use crate::world::{LAZY, SOON, World, server, watch};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/fencepost");

/// Every expression of a dashboard's panels, with the panel's title.
fn expressions(panels: &Value, into: &mut Vec<(String, String)>) {
    for panel in panels.as_array().into_iter().flatten() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            into.push((
                panel["title"].as_str().unwrap().to_owned(),
                target["expr"].as_str().unwrap().to_owned(),
            ));
        }
        expressions(&panel["panels"], into);
    }
}

#[tokio::test]
async fn the_dashboard_and_the_alerts_are_evaluated_by_prometheus() {
    let faulty = FaultyServer::start().await;
    faulty.set("config://limits", "one");
    let receiver = Receiver::start().await;
    let world = World::start("monitoring").await;
    let operator = world.ready("a").await;
    let index = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: hook}}\nstringData: {{key: {}}}\n---\n\
         apiVersion: fencepost.dev/v1alpha1\nkind: DerivedIndex\nmetadata: {{name: rag}}\n\
         spec: {{webhook: {{url: \"{}\", signingSecretRef: {{name: hook, key: key}}}}}}\n---\n",
        receiver.secret(),
        receiver.url()
    );
    world
        .apply(&(server(&faulty.url()) + &index + &watch("limits", &["config://limits"], LAZY)))
        .await;
    world.wait_for("condition=Ready", "watch/limits").await;

    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(folder.path(), &operator.base).await;
    // Changes over some scrapes, so that rates have something to say.
    for round in 0..8 {
        faulty.change("config://limits", &format!("round {round}"));
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    wait::until("series of accepted versions", SOON, async || {
        let found = prometheus
            .query("sum(fencepost_versions_accepted_total) > 4")
            .await;
        if found.is_empty() { Err(found) } else { Ok(()) }
    })
    .await;

    let dashboard: Value = serde_json::from_str(
        &fs::read_to_string(format!("{CHART}/dashboards/fencepost.json")).unwrap(),
    )
    .unwrap();
    let mut found = Vec::new();
    expressions(&dashboard["panels"], &mut found);
    assert!(found.len() > 10, "{found:?}");
    // What is shown only in trouble, and there is none here.
    let silent = [
        "Missing permissions",
        "API server: watch errors",
        "Reads that failed",
        "Late answers",
        "Resources without",
        "Replicas",
    ];
    let queries: Vec<(&String, String)> = found
        .iter()
        .map(|(title, expression)| {
            let query = expression
                .replace("$job", "fencepost")
                .replace("$namespace", ".*")
                .replace("$name", ".*")
                .replace("$__rate_interval", "15s")
                .replace("$__range", "1m");
            (title, query)
        })
        .collect();
    let mut round = 100;
    wait::until("data in every panel", SOON, async || {
        round += 1;
        faulty.change("config://limits", &format!("round {round}"));
        let mut empty = Vec::new();
        for (title, query) in &queries {
            let answer = prometheus.query(query).await;
            if answer.is_empty() && !silent.iter().any(|part| title.starts_with(part)) {
                empty.push((title, query));
            }
        }
        if empty.is_empty() {
            Ok(())
        } else {
            Err(format!("{empty:#?}"))
        }
    })
    .await;

    // Every rule loads and is evaluated; nothing is wrong here, so nothing that looks at the ledger is on its way.
    let rules = wait::until("every rule is evaluated", SOON, async || {
        let rules = prometheus.api.get("/api/v1/rules").await;
        let all: Vec<Value> = rules["data"]["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default())
            .collect();
        if !all.is_empty() && all.iter().all(|rule| rule["health"] == "ok") {
            Ok(all)
        } else {
            Err(all)
        }
    })
    .await;
    for rule in rules {
        let name = rule["name"].as_str().unwrap();
        assert!(rule["annotations"]["runbook_url"].is_string(), "{name}");
        let page = format!("{CHART}/../../docs/runbooks/{name}.md");
        assert!(Path::new(&page).exists(), "{page}");
        assert_ne!(rule["state"], "firing", "{name}");
    }
}

struct Prometheus {
    _process: Process,
    api: Api,
}

impl Prometheus {
    async fn start(folder: &Path, target: &str) -> Self {
        report::real("a Prometheus that scrapes the operator");
        let port = free_port();
        let target = target.trim_start_matches("http://");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{CHART}/files/alerts.yaml\"]\n\
             scrape_configs:\n- job_name: fencepost\n  honor_labels: true\n  static_configs: [{{targets: [\"{target}\"], labels: {{namespace: fencepost}}}}]\n"
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, config).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let mut process = Process::start("prometheus", &mut command);
        process
            .line("ready", SOON, |line| {
                line.contains("ready to receive").then_some(())
            })
            .await;
        Self {
            _process: process,
            api: Api::new(format!("http://127.0.0.1:{port}")),
        }
    }

    /// The result of an instant query; one that Prometheus refuses ends the test.
    async fn query(&self, query: &str) -> Vec<Value> {
        let encoded: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = self
            .api
            .get(&format!("/api/v1/query?query={encoded}"))
            .await;
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }
}
