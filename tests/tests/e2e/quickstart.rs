//! A newcomer's first minutes: the example as it stands in the repository, the file named edited, the four places changed.

use std::{path::Path, time::Duration};

use fencepost_tests::{binary::Fencepost, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(30);

/// Copies the example, and moves its fixed ports to free ones: a developer's own quickstart may be running.
fn example(to: &Path) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), &target).unwrap();
            }
        }
    }
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/quickstart"),
        to,
    );
    let free = || {
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
            .to_string()
    };
    let (mcp, hook) = (free(), free());
    for file in ["server.yaml", "index.yaml"] {
        let path = to.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("7700", &mcp).replace("7701", &hook)).unwrap();
    }
}

#[tokio::test]
async fn the_file_named_is_edited_and_four_places_change() {
    let folder = tempfile::tempdir().unwrap();
    // The embedded Postgres of a test that runs as root runs as somebody else, who has to get there.
    let data = tempfile::Builder::new()
        .prefix("fp")
        .tempdir_in("/var/tmp")
        .unwrap();
    let manifests = folder.path().join("quickstart");
    example(&manifests);
    let mut fencepost = Fencepost::start([
        "dev".as_ref(),
        manifests.as_os_str(),
        "--listen".as_ref(),
        "127.0.0.1:0".as_ref(),
        "--data-dir".as_ref(),
        data.path().join("db").as_os_str(),
    ]);
    let base = fencepost.base_url().await;
    let edit = fencepost
        .line("the file to edit", SOON, |line| {
            Some(
                line.strip_prefix("edit ")?
                    .split(" and ")
                    .next()?
                    .to_owned(),
            )
        })
        .await;
    let http = reqwest::Client::new();
    let read = async |path: &str| {
        http.get(format!("{base}{path}"))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    let resource = async || -> Value {
        let page: Value =
            serde_json::from_str(&read("/api/v1/resources?q=service-limits").await).unwrap();
        page["items"][0].clone()
    };
    let before = wait::until_value("three accepted versions", SOON, resource, |r| {
        !r["digest"].is_null()
    })
    .await;
    fencepost
        .line_with("accepted docs:///service-limits.json", SOON)
        .await;

    let text = std::fs::read_to_string(&edit).unwrap();
    assert!(text.contains("\"max_batch\": 500"), "{text}");
    std::fs::write(
        &edit,
        text.replace("\"max_batch\": 500", "\"max_batch\": 50"),
    )
    .unwrap();

    let after = wait::until_value("a new version by the API", SOON, resource, |r| {
        r["digest"] != before["digest"]
    })
    .await;
    assert_eq!(after["mode"], "Subscribe");
    fencepost.line_with("/max_batch: 500 -> 50", SOON).await;
    let id = after["id"].as_str().unwrap();
    let page = read(&format!("/resources/{id}")).await;
    assert!(
        page.contains(&after["digest"].as_str().unwrap()[7..15]),
        "the dashboard's page does not show the version"
    );
    let metrics = read("/metrics").await;
    let line = "fencepost_reads_total{name=\"docs\",namespace=\"default\",outcome=\"accepted\",trigger=\"Notification\"} 1";
    assert!(metrics.contains(line), "{metrics}");

    let status = fencepost.interrupt().await;
    assert!(status.success(), "{status}");
    fencepost.no_orphans().await;
}

#[tokio::test]
async fn a_database_folder_in_use_is_refused_naming_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = tempfile::Builder::new()
        .prefix("fp")
        .tempdir_in("/var/tmp")
        .unwrap();
    let manifests = folder.path().join("quickstart");
    example(&manifests);
    let start = || {
        Fencepost::start([
            "dev".as_ref(),
            manifests.as_os_str(),
            "--listen".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--data-dir".as_ref(),
            data.path().join("db").as_os_str(),
        ])
    };
    let mut first = start();
    first.base_url().await;
    let mut second = start();
    let pid = first.pid().to_string();
    let line = second.line_with("in use by process", SOON).await;
    assert!(
        line.contains(&pid) && line.contains("--database-url"),
        "{line}"
    );
    assert_eq!(second.ended(SOON).await.code(), Some(1));
    assert!(first.terminate().await.success());
    first.no_orphans().await;
}
