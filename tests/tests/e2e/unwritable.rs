//! A Postgres that answers every question and takes no write: named, nothing lost, and over by itself once it is mended.

use std::{fs, io::Write as _, path::Path, process::Command};

use fencepost_tests::{
    api::Api,
    binary::{self, Fencepost},
    faulty::FaultyServer,
    postgres::Postgres,
    report, wait,
};
use serde_json::Value;

use crate::world::{LAZY, SOON, World, server, watch};

const URI: &str = "config://limits";

/// A disk of its own for the data folder; it goes with the process.
const ON_A_SMALL_DISK: &str = r#"
set -eu
disk=$1; shift
mount -t tmpfs -o size=160m,mode=755 tmpfs "$disk"
exec "$@"
"#;

#[tokio::test]
async fn a_full_disk_is_named_and_nothing_is_lost() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test mounts a small disk of its own; run it as root (sudo make e2e)"
    );
    report::real("a Postgres on a disk that is full");
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let manifests = folder.path().join("manifests.yaml");
    fs::write(
        &manifests,
        server(&faulty.url()) + &watch("limits", &[URI], LAZY),
    )
    .unwrap();
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ON_A_SMALL_DISK,
            "sh",
        ])
        .arg(&disk)
        .arg(binary::path().canonicalize().unwrap())
        .arg("dev")
        .arg(&manifests)
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(disk.join("data"));
    let mut fencepost = Fencepost::through(&mut command);
    let api = Api::new(fencepost.base_url().await);
    let before = api.content(URI, "one").await;

    // Its files are seen from here through the process's own root.
    let seen = Path::new("/proc")
        .join(fencepost.pid().to_string())
        .join("root");
    let filler = seen.join(disk.strip_prefix("/").unwrap()).join("filler");
    fill(&filler);
    // Too large for what is left of the pages that are there, and not to be compressed.
    let large = noise(400_000);
    faulty.change(URI, &large);
    named(&api, "disk_full", "no disk space").await;
    fencepost.line_with("the ledger is not written", SOON).await;
    assert_eq!(api.find(URI).await.unwrap()["digest"], before["digest"]);
    let content = format!(
        "/api/v1/resources/{}/content",
        before["id"].as_str().unwrap()
    );
    assert_eq!(api.answer(&content).await.text().await.unwrap(), "one");

    fs::remove_file(&filler).unwrap();
    let after = api.content(URI, &large).await;
    not_named(&api).await;
    fencepost
        .line_with("the ledger is written again", SOON)
        .await;
    assert_eq!(
        after["generation"], before["generation"],
        "its session went on"
    );
    let receipts = api.receipts(&after).await;
    let accepted = |ordinal: u64| {
        let of: Vec<&Value> = receipts
            .iter()
            .filter(|r| r["ordinal"] == ordinal)
            .collect();
        of.len() == 1 && of[0]["outcome"] == "accepted"
    };
    assert!(
        accepted(1) && accepted(2),
        "the answer was kept: {receipts:#?}"
    );
    fencepost.terminate().await;
    fencepost.no_orphans().await;
}

#[tokio::test]
async fn a_read_only_database_is_named_and_used_again_once_it_is_not() {
    let faulty = FaultyServer::start().await;
    faulty.set(URI, "one");
    let manifests = server(&faulty.url()) + &watch("limits", &[URI], LAZY);
    let mut world = World::start(&manifests).await;
    world.content(URI, "one").await;

    world.database.forbid_writes().await;
    faulty.change(URI, "two");
    named(&world, "read_only", "read-only").await;
    assert_ne!(world.find(URI).await.unwrap()["ordinal"], 2);

    world.database.allow_writes().await;
    world.content(URI, "two").await;
    not_named(&world).await;
    world
        .fencepost
        .line_with("the ledger is written again", SOON)
        .await;
    world.ledger_holds().await;
}

#[tokio::test]
async fn a_standby_is_refused() {
    let standby = Postgres::start(&["fsync=off"]).await.into_standby().await;
    report::real("a Postgres in recovery");
    let refused = binary::run(["migrate", "--database-url", standby.url()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is a standby in recovery; give the address of the primary"),
        "{said}"
    );
}

/// Readiness, metric and overview say so; it stays ready, since it serves what it has.
async fn named(api: &Api, reason: &str, words: &str) {
    wait::until("the ledger to be told unwritable", SOON, async || {
        let answer = api.answer("/readyz").await;
        let status = answer.status();
        let ready: Value = answer.json().await.unwrap();
        let degraded = &ready["degraded"][0];
        let named = degraded["name"] == "ledger writes"
            && degraded["detail"]
                .as_str()
                .unwrap_or_default()
                .contains(words);
        let metric = format!("fencepost_ledger_unwritable{{reason=\"{reason}\"}} 1");
        let exported = api.metrics().await.contains(&metric);
        let overview = api.answer("/api/v1/overview").await;
        let overview: Value = overview.json().await.unwrap();
        let attention = overview["attention"][0]["kind"] == "ledger_unwritable";
        if status == 200 && named && exported && attention {
            Ok(())
        } else {
            Err(format!(
                "{status} {ready} exported: {exported} {}",
                overview["attention"]
            ))
        }
    })
    .await;
}

async fn not_named(api: &Api) {
    wait::until("the ledger to be told writable", SOON, async || {
        let ready: Value = api.answer("/readyz").await.json().await.unwrap();
        let metrics = api.metrics().await;
        if ready["degraded"] == serde_json::json!([])
            && !metrics.contains("fencepost_ledger_unwritable{")
        {
            Ok(())
        } else {
            Err(ready)
        }
    })
    .await;
}

/// Writes until nothing more fits.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    let zeros = vec![0; 64 * 1024];
    let full = loop {
        if let Err(error) = file.write_all(&zeros) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
}

/// Text that no compression makes smaller by much, the same each time.
fn noise(length: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let letters = (0..length).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).unwrap())
    });
    letters.collect()
}
