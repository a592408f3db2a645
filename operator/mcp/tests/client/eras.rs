//! Which era is spoken, and the two handshakes.

use std::time::{Duration, Instant};

use fencepost_mcp::{ConnectConfig, ConnectError, Era, Protocol, RequestError, connect};
use serde_json::json;

use crate::fake::{Fake, MODERN, Reply, Seen, config, legacy_default, modern_default};

async fn era_when_discover_gets(
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (Era, Fake) {
    let fake =
        Fake::legacy(move |seen| (seen.method() == "server/discover").then(|| answer(seen))).await;
    let (session, _events) = fake.connect().await;
    (session.receipt().era, fake)
}

#[tokio::test]
async fn whatever_is_no_modern_answer_means_legacy() {
    let answers: Vec<fn(&Seen) -> Reply> = vec![
        |_| Reply::status(400).typed("text/plain").body("bad request"),
        |_| Reply::status(404),
        |_| Reply::status(401),
        |_| {
            Reply::status(502)
                .typed("text/html")
                .body("<html>bad gateway</html>")
        },
        |_| Reply::status(500),
        |_| Reply::status(202),
        |_| {
            Reply::status(200)
                .typed("text/html")
                .body("<html>hello</html>")
        },
        |_| Reply::sse(": nothing\n\n"),
        |seen| seen.error(-32601, "Method not found"),
        |seen| seen.error(-32600, "not initialized").code(400),
        |seen| seen.result(&json!({})),
        |seen| {
            seen.result(
                &json!({"supportedVersions": ["2025-11-25", "2025-06-18"], "capabilities": {}}),
            )
        },
        |seen| {
            Reply::json(&json!({"jsonrpc": "2.0", "id": seen.body["id"],
                "error": {"code": -32022, "message": "unsupported", "data": {"supported": ["2025-06-18"]}}}))
            .code(400)
        },
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        let (era, fake) = era_when_discover_gets(answer).await;
        assert_eq!(era, Era::Legacy, "answer {n}");
        assert_eq!(fake.count("server/discover"), 1, "answer {n}");
    }
}

#[tokio::test]
async fn a_probe_without_an_answer_is_given_up_at_its_own_deadline() {
    let started = Instant::now();
    let (era, _fake) = era_when_discover_gets(|_| Reply::never()).await;
    assert_eq!(era, Era::Legacy);
    assert!(started.elapsed() < Duration::from_millis(1900));
}

#[tokio::test]
async fn a_modern_server_is_spoken_to_with_metadata_and_headers() {
    let fake = Fake::modern(|_| None).await;
    let (session, _events) = fake.connect().await;
    let receipt = session.receipt();
    assert_eq!(
        (receipt.era, receipt.protocol_version.as_str()),
        (Era::Modern, MODERN)
    );
    assert_eq!(
        (
            receipt.server_name.as_str(),
            receipt.server_version.as_str()
        ),
        ("fake", "2.0")
    );
    assert!(
        receipt
            .extensions
            .get("dev.fencepost/resource-snapshot")
            .is_some()
    );

    session.read("docs:///ä b").await.unwrap();
    session.read("docs:///plain").await.unwrap();
    let reads = fake.of("resources/read");
    for read in &reads {
        assert_eq!(read.header("mcp-protocol-version"), Some(MODERN));
        assert_eq!(read.header("mcp-method"), Some("resources/read"));
        assert_eq!(read.header("mcp-session-id"), None);
        let meta = &read.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(
            meta["io.modelcontextprotocol/clientInfo"]["name"],
            "fencepost"
        );
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    }
    assert_eq!(
        reads[0].header("mcp-name"),
        Some("=?base64?ZG9jczovLy/DpCBi?=")
    );
    assert_eq!(reads[1].header("mcp-name"), Some("docs:///plain"));
    assert_eq!(fake.count("initialize"), 0);
}

#[tokio::test]
async fn nothing_in_common_is_said_with_what_the_server_offers() {
    let fake = Fake::start(|seen| {
        Reply::json(&json!({"jsonrpc": "2.0", "id": seen.body["id"],
            "error": {"code": -32022, "message": "unsupported", "data": {"supported": ["2031-01-01"]}}}))
        .code(400)
    })
    .await;
    let error = fake.try_connect(Protocol::Auto).await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::NoCommonVersion { offered } if offered == &["2031-01-01"]),
        "{error}"
    );

    let fake = Fake::legacy(|seen| {
        (seen.method() == "initialize")
            .then(|| seen.result(&json!({"protocolVersion": "1999-01-01", "capabilities": {}})))
    })
    .await;
    let error = fake.try_connect(Protocol::Auto).await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::NoCommonVersion { offered } if offered == &["1999-01-01"]),
        "{error}"
    );
}

#[tokio::test]
async fn a_remembered_era_is_not_probed_unless_it_fails() {
    let fake = Fake::legacy(|_| None).await;
    let remembered = |fake: &Fake| ConnectConfig {
        remembered_era: Some(Era::Legacy),
        ..config(fake.url.clone())
    };
    let (session, _events) = connect(remembered(&fake)).await.unwrap();
    assert_eq!(
        (session.receipt().era, fake.count("server/discover")),
        (Era::Legacy, 0)
    );

    let upgraded = Fake::modern(|_| None).await;
    let (session, _events) = connect(remembered(&upgraded)).await.unwrap();
    assert_eq!(
        (session.receipt().era, upgraded.count("initialize")),
        (Era::Modern, 1)
    );
}

#[tokio::test]
async fn every_legacy_version_is_accepted_and_then_named() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let fake = Fake::legacy(move |seen| {
            (seen.method() == "initialize")
                .then(|| seen.result(&json!({"protocolVersion": version, "capabilities": {}})))
        })
        .await;
        let (session, _events) = fake.connect().await;
        session.read("test://a").await.unwrap();
        assert_eq!(session.receipt().protocol_version, version);
        assert_eq!(
            fake.of("resources/read")[0].header("mcp-protocol-version"),
            Some(version)
        );
        assert_eq!(
            fake.of("initialize")[0].header("mcp-protocol-version"),
            None
        );
    }
}

#[tokio::test]
async fn a_refused_version_is_stepped_down_once() {
    let strict = Fake::legacy(|seen| {
        let newest = seen.body["params"]["protocolVersion"] == "2025-11-25";
        (seen.method() == "initialize" && newest)
            .then(|| Reply::status(400).body("unknown version"))
    })
    .await;
    let (session, _events) = strict.connect().await;
    assert_eq!(session.receipt().protocol_version, "2025-06-18");
    assert_eq!(strict.count("initialize"), 2);

    // Negotiates the newest version and then refuses it in the header.
    let confused = Fake::legacy(|seen| {
        (seen.header("mcp-protocol-version") == Some("2025-11-25")).then(|| Reply::status(400))
    })
    .await;
    let (session, _events) = confused.connect().await;
    assert_eq!(session.receipt().protocol_version, "2025-06-18");

    let never = Fake::start(|seen| {
        if seen.method() == "initialize" {
            Reply::status(400)
        } else {
            legacy_default(seen)
        }
    })
    .await;
    let error = never.try_connect(Protocol::Auto).await.unwrap_err();
    assert_eq!(
        (never.count("initialize"), error.reason()),
        (2, "HTTP_ERROR")
    );
}

#[tokio::test]
async fn initialized_is_acknowledged_in_many_ways() {
    let forms: Vec<fn() -> Reply> = vec![
        || Reply::status(200).body(""),
        || Reply::status(200).typed("application/json").body("null"),
        || Reply::status(200).typed("application/json").body("{}"),
        || Reply::status(202).typed("application/json"),
        || Reply::status(204),
        || Reply::sse(""),
    ];
    for form in forms {
        let fake =
            Fake::legacy(move |seen| (seen.method() == "notifications/initialized").then(form))
                .await;
        let (session, _events) = fake.connect().await;
        session.read("test://a").await.unwrap();
    }
}

#[tokio::test]
async fn nothing_overtakes_initialized() {
    let ready = std::sync::Arc::new(std::sync::Mutex::new(None::<Instant>));
    let fake = Fake::legacy(move |seen| match seen.method() {
        "notifications/initialized" => {
            let delay = Duration::from_millis(200);
            *ready.lock().unwrap() = Some(Instant::now() + delay);
            Some(Reply::status(202).after(delay))
        }
        "GET" | "resources/read" => {
            let early = ready
                .lock()
                .unwrap()
                .is_none_or(|ready| Instant::now() < ready);
            early.then(|| seen.error(-32600, "too early"))
        }
        _ => None,
    })
    .await;
    let (session, _events) = fake.connect().await;
    session.read("test://a").await.unwrap();
    assert_eq!(fake.count("GET"), 1);
}

#[tokio::test]
async fn failures_to_connect_say_why() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{closed}/mcp?key=s3cret").parse().unwrap();
    let error = connect(config(url)).await.unwrap_err();
    assert_eq!(error.reason(), "UNREACHABLE");
    assert!(!format!("{error} {error:?}").contains("s3cret"));

    let locked = Fake::start(|_| Reply::status(401).with("www-authenticate", "Bearer")).await;
    let error = locked.try_connect(Protocol::Auto).await.unwrap_err();
    assert_eq!(
        error.request_error(),
        Some(&RequestError::Unauthorized { challenge: true })
    );

    let busy = Fake::start(|_| Reply::status(429).with("retry-after", "7")).await;
    let error = busy.try_connect(Protocol::Auto).await.unwrap_err();
    let wait = Some(Duration::from_secs(7));
    assert_eq!(
        error.request_error(),
        Some(&RequestError::RateLimited { retry_after: wait })
    );
    assert_eq!(busy.seen().len(), 1);

    let only_legacy = Fake::legacy(|_| None).await;
    assert!(only_legacy.try_connect(Protocol::Modern).await.is_err());
    assert_eq!(only_legacy.count("initialize"), 0);

    let only_modern = Fake::start(modern_default).await;
    assert!(only_modern.try_connect(Protocol::Legacy).await.is_err());
    assert_eq!(only_modern.count("server/discover"), 0);
}
