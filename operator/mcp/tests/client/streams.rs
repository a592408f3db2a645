//! The legacy notification stream: refused, late, cut, resumed, lost; and the session's own end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fencepost_mcp::{EndReason, Events, GapReason, RequestError, SessionEvent};
use serde_json::json;
use tokio::sync::mpsc;

use crate::fake::{Fake, Reply, Seen, frame, next, next_telling, until, updated};

/// A legacy server whose nth GET gets `answers(n)`; past the script a stream that stays open.
async fn with_gets(
    answers: impl Fn(usize, &Seen) -> Option<Reply> + Send + Sync + 'static,
) -> Fake {
    let count = AtomicUsize::new(0);
    let held: Mutex<Vec<mpsc::Sender<Bytes>>> = Mutex::default();
    Fake::legacy(move |seen| {
        (seen.method() == "GET").then(|| {
            answers(count.fetch_add(1, Ordering::Relaxed), seen).unwrap_or_else(|| {
                let (pieces, reply) = Reply::open_stream();
                held.lock().unwrap().push(pieces);
                reply
            })
        })
    })
    .await
}

async fn expect_failed(events: &mut Events) -> (String, Duration) {
    match next(events).await {
        Some(SessionEvent::StreamFailed { reason, retry_in }) => (reason, retry_in),
        other => panic!("a failed stream was expected, not {other:?}"),
    }
}

const REOPENED: Option<SessionEvent> = Some(SessionEvent::Gap {
    reason: GapReason::StreamReopened,
});

#[tokio::test]
async fn a_refused_stream_leaves_a_usable_session() {
    let fake = Fake::legacy(|_| None).await;
    let (session, mut events) = fake.connect().await;
    assert!(!session.has_stream());
    let (reason, retry_in) = expect_failed(&mut events).await;
    assert!(reason.contains("405") && retry_in.is_zero());
    session.read("test://a").await.unwrap();
    assert_eq!(fake.count("GET"), 1);
}

#[tokio::test]
async fn the_first_stream_is_open_when_connect_returns_and_is_no_gap() {
    let fake = with_gets(|_, _| {
        let (pieces, reply) = Reply::open_stream();
        pieces.try_send(updated("test://a").into()).unwrap();
        tokio::spawn(async move { pieces.closed().await });
        Some(reply)
    })
    .await;
    let (session, mut events) = fake.connect().await;
    assert!(session.has_stream());
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://a".into()
        })
    );
    let get = &fake.of("GET")[0];
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(get.header("mcp-session-id"), Some("s3cret-session"));
    assert_eq!(get.header("mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn failures_are_told_retried_and_end_in_a_gap() {
    let fake = with_gets(|n, _| {
        [503, 404, 500, 409, 401]
            .get(n)
            .map(|status| Reply::status(*status))
    })
    .await;
    let (session, mut events) = fake.connect().await;
    for status in ["503", "404", "500", "409", "401"] {
        let (reason, retry_in) = expect_failed(&mut events).await;
        assert!(reason.contains(status), "{reason}");
        assert!(retry_in > Duration::ZERO && retry_in <= Duration::from_millis(50));
    }
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(next(&mut events).await, REOPENED);
    assert!(session.has_stream());
}

#[tokio::test]
async fn an_end_is_told_and_the_stream_resumed_as_a_gap() {
    let fake = with_gets(|n, _| {
        (n == 0).then(|| Reply::sse(format!("id: 41\ndata:\n\nid: 42\n{}", updated("test://a"))))
    })
    .await;
    let (_session, mut events) = fake.connect().await;
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(
        next(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://a".into()
        })
    );
    expect_failed(&mut events).await;
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(next(&mut events).await, REOPENED);
    let gets = fake.of("GET");
    assert_eq!(
        (
            gets[0].header("last-event-id"),
            gets[1].header("last-event-id")
        ),
        (None, Some("42"))
    );
}

#[tokio::test]
async fn a_resume_point_that_leads_nowhere_is_forgotten() {
    let fake = with_gets(|n, seen| match n {
        0 => Some(Reply::sse("id: 7\ndata:\n\n")),
        _ if seen.header("last-event-id").is_some() => Some(Reply::sse("")),
        _ => None,
    })
    .await;
    let (session, _events) = fake.connect().await;
    until(|| {
        fake.of("GET")
            .last()
            .is_some_and(|get| get.header("last-event-id").is_none())
            && fake.count("GET") > 1
    })
    .await;
    assert_eq!(
        fake.count("GET"),
        5,
        "the first, three that were empty, one from the start"
    );
    until(|| session.has_stream()).await;
}

#[tokio::test]
async fn a_stream_that_is_not_text_or_too_large_is_opened_anew() {
    let fake = with_gets(|n, _| match n {
        0 => Some(Reply::sse(b"data: \xff\xff\n\n".to_vec())),
        1 => Some(Reply::sse(format!("data: {}\n\n", "x".repeat(200 * 1024)))),
        _ => None,
    })
    .await;
    let (_session, mut events) = fake.connect().await;
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert!(expect_failed(&mut events).await.0.contains("UTF-8"));
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    assert_eq!(next(&mut events).await, REOPENED);
    assert!(expect_failed(&mut events).await.0.contains("limit"));
}

#[tokio::test]
async fn a_404_after_the_stream_once_stood_ends_the_session() {
    let fake = with_gets(|n, _| {
        Some(if n == 0 {
            Reply::sse(updated("test://a"))
        } else {
            Reply::status(404)
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Updated {
            uri: "test://a".into()
        })
    );
    assert_eq!(
        next_telling(&mut events).await,
        Some(SessionEvent::Ended {
            reason: EndReason::SessionLost
        })
    );
    assert_eq!(next(&mut events).await, None);
    assert_eq!(
        session.read("test://a").await,
        Err(RequestError::SessionLost)
    );
    assert!(!session.has_stream());
}

#[tokio::test]
async fn a_lost_session_is_told_once_and_never_replaced_silently() {
    let no_id =
        json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request"}, "id": null});
    let spoken = |id: &serde_json::Value| json!({"jsonrpc": "2.0", "error": {"code": -32001, "message": "Session not found"}, "id": id});
    for form in 0..5 {
        let no_id = no_id.clone();
        let fake = Fake::legacy(move |seen| {
            (seen.method() == "resources/read").then(|| match form {
                0 => Reply::status(404),
                1 => Reply::json(&no_id).code(400),
                2 => Reply::json(&spoken(&seen.body["id"])).code(401),
                3 => Reply::json(&spoken(&seen.body["id"])).code(503),
                _ => Reply::json(&spoken(&seen.body["id"])),
            })
        })
        .await;
        let (session, mut events) = fake.connect().await;
        let (one, two) = tokio::join!(session.read("test://a"), session.read("test://b"));
        assert_eq!(
            (one, two),
            (
                Err(RequestError::SessionLost),
                Err(RequestError::SessionLost)
            ),
            "form {form}"
        );
        assert_eq!(
            next_telling(&mut events).await,
            Some(SessionEvent::Ended {
                reason: EndReason::SessionLost
            })
        );
        assert_eq!(next(&mut events).await, None);
        assert_eq!(
            session.read("test://a").await,
            Err(RequestError::SessionLost)
        );
        assert_eq!(
            (fake.count("initialize"), fake.count("resources/read")),
            (1, 2),
            "form {form}"
        );
    }
}

#[tokio::test]
async fn a_server_without_sessions_loses_none() {
    let fake = Fake::legacy(|seen| match seen.method() {
        "initialize" => {
            Some(seen.result(&json!({"protocolVersion": "2025-06-18", "capabilities": {}})))
        }
        "resources/read" => Some(Reply::status(404)),
        _ => None,
    })
    .await;
    let (session, _events) = fake.connect().await;
    assert_eq!(
        session.read("test://a").await,
        Err(RequestError::Http { status: 404 })
    );
    assert_eq!(
        session.read("test://a").await,
        Err(RequestError::Http { status: 404 })
    );
}

#[tokio::test]
async fn a_storm_is_folded_into_one_gap() {
    let fake = with_gets(|_, _| {
        let (pieces, reply) = Reply::open_stream();
        tokio::spawn(async move {
            for n in 0..10_000 {
                let _ = pieces.send(updated(&format!("test://{n}")).into()).await;
            }
            let _ = pieces.send(frame(&json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"})).into()).await;
            pieces.closed().await;
        });
        Some(reply)
    })
    .await;
    let (_session, mut events) = fake.connect().await;
    assert_eq!(next(&mut events).await, Some(SessionEvent::StreamOpened));
    // Nobody listens until the whole storm is over: the buffer holds 4096, the gap stands for the rest.
    tokio::time::sleep(Duration::from_millis(800)).await;
    let mut heard = 0;
    loop {
        match next(&mut events).await {
            Some(SessionEvent::Updated { uri }) => {
                assert_eq!(uri, format!("test://{heard}"));
                heard += 1;
            }
            Some(SessionEvent::Gap {
                reason: GapReason::Lagged,
            }) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!((4095..=4096).contains(&heard), "{heard}");
}
