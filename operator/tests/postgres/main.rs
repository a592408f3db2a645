//! The embedded Postgres, with the `PostgreSQL` that is installed here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use fencepost::postgres::{Embedded, EmbeddedConfig, EmbeddedError};
use sqlx::{Connection, PgConnection};

/// A folder that the user Postgres runs as may reach: below the temporary folder, open to pass.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let above = tempfile::tempdir().unwrap();
    fs::set_permissions(above.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = above.path().join("db");
    (above, folder)
}

async fn start(folder: &Path) -> Result<Embedded, EmbeddedError> {
    let config = EmbeddedConfig {
        data_dir: Some(folder.to_path_buf()),
        name: "test".into(),
    };
    Embedded::start(config, |_| {}).await
}

async fn connect(embedded: &Embedded) -> PgConnection {
    PgConnection::connect(embedded.url()).await.unwrap()
}

async fn rows(embedded: &Embedded) -> i64 {
    sqlx::query_scalar("select count(*) from kept")
        .fetch_one(&mut connect(embedded).await)
        .await
        .unwrap()
}

fn kill(signal: &str, pid: i32) {
    assert!(
        Command::new("kill")
            .args([signal, &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn data_survives_a_stop_a_killed_postmaster_and_a_killed_fencepost() {
    let (_above, folder) = folder();
    let first = start(&folder).await.unwrap();
    let mut client = connect(&first).await;
    sqlx::query("create table kept (n int)")
        .execute(&mut client)
        .await
        .unwrap();
    sqlx::query("insert into kept values (1)")
        .execute(&mut client)
        .await
        .unwrap();
    let fsync: String = sqlx::query_scalar("show fsync")
        .fetch_one(&mut client)
        .await
        .unwrap();
    assert_eq!(fsync, "on");

    let refused = start(&folder).await.err().unwrap();
    let said = refused.to_string();
    assert!(
        said.contains(&format!("in use by process {}", std::process::id())),
        "{said}"
    );
    assert!(said.contains("--database-url"), "{said}");

    // A client that stays connected holds up no fast stop.
    first.stop().await.unwrap();
    assert!(!folder.join("data/postmaster.pid").exists());

    let second = start(&folder).await.unwrap();
    assert_eq!(rows(&second).await, 1);
    sqlx::query("insert into kept values (2)")
        .execute(&mut connect(&second).await)
        .await
        .unwrap();
    kill("-KILL", second.pid());
    drop(second);

    let third = start(&folder).await.unwrap();
    assert_eq!(
        rows(&third).await,
        2,
        "what was committed is there after kill -9"
    );
    third.stop().await.unwrap();
}

#[tokio::test]
async fn a_postmaster_that_was_left_over_is_ended_and_replaced() {
    let (_above, folder) = folder();
    let first = start(&folder).await.unwrap();
    sqlx::query("create table kept (n int)")
        .execute(&mut connect(&first).await)
        .await
        .unwrap();
    let left = first.pid();
    let url = first.url().to_owned();
    // As a killed Fencepost leaves it: the lock is gone, the postmaster is not.
    std::mem::forget(first);
    fs::remove_file(folder.join("lock")).unwrap();
    let told = std::sync::Mutex::new(Vec::new());
    let config = EmbeddedConfig {
        data_dir: Some(folder.clone()),
        name: "test".into(),
    };
    let second = Embedded::start(config, |said| told.lock().unwrap().push(said.to_owned()))
        .await
        .unwrap();
    assert_ne!(second.pid(), left);
    assert_eq!(second.url(), url);
    assert_eq!(rows(&second).await, 0);
    assert!(
        told.lock()
            .unwrap()
            .iter()
            .any(|said| said.contains(&left.to_string())),
        "{told:?}"
    );
    second.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_in_the_way_is_named() {
    let (_above, folder) = folder();
    let first = start(&folder).await.unwrap();
    first.stop().await.unwrap();

    // A pid file whose process id belongs to somebody else by now.
    let somebody = std::process::id();
    fs::write(
        folder.join("data/postmaster.pid"),
        format!("{somebody}\n{}\n", folder.display()),
    )
    .unwrap();
    start(&folder).await.unwrap().stop().await.unwrap();

    // A cluster that is half made is no cluster.
    fs::rename(folder.join("data"), folder.join("data.new")).unwrap();
    start(&folder).await.unwrap().stop().await.unwrap();

    fs::write(folder.join("data/PG_VERSION"), "9\n").unwrap();
    let mismatch = start(&folder).await.err().unwrap();
    assert!(
        matches!(&mismatch, EmbeddedError::VersionMismatch { folder, .. } if folder == "9"),
        "{mismatch}"
    );
    assert!(
        mismatch.to_string().contains("made by PostgreSQL 9"),
        "{mismatch}"
    );

    let file = folder.with_file_name("file");
    fs::write(&file, "").unwrap();
    let blocked = start(&file.join("db")).await.err().unwrap();
    assert!(matches!(blocked, EmbeddedError::Folder { .. }), "{blocked}");

    let unnamed = Embedded::start(
        EmbeddedConfig {
            data_dir: None,
            name: "../x".into(),
        },
        |_| {},
    )
    .await
    .err()
    .unwrap();
    assert!(
        matches!(unnamed, EmbeddedError::BadName { .. }),
        "{unnamed}"
    );
}

#[tokio::test]
async fn a_long_path_gets_its_socket_elsewhere_and_ctrl_c_does_not_reach_the_postmaster() {
    let (_above, folder) = folder();
    let deep = folder.join("a-rather-long-name-of-a-folder-".repeat(4));
    let embedded = start(&deep).await.unwrap();
    connect(&embedded).await;
    let stat = fs::read_to_string(format!("/proc/{}/stat", embedded.pid())).unwrap();
    let group: i32 = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .nth(2)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(group, embedded.pid(), "a process group of its own");
    for secret in ["password", "lock", "postgres.log"] {
        assert_eq!(
            fs::metadata(deep.join(secret))
                .unwrap()
                .permissions()
                .mode()
                & 0o077,
            0,
            "{secret}"
        );
    }
    embedded.stop().await.unwrap();
}
