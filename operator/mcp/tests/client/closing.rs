//! Sessions end on the server too, and secrets stay unsaid.

use std::sync::Arc;
use std::time::Duration;

use fencepost_mcp::{ConnectConfig, Credentials, EndReason, RequestError, SessionEvent, connect};
use http::{HeaderName, HeaderValue};

use crate::fake::{Fake, Reply, TOKEN, config, next, next_telling, until};

const CLOSED: Option<SessionEvent> = Some(SessionEvent::Ended {
    reason: EndReason::Closed,
});

#[tokio::test]
async fn closing_deletes_the_session_once() {
    let fake = Fake::legacy(|_| None).await;
    let (session, mut events) = fake.connect().await;
    session.close(Duration::from_secs(1)).await;
    assert_eq!(
        fake.of("DELETE")[0].header("mcp-session-id"),
        Some("s3cret-session")
    );
    assert_eq!(next_telling(&mut events).await, CLOSED);
    assert_eq!(next(&mut events).await, None);
    assert_eq!(
        session.read("test://a").await,
        Err(RequestError::SessionLost)
    );
    drop(session);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fake.count("DELETE"), 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_a_delete_delays_nobody_past_the_deadline() {
    let fake = Fake::legacy(|seen| (seen.method() == "DELETE").then(Reply::never)).await;
    let (session, _events) = fake.connect().await;
    tokio::time::timeout(
        Duration::from_secs(1),
        session.close(Duration::from_millis(100)),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn dropping_every_handle_ends_the_session_too() {
    let fake = Fake::legacy(|_| None).await;
    let (session, mut events) = fake.connect().await;
    let other = session.clone();
    drop(session);
    other.read("test://a").await.unwrap();
    drop(other);
    until(|| fake.count("DELETE") == 1).await;
    assert_eq!(next_telling(&mut events).await, CLOSED);
}

#[tokio::test]
async fn dropping_the_handle_closes_the_listen_stream() {
    let (tell, mut closed) = tokio::sync::mpsc::channel::<()>(1);
    let fake = Fake::modern(move |seen| {
        (seen.method() == "subscriptions/listen").then(|| {
            let (pieces, reply) =
                crate::fake::acknowledged(seen, &seen.body["params"]["notifications"]);
            let tell = tell.clone();
            tokio::spawn(async move {
                pieces.closed().await;
                let _ = tell.send(()).await;
            });
            reply
        })
    })
    .await;
    let (session, mut events) = fake.connect().await;
    session.watch(&["test://a".to_owned()]).await;
    drop(session);
    tokio::time::timeout(Duration::from_secs(2), closed.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(next_telling(&mut events).await, CLOSED);
}

#[tokio::test]
async fn a_failed_handshake_leaves_no_session_behind() {
    let fake = Fake::legacy(|seen| {
        (seen.method() == "notifications/initialized").then(|| Reply::status(500))
    })
    .await;
    fake.try_connect(fencepost_mcp::Protocol::Auto)
        .await
        .unwrap_err();
    assert_eq!(fake.count("DELETE"), 1);
}

struct Token;

impl Credentials for Token {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        Some((http::header::AUTHORIZATION, HeaderValue::from_static(TOKEN)))
    }
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let fake =
        Fake::legacy(|seen| (seen.method() == "resources/read").then(|| Reply::status(500))).await;
    let mut url = fake.url.clone();
    url.set_query(Some("key=s3cret-query"));
    let config = ConnectConfig {
        credentials: Arc::new(Token),
        ..config(url)
    };
    let shown = format!("{config:?}");
    let (session, _events) = connect(config).await.unwrap();
    let error = session.read("test://a").await.unwrap_err();
    let printed = format!("{shown} {session:?} {error:?} {error}");
    assert!(
        !printed.contains("s3cret") && !printed.contains("t0ken"),
        "{printed}"
    );
    assert_eq!(
        fake.of("resources/read")[0].header("authorization"),
        Some(TOKEN)
    );
}
