//! What is remembered, and for how long.

use std::time::Duration;

use axum::http::StatusCode;
use futures::future::join_all;
use tokio::time::Instant;

use crate::{
    app::App,
    cluster::{ADMIN, NOBODY},
};

const PATH: &str = "/api/openapi.json";

/// Asks until the answer has the status; how long that took.
async fn until(app: &App, token: &str, status: StatusCode, limit: Duration) -> Duration {
    let begin = Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(100));
    loop {
        again.tick().await;
        if app.get_as(token, PATH).await.status == status {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < limit, "no {status} within {limit:?}");
    }
}

#[tokio::test]
async fn a_crowd_of_requests_asks_once() {
    let app = App::without_database();
    let answers = join_all((0..20).map(|_| app.get_as(ADMIN, PATH))).await;
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    assert_eq!(app.cluster.token_reviews(), 1);
    assert_eq!(app.cluster.asked().len(), 1);
    // Another right is another question, about the same caller.
    assert_eq!(app.get_as(ADMIN, "/metrics").await.status, StatusCode::OK);
    assert_eq!(app.cluster.token_reviews(), 0);
    assert_eq!(app.cluster.asked(), ["get /metrics"]);
}

#[tokio::test]
async fn a_withdrawn_right_ends_within_ten_seconds() {
    let app = App::without_database();
    assert_eq!(app.get_as(ADMIN, PATH).await.status, StatusCode::OK);
    app.cluster.withdraw("ada");
    assert_eq!(
        app.get_as(ADMIN, PATH).await.status,
        StatusCode::OK,
        "it is remembered"
    );
    let took = until(&app, ADMIN, StatusCode::FORBIDDEN, Duration::from_secs(12)).await;
    assert!(took > Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_token_that_becomes_valid_is_not_turned_away_for_long() {
    let app = App::without_database();
    let refused = app.get_as("later", PATH).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    app.cluster.knows("later", "ada");
    assert_eq!(
        app.get_as("later", PATH).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(app.cluster.token_reviews(), 1, "the refusal is remembered");
    until(&app, "later", StatusCode::OK, Duration::from_secs(5)).await;
}

#[tokio::test]
async fn one_callers_decision_is_not_anothers() {
    let app = App::without_database();
    assert_eq!(app.get_as(ADMIN, PATH).await.status, StatusCode::OK);
    assert_eq!(app.get_as(NOBODY, PATH).await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.get_as(ADMIN, PATH).await.status, StatusCode::OK);
}
