//! What a watched resource costs the binary in memory.

use std::{sync::Arc, time::Duration};

use fencepost_tests::{faulty::FaultyServer, postgres::Postgres};

use crate::{
    dev::{self, Dev},
    sizes::TEXT,
};

/// URIs of a manifest at most, by its schema.
const A_WATCH: usize = 20_000;

/// For what the first reads used to be given back.
const SETTLE: Duration = Duration::from_secs(5);

/// Resident memory with `watched` URIs of one session, each subscribed and read once, less that with none, divided.
pub async fn bytes_a_resource(
    postgres: &Arc<Postgres>,
    server: &FaultyServer,
    watched: usize,
) -> f64 {
    let uris: Vec<String> = (0..watched)
        .map(|n| format!("bench://memory/some/folder/document-{n}.md"))
        .collect();
    server.set_many(uris.iter().map(|uri| (uri, TEXT)));
    let none = dev::server(&server.url());
    let mut many = none.clone() + &dev::subject("subject");
    for (n, uris) in uris.chunks(A_WATCH).enumerate() {
        many += &dev::watch(&format!("w{n}"), "subject", uris);
    }
    let none = resident(&postgres.database().await.url, &none, 0).await;
    let many = resident(&postgres.database().await.url, &many, watched).await;
    (many - none) / watched as f64
}

async fn resident(database_url: &str, manifests: &str, watched: usize) -> f64 {
    let dev = Dev::start(database_url, manifests).await;
    dev.accepted(watched).await;
    tokio::time::sleep(SETTLE).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", dev.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    dev.stop().await;
    kib * 1024.0
}
