//! The live stream: what is told, that it ends, and how many there may be.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode, header::CONTENT_TYPE},
};
use fencepost::live::Live;
use fencepost_views::LiveKind;
use futures::StreamExt as _;
use sqlx::PgPool;
use tower::ServiceExt as _;

use crate::ledger::Ledger;

const PATIENCE: Duration = Duration::from_secs(10);

async fn open(ledger: &Ledger) -> axum::response::Response {
    let request = Request::get("/api/v1/events")
        .header("accept-encoding", "gzip")
        .body(Body::empty())
        .unwrap();
    ledger.router().oneshot(request).await.unwrap()
}

#[sqlx::test(migrations = "./migrations")]
async fn signals_are_told_as_they_happen_and_the_shutdown_ends_the_stream(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let response = open(&ledger).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert!(!response.headers().contains_key("content-encoding"));
    let mut body = response.into_body().into_data_stream();
    let first = tokio::time::timeout(PATIENCE, body.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(first, ": listening\n\n");
    ledger
        .state
        .live
        .tell(LiveKind::Resource, Some("0199".into()));
    ledger.state.live.tell(LiveKind::Sample, None);
    let mut text = String::new();
    while text.matches("\n\n").count() < 2 {
        let part = tokio::time::timeout(PATIENCE, body.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        text.push_str(std::str::from_utf8(&part).unwrap());
    }
    assert_eq!(
        text,
        "event: resource\ndata: {\"kind\":\"resource\",\"id\":\"0199\"}\n\nevent: sample\ndata: {\"kind\":\"sample\"}\n\n"
    );
    ledger.state.shutdown.cancel();
    assert!(
        tokio::time::timeout(PATIENCE, body.next())
            .await
            .unwrap()
            .is_none()
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn streams_are_bounded_and_a_closed_one_makes_room(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.state.live = Live::with_streams(1);
    let first = open(&ledger).await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = open(&ledger).await;
    assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(second.headers().contains_key("retry-after"));
    drop(first);
    assert_eq!(open(&ledger).await.status(), StatusCode::OK);
}
