//! `make bench`: accepted versions a second through the whole path, beside bare reads of the same server and
//! beside the ledger's statements alone, in one run; amplification under repeats; memory per watched resource.
//!
//! Figures are ratios of one run on one machine. Nothing is asserted about time; what is lost or counted
//! twice ends the run with an error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use fencepost_ledger::{Digest, RequestId, SessionGeneration, Trigger, Verdict};
use fencepost_store::{
    AnswerBody, IssueRead, Mode, Published, ReadAnswer, ResourceSpec, ServerRow, SessionKey, Store,
    StoreConfig, SubjectRow,
};
use fencepost_tests::{
    binary::Fencepost,
    faulty::{Eras, Faults, FaultyServer},
    postgres::Postgres,
    wait,
};
use futures::{StreamExt, stream};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

const LIMIT: Duration = Duration::from_mins(5);

/// From the environment, for a quick run.
fn size(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[tokio::main]
async fn main() {
    let sessions = size("BENCH_SESSIONS", 40);
    let resources = size("BENCH_RESOURCES", 25);
    let rounds = size("BENCH_ROUNDS", 10);
    let watched = size("BENCH_WATCHED", 10_000);
    // Default durability: fsync on.
    let postgres = std::sync::Arc::new(Postgres::start(&[]).await);

    let faulty = FaultyServer::start_with(Faults {
        eras: Eras::Modern,
        ..Faults::default()
    })
    .await;
    faulty.without_log();
    let reads = bare_reads(&faulty, sessions * resources * rounds).await;
    let statements = statements(&postgres.database().await.url, sessions * resources, rounds).await;
    let (versions, once) = whole_path(
        &postgres.database().await.url,
        &faulty,
        sessions,
        resources,
        rounds,
        1,
    )
    .await;
    let (_, thrice) = whole_path(
        &postgres.database().await.url,
        &faulty,
        sessions,
        resources,
        rounds,
        3,
    )
    .await;
    let memory = memory(
        &postgres.database().await.url,
        &postgres.database().await.url,
        &faulty,
        watched,
    )
    .await;

    println!(
        "sessions {sessions}, resources each {resources}, rounds {rounds}; cores {}",
        std::thread::available_parallelism().unwrap()
    );
    println!("{:<58}{:>12}{:>16}", "", "a second", "whole path is");
    println!(
        "{:<58}{versions:>12.0}{:>16}",
        "accepted versions, whole path", "1.00"
    );
    println!(
        "{:<58}{reads:>12.0}{:>16.2}",
        "bare reads of the same server",
        versions / reads
    );
    println!(
        "{:<58}{statements:>12.0}{:>16.2}",
        "issue and acceptance, statements alone",
        versions / statements
    );
    println!("reads a version: {once:.3} with one notification a change, {thrice:.3} with three");
    println!(
        "memory per watched resource: {memory:.1} KiB (resident, {watched} subscribed beside none)"
    );
}

/// Plain reads by as many tasks as the whole path has reads in flight.
async fn bare_reads(faulty: &FaultyServer, count: usize) -> f64 {
    faulty.set(
        "bench://0",
        "some text of a usual length, to be read and thrown away",
    );
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = faulty.url();
    let read = async |id: usize| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": {"uri": "bench://0", "_meta": meta}});
        let answer = http
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "resources/read")
            .header("mcp-name", "bench://0")
            .json(&body)
            .send()
            .await
            .unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.contains("usual length"), "{text}");
    };
    let begin = Instant::now();
    stream::iter(0..count)
        .map(read)
        .buffer_unordered(256)
        .for_each(async |()| {})
        .await;
    count as f64 / begin.elapsed().as_secs_f64()
}

/// Issue and acceptance of a new version each, from as many tasks as there are resources.
async fn statements(database_url: &str, resources: usize, rounds: usize) -> f64 {
    let config = StoreConfig {
        database_url: database_url.to_owned(),
        max_connections: 8,
        replica: Uuid::now_v7(),
    };
    let store = Store::connect(config).await.unwrap();
    store.migrate().await.unwrap();
    let (server, subject) = (Uuid::now_v7(), Uuid::now_v7());
    let named = |uid, name: &str| (uid, "bench".to_owned(), name.to_owned());
    let (uid, namespace, name) = named(server, "server");
    let servers = vec![ServerRow {
        uid,
        namespace,
        name,
        address: "bench".into(),
        protocol: "Auto".into(),
    }];
    let (uid, namespace, name) = named(subject, "subject");
    let subjects = vec![SubjectRow {
        uid,
        namespace,
        name,
        anonymous: false,
        revoked: false,
    }];
    store
        .publish(&Published {
            servers,
            subjects,
            ..Published::default()
        })
        .await
        .unwrap();
    let session = store
        .acquire_lease(server, subject, Duration::from_mins(10))
        .await
        .unwrap()
        .unwrap();
    let key = SessionKey {
        server,
        subject,
        generation: session,
    };
    let specs: Vec<ResourceSpec> = (0..resources)
        .map(|n| spec(&format!("bench://{n}")))
        .collect();
    let rows = store.put_resources(&key, &specs).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let generations = store.open_generations(&key, &ids).await.unwrap();
    let items: Vec<_> = ids
        .iter()
        .zip(&generations)
        .map(|(id, g)| (*id, g.unwrap(), Mode::Subscribe))
        .collect();
    store.activate(&key, &items).await.unwrap();
    let begin = Instant::now();
    stream::iter(items)
        .for_each_concurrent(None, |(id, generation, _)| {
            let store = store.clone();
            async move {
                for round in 0..rounds {
                    one(&store, id, generation, session, round).await;
                }
            }
        })
        .await;
    (resources * rounds) as f64 / begin.elapsed().as_secs_f64()
}

async fn one(
    store: &Store,
    resource: fencepost_ledger::ResourceId,
    generation: fencepost_ledger::Generation,
    session: SessionGeneration,
    round: usize,
) {
    let request = RequestId::new(Uuid::now_v7());
    let read = IssueRead {
        request,
        resource,
        generation,
        session,
        trigger: Trigger::Notification,
    };
    let issued = store.issue_read(read).await.unwrap();
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&(round as u64).to_be_bytes());
    digest[8..24].copy_from_slice(resource.get().as_bytes());
    let bytes = b"some text of a usual length, to be read and thrown away".to_vec();
    let body = AnswerBody::Content {
        digest: Digest::new(digest),
        mime_type: Some("text/plain".into()),
        size: bytes.len() as u64,
        bytes: Some(bytes),
        server_version: "bench/0".into(),
    };
    let answer = ReadAnswer {
        request,
        resource,
        ordinal: issued.ordinal,
        body,
        reason: None,
        detail: None,
    };
    let settled = store.accept_resource_version(answer).await.unwrap();
    assert_eq!(settled.verdict, Verdict::Accepted);
}

fn spec(uri: &str) -> ResourceSpec {
    ResourceSpec {
        uri: uri.to_owned(),
        uri_normal: Some(uri.to_owned()),
        watches: vec!["bench/all".into()],
        mode: Mode::Subscribe,
        cohort: true,
        max_staleness: Duration::from_mins(10),
        read_interval: Duration::from_mins(9),
        store_content: true,
        keep_versions: 10,
    }
}

/// A running `dev` over generated manifests.
struct Dev {
    fencepost: Fencepost,
    base: String,
    _folder: TempDir,
}

impl Dev {
    async fn start(database_url: &str, manifests: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bench.yaml"), manifests).unwrap();
        let path = folder.path().to_str().unwrap();
        let mut fencepost = Fencepost::serving([
            "dev",
            path,
            "--database-url",
            database_url,
            "--listen",
            "127.0.0.1:0",
        ])
        .await;
        let base = fencepost.base_url().await;
        Self {
            fencepost,
            base,
            _folder: folder,
        }
    }

    /// Sum of a counter over its labels, where `labels` are among them.
    async fn counter(&self, name: &str, labels: &str) -> usize {
        let text = reqwest::get(format!("{}/metrics", self.base))
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            .sum()
    }

    async fn versions(&self) -> usize {
        self.counter("fencepost_versions_accepted_total", "").await
    }

    fn resident_kib(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.fencepost.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn server(url: &str) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server, namespace: bench}}\n\
         spec: {{url: \"{url}\", limits: {{maxInFlight: 256, requestsPerSecond: 10000, maxSubscriptionsPerSession: 100000}}}}\n---\n"
    )
}

fn watch(name: &str, subject: &str, uris: &[String]) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {{name: {subject}, namespace: bench}}\nspec: {{}}\n---\n\
         apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: {name}, namespace: bench}}\n\
         spec: {{serverRef: {{name: server}}, subjectRef: {{name: {subject}}}, uris: {}, \
         refresh: {{mode: Subscribe, maxStaleness: 1h, pollInterval: 1h}}}}\n---\n",
        serde_json::to_string(uris).unwrap()
    )
}

/// Versions a second, and reads that notifications caused per version.
async fn whole_path(
    database_url: &str,
    faulty: &FaultyServer,
    sessions: usize,
    resources: usize,
    rounds: usize,
    notifications: usize,
) -> (f64, f64) {
    let uris: Vec<String> = (0..resources)
        .map(|n| format!("bench://{notifications}/{n}"))
        .collect();
    for uri in &uris {
        faulty.set(
            uri,
            "some text of a usual length, to be read and thrown away",
        );
    }
    let mut manifests = server(&faulty.url());
    for session in 0..sessions {
        manifests += &watch(&format!("w{session}"), &format!("s{session}"), &uris);
    }
    let mut dev = Dev::start(database_url, &manifests).await;
    let all = sessions * resources;
    wait::until_value(
        "every first version",
        LIMIT,
        async || dev.versions().await,
        |versions| *versions >= all,
    )
    .await;
    let begin = Instant::now();
    for round in 1..=rounds {
        for uri in &uris {
            faulty.set(
                uri,
                &format!("round {round}: some text of a usual length, to be read"),
            );
            faulty.notify_times(uri, notifications);
        }
        let wanted = all * (round + 1);
        wait::until_value(
            "every version of the round",
            LIMIT,
            async || dev.versions().await,
            |v| *v >= wanted,
        )
        .await;
    }
    let took = begin.elapsed();
    let versions = dev.versions().await;
    assert_eq!(versions, all * (rounds + 1), "versions lost or made up");
    let reads = dev
        .counter("fencepost_reads_total", "trigger=\"Notification\"")
        .await;
    let brought = dev
        .counter(
            "fencepost_reads_total",
            "outcome=\"accepted\",trigger=\"Notification\"",
        )
        .await;
    assert_eq!(brought, all * rounds, "versions that notifications brought");
    assert!(dev.fencepost.terminate().await.success());
    (
        (all * rounds) as f64 / took.as_secs_f64(),
        reads as f64 / brought as f64,
    )
}

/// KiB a watched resource.
async fn memory(none: &str, many: &str, faulty: &FaultyServer, watched: usize) -> f64 {
    let uris: Vec<String> = (0..watched)
        .map(|n| format!("bench://memory/folder/{n}"))
        .collect();
    for uri in &uris {
        faulty.set(uri, "some text");
    }
    let mut dev = Dev::start(none, &server(&faulty.url())).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = dev.resident_kib();
    assert!(dev.fencepost.terminate().await.success());
    let mut manifests = server(&faulty.url());
    for (n, chunk) in uris.chunks(1000).enumerate() {
        manifests += &watch(&format!("w{n}"), "s", chunk);
    }
    // One subject, declared once.
    let subject = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPSubject\nmetadata: {name: s, namespace: bench}\nspec: {}\n---\n";
    let manifests = manifests.replace(subject, "") + subject;
    let mut dev = Dev::start(many, &manifests).await;
    wait::until_value(
        "every first version",
        LIMIT,
        async || dev.versions().await,
        |versions| *versions == watched,
    )
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = dev.resident_kib();
    assert!(dev.fencepost.terminate().await.success());
    (after - before) / watched as f64
}
