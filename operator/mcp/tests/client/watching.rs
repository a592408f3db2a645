//! Watching and giving up, in both eras.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fencepost_mcp::{
    EndReason, GapReason, RequestError, SessionEvent, UnwatchOutcome, WatchOutcome,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::fake::{
    Fake, Reply, Seen, acknowledged, frame, modern_default, next, next_telling, until, updated,
};

fn uris(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("test://{n}")).collect()
}

#[tokio::test]
async fn one_swallowed_subscribe_delays_no_other() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "resources/subscribe").then(|| match seen.uri() {
            "test://3" => Reply::never(),
            "test://5" => seen.error(-32603, "no"),
            _ => seen.result(&json!({"_meta": {"a": 1}})),
        })
    })
    .await;
    let (session, _events) = fake.connect().await;
    let started = Instant::now();
    let outcomes = session.watch(&uris(0..100)).await;
    assert!(started.elapsed() < Duration::from_millis(3500));
    assert_eq!(fake.count("resources/subscribe"), 100);
    for (n, outcome) in outcomes.iter().enumerate() {
        match n {
            3 => assert_eq!(outcome, &WatchOutcome::Failed(RequestError::Timeout)),
            5 => assert!(matches!(
                outcome,
                WatchOutcome::Failed(RequestError::Server { code: -32603, .. })
            )),
            _ => assert_eq!(outcome, &WatchOutcome::Watching, "{n}"),
        }
    }
    assert_eq!(
        session.unwatch(&uris(0..2)).await,
        vec![UnwatchOutcome::Acknowledged; 2]
    );
    assert_eq!(fake.count("resources/unsubscribe"), 2);
}

#[tokio::test]
async fn an_unacknowledged_unsubscribe_is_unknown() {
    let fake =
        Fake::legacy(|seen| (seen.method() == "resources/unsubscribe").then(Reply::never)).await;
    let (session, _events) = fake.connect().await;
    session.watch(&uris(0..1)).await;
    assert_eq!(
        session.unwatch(&uris(0..1)).await,
        [UnwatchOutcome::Unknown(RequestError::Timeout)]
    );
}

#[tokio::test]
async fn no_capability_means_no_request_and_a_missing_method_is_asked_for_once() {
    let without = Fake::legacy(|seen| {
        (seen.method() == "initialize").then(|| {
            seen.result(
                &json!({"protocolVersion": "2025-06-18", "capabilities": {"resources": {}}}),
            )
        })
    })
    .await;
    let (session, _events) = without.connect().await;
    assert_eq!(
        session.watch(&uris(0..3)).await,
        vec![WatchOutcome::Unsupported; 3]
    );
    assert_eq!(without.count("resources/subscribe"), 0);

    let liar = Fake::legacy(|seen| {
        (seen.method() == "resources/subscribe").then(|| seen.error(-32601, "what?"))
    })
    .await;
    let (session, _events) = liar.connect().await;
    assert_eq!(
        session.watch(&uris(0..200)).await,
        vec![WatchOutcome::Unsupported; 200]
    );
    let asked = liar.count("resources/subscribe");
    assert!(
        asked <= 32,
        "{asked} requests for a method that is not there"
    );
    session.watch(&uris(0..10)).await;
    assert_eq!(liar.count("resources/subscribe"), asked);
}

/// Listen streams that the test holds, in the order of their opening.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>);

impl Streams {
    /// Answers listen requests by `honour`, given the URIs asked for.
    async fn serve(
        &self,
        honour: impl Fn(&[String]) -> Vec<String> + Send + Sync + 'static,
    ) -> Fake {
        let streams = self.clone();
        Fake::modern(move |seen| {
            (seen.method() == "subscriptions/listen").then(|| {
                let filter = json!({"resourceSubscriptions": honour(&asked(seen))});
                let (pieces, reply) = acknowledged(seen, &filter);
                streams.0.lock().unwrap().push(pieces);
                reply
            })
        })
        .await
    }

    fn nth(&self, n: usize) -> mpsc::Sender<Bytes> {
        self.0.lock().unwrap()[n].clone()
    }

    fn cut(&self, n: usize) {
        self.0.lock().unwrap()[n] = mpsc::channel(1).0;
    }
}

fn asked(seen: &Seen) -> Vec<String> {
    serde_json::from_value(seen.body["params"]["notifications"]["resourceSubscriptions"].clone())
        .unwrap_or_default()
}

#[tokio::test]
async fn the_set_grows_by_a_new_stream_before_the_old_one_ends() {
    let streams = Streams::default();
    let fake = streams.serve(<[String]>::to_vec).await;
    let (session, mut events) = fake.connect().await;
    assert!(!session.has_stream());

    assert_eq!(
        session.watch(&uris(0..2)).await,
        vec![WatchOutcome::Watching; 2]
    );
    assert!(session.has_stream());
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(session.watch(&uris(2..3)).await, [WatchOutcome::Watching]);
    let listens = fake.of("subscriptions/listen");
    assert_eq!(asked(&listens[1]), uris(0..3));
    assert_eq!(
        listens[0].header("mcp-method"),
        Some("subscriptions/listen")
    );
    // The old stream is closed by us, which is no end of the session.
    let old = streams.nth(0);
    tokio::time::timeout(Duration::from_secs(2), old.closed())
        .await
        .unwrap();
    streams
        .nth(1)
        .send(updated("test://0/sub").into())
        .await
        .unwrap();
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://0/sub".into()
        })
    );

    // What is watched already needs no new stream.
    assert_eq!(
        session.watch(&uris(0..3)).await,
        vec![WatchOutcome::Watching; 3]
    );
    assert_eq!(fake.count("subscriptions/listen"), 2);

    assert_eq!(
        session.unwatch(&uris(1..3)).await,
        vec![UnwatchOutcome::Acknowledged; 2]
    );
    assert_eq!(asked(&fake.of("subscriptions/listen")[2]), uris(0..1));
    assert_eq!(
        session.unwatch(&uris(0..1)).await,
        [UnwatchOutcome::Acknowledged]
    );
    assert_eq!(fake.count("subscriptions/listen"), 3);
    let last = streams.nth(2);
    tokio::time::timeout(Duration::from_secs(2), last.closed())
        .await
        .unwrap();
    assert!(!session.has_stream());
    session.read("test://0").await.unwrap();
}

#[tokio::test]
async fn only_the_acknowledged_subset_is_watched() {
    let streams = Streams::default();
    let fake = streams
        .serve(|asked| asked.iter().take(2).cloned().collect())
        .await;
    let (session, _events) = fake.connect().await;
    let outcomes = session.watch(&uris(0..5)).await;
    assert_eq!(
        outcomes[..2],
        [WatchOutcome::Watching, WatchOutcome::Watching]
    );
    assert_eq!(outcomes[2..], vec![WatchOutcome::NotHonoured; 3]);
}

#[tokio::test]
async fn a_subset_that_shrinks_is_a_gap() {
    let streams = Streams::default();
    let fake = streams
        .serve(|asked| asked.iter().rev().take(1).cloned().collect())
        .await;
    let (session, mut events) = fake.connect().await;
    session.watch(&uris(0..1)).await;
    assert_eq!(session.watch(&uris(1..2)).await, [WatchOutcome::Watching]);
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Gap {
            reason: GapReason::SubsetShrank
        })
    );
}

#[tokio::test]
async fn the_end_of_the_listen_stream_is_the_end_of_the_session() {
    for graceful in [true, false] {
        let streams = Streams::default();
        let fake = streams.serve(<[String]>::to_vec).await;
        let (session, mut events) = fake.connect().await;
        session.watch(&uris(0..1)).await;
        // None of these ends a stream.
        let noise = [
            frame(
                &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}),
            ),
            frame(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}})),
            "data: junk\n\n".to_owned(),
            updated("test://elsewhere"),
        ];
        for piece in noise {
            streams.nth(0).send(piece.into()).await.unwrap();
        }
        assert_eq!(
            next_telling(&mut events).await,
            Some(SessionEvent::Updated {
                uri: "test://elsewhere".into()
            })
        );
        let reason = if graceful {
            let id = &fake.of("subscriptions/listen")[0].body["id"];
            streams
                .nth(0)
                .send(
                    frame(
                        &json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}}),
                    )
                    .into(),
                )
                .await
                .unwrap();
            EndReason::ListenCompleted
        } else {
            streams.cut(0);
            EndReason::ListenBroken
        };
        assert_eq!(
            next_telling(&mut events).await,
            Some(SessionEvent::Ended { reason })
        );
        assert_eq!(next(&mut events).await, None);
        assert_eq!(
            session.watch(&uris(0..1)).await,
            [WatchOutcome::Failed(RequestError::SessionLost)]
        );
    }
}

#[tokio::test]
async fn a_server_that_keeps_only_the_newest_stream_ends_nothing() {
    let streams = Streams::default();
    let held = streams.clone();
    let fake = Fake::modern(move |seen| {
        (seen.method() == "subscriptions/listen").then(|| {
            let (pieces, reply) = acknowledged(seen, &seen.body["params"]["notifications"]);
            held.0.lock().unwrap().push(pieces);
            if asked(seen).len() == 1 {
                return reply;
            }
            // The old stream is over well before the new one is acknowledged.
            held.cut(0);
            reply.after(Duration::from_millis(200))
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    session.watch(&uris(0..1)).await;
    assert_eq!(session.watch(&uris(1..2)).await, [WatchOutcome::Watching]);
    streams
        .nth(1)
        .send(updated("test://1").into())
        .await
        .unwrap();
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://1".into()
        })
    );
    session.read("test://0").await.unwrap();
}

#[tokio::test]
async fn a_listen_request_that_fails_leaves_the_old_stream_alone() {
    let streams = Streams::default();
    let held = streams.clone();
    let fake = Fake::modern(move |seen| {
        (seen.method() == "subscriptions/listen").then(|| match asked(seen).len() {
            1 => {
                let (pieces, reply) = acknowledged(seen, &seen.body["params"]["notifications"]);
                held.0.lock().unwrap().push(pieces);
                reply
            }
            2 => Reply::never(),
            3 => Reply::sse(""),
            4 => seen.error(-32603, "too many"),
            _ => Reply::sse(frame(&json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": {"code": -32601, "message": "no"}}))),
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    session.watch(&uris(0..1)).await;
    let failed = |outcome: Vec<WatchOutcome>| outcome[0].clone();
    assert_eq!(
        failed(session.watch(&uris(1..2)).await),
        WatchOutcome::Failed(RequestError::Timeout)
    );
    assert_eq!(
        failed(session.watch(&uris(1..3)).await),
        WatchOutcome::Failed(RequestError::Disconnected)
    );
    assert!(matches!(
        failed(session.watch(&uris(1..4)).await),
        WatchOutcome::Failed(RequestError::Server { .. })
    ));
    assert_eq!(
        failed(session.watch(&uris(1..5)).await),
        WatchOutcome::Unsupported
    );
    streams
        .nth(0)
        .send(updated("test://0").into())
        .await
        .unwrap();
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://0".into()
        })
    );
}

#[tokio::test]
async fn list_changes_are_listened_for_from_the_start() {
    let held: Arc<Mutex<Vec<mpsc::Sender<Bytes>>>> = Arc::default();
    let holding = Arc::clone(&held);
    let fake = Fake::start(move |seen| match seen.method() {
        "server/discover" => seen.result(&json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"resources": {"listChanged": true}}})),
        "subscriptions/listen" => {
            let filter: &Value = &seen.body["params"]["notifications"];
            assert_eq!(filter, &json!({"resourcesListChanged": true}));
            let (pieces, reply) = acknowledged(seen, filter);
            holding.lock().unwrap().push(pieces);
            reply
        }
        _ => modern_default(seen),
    })
    .await;
    let (session, mut events) = fake.connect().await;
    assert!(session.has_stream());
    until(|| held.lock().unwrap().len() == 1).await;
    let changed =
        frame(&json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}));
    let stream = held.lock().unwrap()[0].clone();
    stream.send(changed.into()).await.unwrap();
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::ListChanged)
    );
    assert_eq!(
        session.watch(&uris(0..1)).await,
        [WatchOutcome::Unsupported]
    );
}
