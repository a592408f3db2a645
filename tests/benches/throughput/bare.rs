//! What the server and HTTP allow: reads by a plain client that does nothing with what it reads.

use std::time::Instant;

use fencepost_tests::faulty::FaultyServer;
use futures::future::join_all;
use serde_json::json;

use crate::sizes::{IN_FLIGHT, TEXT};

const URI: &str = "bench://bare";

/// `count` reads, [`IN_FLIGHT`] at once, after one each to open the connections.
pub async fn reads_a_second(server: &FaultyServer, count: usize) -> f64 {
    server.set(URI, TEXT);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    readers(&http, &server.url(), 1).await;
    let each = count.div_ceil(IN_FLIGHT);
    let start = Instant::now();
    readers(&http, &server.url(), each).await;
    (each * IN_FLIGHT) as f64 / start.elapsed().as_secs_f64()
}

/// A task each: one task alone would use one core.
async fn readers(http: &reqwest::Client, url: &str, each: usize) {
    let tasks = (0..IN_FLIGHT).map(|_| {
        let (http, url) = (http.clone(), url.to_owned());
        tokio::spawn(async move {
            for _ in 0..each {
                read(&http, &url).await;
            }
        })
    });
    for ended in join_all(tasks).await {
        ended.unwrap();
    }
}

async fn read(http: &reqwest::Client, url: &str) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = http
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "resources/read")
        .header("mcp-name", URI)
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": URI, "_meta": meta}}));
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains(TEXT), "no content in {text}");
}
