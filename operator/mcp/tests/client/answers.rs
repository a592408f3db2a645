//! One request and what comes back: in pieces, in the wrong form, too much of it, or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencepost_mcp::{Body, ConnectConfig, Credentials, RequestError, SessionEvent, connect};
use http::{HeaderName, HeaderValue};
use serde_json::json;

use crate::fake::{Fake, Reply, Seen, config, frame, next, next_telling, text, until, updated};

async fn read_when_it_gets(
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> Result<String, RequestError> {
    let fake =
        Fake::legacy(move |seen| (seen.method() == "resources/read").then(|| answer(seen))).await;
    let (session, _events) = fake.connect().await;
    let answer = session.read("test://a").await?;
    Ok(String::from_utf8(answer.contents[0].body.as_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn keepalives_do_not_extend_a_deadline() {
    let started = Instant::now();
    let got = read_when_it_gets(|_| {
        let (pieces, reply) = Reply::open_stream();
        tokio::spawn(async move {
            while pieces.send(": ping\n\n".into()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        reply
    })
    .await;
    assert_eq!(got, Err(RequestError::Timeout));
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_eq!(
        read_when_it_gets(|_| Reply::never()).await,
        Err(RequestError::Timeout)
    );
}

#[tokio::test]
async fn an_answer_without_its_blank_line_on_an_open_stream_runs_into_the_deadline() {
    let held = Mutex::new(Vec::new());
    let got = read_when_it_gets(move |seen| {
        let (pieces, reply) = Reply::open_stream();
        pieces
            .try_send(
                seen.frame(&text("test://a", "x"))
                    .trim_end()
                    .to_owned()
                    .into(),
            )
            .unwrap();
        held.lock().unwrap().push(pieces);
        reply
    })
    .await;
    assert_eq!(got, Err(RequestError::Timeout));
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_fails_at_once() {
    let started = Instant::now();
    assert_eq!(
        read_when_it_gets(|_| Reply::sse(updated("test://b"))).await,
        Err(RequestError::Disconnected)
    );
    assert!(started.elapsed() < Duration::from_millis(1500));
}

#[tokio::test]
async fn answers_that_are_none() {
    let error_without_id = |_: &Seen| {
        Reply::sse(frame(
            &json!({"jsonrpc": "2.0", "error": {"code": 5, "message": "no"}}),
        ))
    };
    assert_eq!(
        read_when_it_gets(error_without_id).await,
        Err(RequestError::Server {
            code: 5,
            message: "no".into()
        })
    );

    for (n, answer) in [
        (|_: &Seen| Reply::status(202)) as fn(&Seen) -> Reply,
        |_| Reply::status(204),
        |_| Reply::json(&json!({"hello": 1})),
        |_| Reply::status(200).typed("text/html").body("<html>"),
        |_| Reply::json(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}})),
        |_| Reply::json(&json!({"jsonrpc": "2.0", "result": text("test://a", "x")})),
        |seen| {
            Reply::json(&json!({"jsonrpc": "2.0", "id": seen.body["id"],
                "result": text("test://a", "x"), "error": {"code": -1, "message": "x"}}))
        },
        |seen| seen.result(&json!({"contents": []})),
    ]
    .into_iter()
    .enumerate()
    {
        let got = read_when_it_gets(answer).await;
        assert!(
            matches!(got, Err(RequestError::Protocol { .. })),
            "answer {n}: {got:?}"
        );
    }
}

#[tokio::test]
async fn sse_corners_byte_by_byte() {
    let got = read_when_it_gets(|seen| {
        let answer = seen.frame(&text("test://a", "𝄞 done")).replace("event: message\n", "");
        let answer = answer.replace("\"jsonrpc\"", "\ndata: \"jsonrpc\"");
        let whole = format!(
            "\u{feff}: hello\n\nid: 9\ndata:\n\ndata: {{\"type\":\"heartbeat\"}}\n\nevent: ping\ndata: now\n\n{answer}"
        )
        .replace('\n', "\r\n");
        let (pieces, reply) = Reply::open_stream();
        tokio::spawn(async move {
            for byte in whole.into_bytes() {
                let _ = pieces.send(vec![byte].into()).await;
            }
        });
        reply
    })
    .await;
    assert_eq!(got.as_deref(), Ok("𝄞 done"));
}

#[tokio::test]
async fn junk_frames_are_counted_and_change_nothing() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "resources/read").then(|| {
            let junk = "data: {\"type\":\"heartbeat\"}\n\ndata: not json\n\n";
            let log =
                frame(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
            Reply::sse(format!("{junk}{log}{}", seen.frame(&text("test://a", "x"))))
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    assert!(matches!(
        next(&mut events).await,
        Some(SessionEvent::StreamFailed { .. })
    ));
    session.read("test://a").await.unwrap();
    for kind in ["junk_frame", "junk_frame", "other_notification"] {
        assert_eq!(
            next(&mut events).await,
            Some(SessionEvent::Ignored { kind })
        );
    }
}

#[tokio::test]
async fn notifications_around_an_answer_arrive_in_wire_order() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "resources/read").then(|| {
            let (pieces, reply) = Reply::open_stream();
            let answer = seen.frame(&text("test://a", "x"));
            tokio::spawn(async move {
                for piece in [
                    updated("test://1"),
                    updated("test://2"),
                    answer,
                    updated("test://3"),
                ] {
                    pieces.send(piece.into()).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            reply
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    session.read("test://a").await.unwrap();
    for n in 1..=3 {
        assert_eq!(
            next_telling(&mut events).await,
            Some(SessionEvent::Updated {
                uri: format!("test://{n}")
            })
        );
    }
}

#[tokio::test]
async fn a_servers_own_requests_are_answered_before_it_answers_ours() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "resources/subscribe").then(|| {
            let (pieces, reply) = Reply::open_stream();
            let ask = |id: u64, method: &str| {
                frame(&json!({"jsonrpc": "2.0", "id": id, "method": method}))
            };
            pieces
                .try_send(ask(1, "sampling/createMessage").into())
                .unwrap();
            pieces.try_send(ask(2, "ping").into()).unwrap();
            pieces.try_send(ask(3, "roots/list").into()).unwrap();
            let answer = seen.frame(&json!({"_meta": {"x": 1}}));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                pieces.send(answer.into()).await
            });
            reply
        })
    })
    .await;
    let (session, _events) = fake.connect().await;
    session.watch(&["test://a".to_owned()]).await;
    let replies = || -> Vec<_> {
        fake.seen()
            .into_iter()
            .map(|s| s.body)
            .filter(|b| b["method"].is_null() && !b.is_null())
            .collect()
    };
    until(|| replies().len() == 3).await;
    for reply in replies() {
        match reply["id"].as_u64() {
            Some(2) => assert_eq!(reply["result"], json!({})),
            _ => assert_eq!(reply["error"]["code"], -32601),
        }
    }
}

#[tokio::test]
async fn sizes_are_bounded_while_reading() {
    let large = |seen: &Seen| seen.result(&text("test://a", &"x".repeat(200 * 1024)));
    assert_eq!(
        read_when_it_gets(large).await,
        Err(RequestError::TooLarge { limit: 128 * 1024 })
    );
    let event = |seen: &Seen| Reply::sse(seen.frame(&text("test://a", &"x".repeat(200 * 1024))));
    assert_eq!(
        read_when_it_gets(event).await,
        Err(RequestError::TooLarge { limit: 128 * 1024 })
    );
    let content = |seen: &Seen| seen.result(&text("test://a", &"x".repeat(100 * 1024)));
    assert_eq!(
        read_when_it_gets(content).await,
        Err(RequestError::TooLarge { limit: 64 * 1024 })
    );

    // A body without an end: given up at the limit, not at the deadline.
    let endless = |_: &Seen| {
        let (pieces, reply) = Reply::open_stream();
        tokio::spawn(async move {
            while pieces
                .send("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(64).into())
                .await
                .is_ok()
            {}
        });
        reply
    };
    assert_eq!(
        read_when_it_gets(endless).await,
        Err(RequestError::TooLarge { limit: 128 * 1024 })
    );
}

#[tokio::test]
async fn compressed_bodies_are_not_unpacked() {
    let fake = Fake::legacy(|seen| {
        // Forty bytes of gzip, sent although nobody asked for it.
        (seen.method() == "resources/read").then(|| {
            Reply::status(200)
                .typed("application/json")
                .with("content-encoding", "gzip")
                .body([0x1f, 0x8b, 8, 0, 0, 0])
        })
    })
    .await;
    let (session, _events) = fake.connect().await;
    assert!(matches!(
        session.read("test://a").await,
        Err(RequestError::Protocol { .. })
    ));
    assert_eq!(fake.of("resources/read")[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn statuses_keep_their_meaning() {
    let wait = |seconds| RequestError::RateLimited {
        retry_after: Some(Duration::from_secs(seconds)),
    };
    let limited = |_: &Seen| Reply::status(429).with("retry-after", "120");
    assert_eq!(read_when_it_gets(limited).await, Err(wait(120)));
    let for_ever = |_: &Seen| Reply::status(429).with("retry-after", "1000000000");
    assert_eq!(read_when_it_gets(for_ever).await, Err(wait(3600)));
    let said = |seen: &Seen| seen.error(-32000, "Rate limit exceeded, slow down");
    assert_eq!(
        read_when_it_gets(said).await,
        Err(RequestError::RateLimited { retry_after: None })
    );
    let forbidden = |seen: &Seen| seen.error(-32002, "hidden").code(403);
    assert_eq!(
        read_when_it_gets(forbidden).await,
        Err(RequestError::Forbidden)
    );
    assert_eq!(
        read_when_it_gets(|_| Reply::status(500)).await,
        Err(RequestError::Http { status: 500 })
    );
    let missing = |seen: &Seen| seen.error(-32002, "no");
    assert_eq!(
        read_when_it_gets(missing).await,
        Err(RequestError::NotFound { code: -32002 })
    );
    // Words inside a successful read are content.
    let words = |seen: &Seen| seen.result(&text("test://a", "Error: resource not found"));
    assert_eq!(
        read_when_it_gets(words).await.as_deref(),
        Ok("Error: resource not found")
    );
}

#[tokio::test]
async fn a_blob_is_decoded_on_the_way() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "resources/read").then(|| {
            seen.result(&json!({"contents": [{"uri": "test://a", "blob": "AAH/"}], "ttlMs": 9}))
        })
    })
    .await;
    let (session, _events) = fake.connect().await;
    let answer = session.read("test://a").await.unwrap();
    assert_eq!(answer.contents[0].body, Body::Blob(vec![0, 1, 255]));
    assert_eq!(answer.ttl, Some(Duration::from_millis(9)));
}

struct Rotating(AtomicUsize);

impl Credentials for Rotating {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        Some((
            http::header::AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {n}")).unwrap(),
        ))
    }
}

#[tokio::test]
async fn each_request_asks_for_the_credential_anew() {
    let fake = Fake::legacy(|_| None).await;
    let credentials = Arc::new(Rotating(AtomicUsize::new(0)));
    let (session, _events) = connect(ConnectConfig {
        credentials,
        ..config(fake.url.clone())
    })
    .await
    .unwrap();
    session.read("test://a").await.unwrap();
    session.read("test://a").await.unwrap();
    session.close(Duration::from_secs(1)).await;
    let seen = fake.seen();
    let tokens: std::collections::BTreeSet<_> = seen
        .iter()
        .map(|s| s.header("authorization").unwrap())
        .collect();
    assert_eq!(
        tokens.len(),
        seen.len(),
        "POST, GET and DELETE each with their own"
    );
    assert!(seen.iter().any(|s| s.verb == "GET") && seen.iter().any(|s| s.verb == "DELETE"));
}

#[tokio::test]
async fn no_answer_comes_from_a_cache() {
    let fake = Fake::modern(|seen| {
        (seen.method() == "resources/read").then(|| {
            let mut result = text("test://a", "x");
            result["ttlMs"] = json!(3_600_000);
            result["cacheScope"] = json!("public");
            seen.result(&result)
        })
    })
    .await;
    let (session, _events) = fake.connect().await;
    for _ in 0..3 {
        session.read("test://a").await.unwrap();
    }
    assert_eq!(fake.count("resources/read"), 3);
}
