//! Errors: each is a problem document that says what to do, and nothing is ignored silently.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::http::{Method, StatusCode};
use fencepost::api::{Hosts, Missing, ReadinessChecks, router};
use sqlx::PgPool;
use uuid::Uuid;

use crate::ledger::{Ledger, ask};

#[sqlx::test(migrations = "./migrations")]
async fn a_bad_parameter_is_named(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    let one = format!("resources/{id}");
    for (path, field) in [
        ("resources?limit=0", "limit"),
        ("resources?limit=501", "limit"),
        ("resources?limit=many", "limit"),
        ("resources?after=nonsense", "after"),
        ("resources?after=IjEi", "after"),
        ("resources?state=active", "state"),
        ("resources?server=config-service", "server"),
        ("resources?subject=a/b/c", "subject"),
        ("resources?watch=/x", "watch"),
        ("resources?stale=yes", "stale"),
        ("resources?q=%00", "q"),
        ("resources?stat=ACTIVE", "stat"),
        ("resources?q=a&q=b", "q"),
        ("servers?state=ACTIVE", "state"),
        ("subjects?after=!", "after"),
        ("watches?limit=-1", "limit"),
        ("indexes?sort=name", "sort"),
        ("outbox?after=-1", "after"),
        ("outbox?after=99999999999999999999", "after"),
        ("outbox?kind=resource.moved", "kind"),
        ("outbox?server=x", "server"),
        ("overview?range=1w", "range"),
        ("series?range=8d", "range"),
        ("events?since=1", "since"),
        (&format!("{one}?verbose=1"), "verbose"),
        (&format!("{one}/versions?after=%7B%7D"), "after"),
        (&format!("{one}/receipts?limit=x"), "limit"),
        (&format!("{one}/timeline?range=0"), "range"),
        (&format!("{one}/timeline?from=x"), "from"),
        (&format!("{one}/content?fresh=true"), "fresh"),
        (&format!("{one}/supersede?from=1&to=x"), "to"),
    ] {
        let answer = ledger.get(&format!("/api/v1/{path}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        let problem = answer.problem();
        assert_eq!(
            (&problem["field"], &problem["type"]),
            (&field.into(), &"/problems/bad-parameter".into()),
            "{path}"
        );
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn what_does_not_exist_is_not_found(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    for unknown in [
        Uuid::from_u128(77).to_string(),
        "no-id".to_owned(),
        "%2e%2e".to_owned(),
    ] {
        for below in [
            "",
            "/versions",
            "/receipts",
            "/timeline",
            "/content",
            "/versions/1/text",
            "/supersede?from=1&to=2",
        ] {
            let path = format!("/api/v1/resources/{unknown}{below}");
            let problem = ledger.problem(&path).await;
            assert_eq!(
                (&problem["status"], &problem["type"]),
                (&404.into(), &"/problems/not-found".into()),
                "{path}"
            );
        }
    }
    for below in ["versions/9/text", "versions/x/text"] {
        let problem = ledger
            .problem(&format!("/api/v1/resources/{id}/{below}"))
            .await;
        assert_eq!(problem["title"], "No such version");
    }
    for path in [
        "/api",
        "/api/",
        "/api/v2/servers",
        "/api/v1/server",
        "/api/v1/resources/",
        &format!("/api/v1/resources/{id}/versions/1"),
        &format!("/api/v1/resources/{id}/content/x"),
    ] {
        let problem = ledger.problem(path).await;
        assert_eq!(
            (&problem["type"], &problem["object"]),
            (&"/problems/no-such-route".into(), &path.into()),
            "{path}"
        );
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn a_wrong_method_is_told_the_right_ones(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    for method in [
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
    ] {
        for path in ["/api/v1/resources", "/api/v1/events", "/healthz"] {
            let answer = ask(ledger.router(), method.clone(), path, &[]).await;
            assert_eq!(
                answer.status,
                StatusCode::METHOD_NOT_ALLOWED,
                "{method} {path}"
            );
            assert_eq!(
                (answer.header("allow"), answer.problem()["type"].as_str()),
                ("GET,HEAD", Some("/problems/method-not-allowed"))
            );
        }
    }
    assert_eq!(
        ask(ledger.router(), Method::HEAD, "/api/v1/servers", &[])
            .await
            .status,
        StatusCode::OK
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_body_that_claims_too_much_is_refused(pool: PgPool) {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt as _;
    let ledger = Ledger::new(pool).await;
    let request = Request::post("/api/v1/resources")
        .body(Body::from(vec![b'x'; 20_000]))
        .unwrap();
    let response = ledger.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[sqlx::test(migrations = "./migrations")]
async fn without_its_database_the_api_asks_for_patience(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let router = ledger.router();
    ledger.pool.close().await;
    for path in [
        "/api/v1/resources",
        "/api/v1/servers",
        "/api/v1/outbox",
        "/api/v1/overview",
    ] {
        let answer = ask(router.clone(), Method::GET, path, &[]).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(
            (
                answer.header("retry-after"),
                answer.problem()["type"].as_str()
            ),
            ("5", Some("/problems/database-away")),
            "{path}"
        );
    }
    for path in ["/healthz", "/metrics", "/api/openapi.json"] {
        assert_eq!(
            ask(router.clone(), Method::GET, path, &[]).await.status,
            StatusCode::OK,
            "{path}"
        );
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn on_loopback_a_page_of_another_name_gets_nothing(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.state.hosts = Hosts::for_listen("127.0.0.1:8080");
    for path in [
        "/api/v1/resources",
        "/metrics",
        "/api/v1/events",
        "/readyz",
        "/api/nothing",
    ] {
        let answer = ledger
            .get_with(
                path,
                &[
                    ("host", "rebound.example:8080"),
                    ("origin", "http://rebound.example:8080"),
                ],
            )
            .await;
        assert_eq!(
            (answer.status, answer.problem()["field"].as_str()),
            (StatusCode::FORBIDDEN, Some("Host")),
            "{path}"
        );
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let answer = ledger
        .get_with("/api/v1/resources", &[("host", "localhost:8080")])
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

struct NoManifests;

impl ReadinessChecks for NoManifests {
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>> {
        Box::pin(async {
            vec![Missing {
                name: "manifests".into(),
                detail: "not read yet".into(),
            }]
        })
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn readiness_names_what_is_missing(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let ready = ledger.get("/readyz").await;
    assert_eq!(
        (ready.status, ready.json()),
        (
            StatusCode::OK,
            serde_json::json!({"ready": true, "missing": [], "degraded": []})
        )
    );
    ledger.state.readiness = Arc::new(NoManifests);
    let answer = ask(router(ledger.state.clone()), Method::GET, "/readyz", &[]).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        answer.json(),
        serde_json::json!({
            "ready": false,
            "missing": [{"name": "manifests", "detail": "not read yet"}],
            "degraded": []
        })
    );
}
