//! Refusals: who asks is unknown, and who could say is away.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use axum::http::{Method, StatusCode};
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    app::App,
    cluster::{ADMIN, Mood},
};

const PATH: &str = "/api/openapi.json";

#[tokio::test]
async fn a_token_that_is_nobodys_is_refused() {
    let app = App::without_database();
    for value in ["Bearer unknown", "Bearer ", "Bearer a b", "Bearer \u{7f}"] {
        let Ok(_) = value.parse::<axum::http::HeaderValue>() else {
            continue;
        };
        let answer = app.get(PATH, &[("authorization", value)]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{value:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        assert_eq!(answer.problem()["type"], "/problems/unauthenticated");
    }
    assert_eq!(
        app.cluster.token_reviews(),
        1,
        "what is no token is asked of nobody"
    );
    assert!(app.cluster.asked().is_empty());
    // Another scheme says nothing of a token; the cookie does.
    let cookie = format!("theme=dark; fencepost_token={ADMIN}");
    let headers = [("authorization", "Basic YTpi"), ("cookie", cookie.as_str())];
    assert_eq!(app.get(PATH, &headers).await.status, StatusCode::OK);
    // The header goes first, also when it is wrong.
    let headers = [
        ("authorization", "Bearer unknown"),
        ("cookie", cookie.as_str()),
    ];
    assert_eq!(
        app.get(PATH, &headers).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn while_nobody_can_be_asked_nothing_is_open() {
    for (mood, said) in [
        (Mood::Away, "cannot be reached"),
        (
            Mood::Forbids,
            "may not create tokenreviews.authentication.k8s.io",
        ),
        (Mood::Babbles, "cannot be read"),
        (Mood::Rejects, "status 422"),
    ] {
        let app = App::without_database();
        app.cluster.is(mood);
        for path in [PATH, "/metrics", "/api/nonsense", "/"] {
            let answer = app.get_as(ADMIN, path).await;
            assert_eq!(
                answer.status,
                StatusCode::SERVICE_UNAVAILABLE,
                "{mood:?} {path}"
            );
            let problem = answer.problem();
            assert_eq!(problem["type"], "/problems/access-undecided");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(said), "{mood:?}: {detail}");
            assert!(!answer.header("retry-after").is_empty());
        }
        assert_eq!(app.get("/healthz", &[]).await.status, StatusCode::OK);
        assert_eq!(app.get("/readyz", &[]).await.status, StatusCode::OK);
        // The failure is not remembered.
        app.cluster.is(Mood::Up);
        assert_eq!(
            app.get_as(ADMIN, PATH).await.status,
            StatusCode::OK,
            "{mood:?}"
        );
    }
}

#[tokio::test]
async fn a_known_caller_is_refused_too_while_rights_cannot_be_asked() {
    let app = App::without_database();
    assert_eq!(app.get_as(ADMIN, PATH).await.status, StatusCode::OK);
    app.cluster.is(Mood::Forbids);
    let problem = app.get_as(ADMIN, "/metrics").await.problem();
    assert_eq!(problem["status"], 503);
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("subjectaccessreviews.authorization.k8s.io"),
        "{detail}"
    );
}

#[tokio::test]
async fn another_sites_page_changes_nothing_with_the_cookie() {
    let app = App::without_database();
    let cookie = format!("fencepost_token={ADMIN}");
    for (site, status) in [
        ("cross-site", 403),
        ("same-site", 403),
        ("same-origin", 403),
    ] {
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", site)];
        let answer = app
            .send(Method::POST, "/api/v1/revocations", &headers, String::new())
            .await;
        assert_eq!(answer.status, status, "{site}");
        let kind = if site == "same-origin" {
            "forbidden"
        } else {
            "another-site"
        };
        assert_eq!(
            answer.problem()["type"],
            format!("/problems/{kind}"),
            "{site}"
        );
    }
}

/// What would be logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_log_says_it_once_and_never_a_token() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let app = App::without_database();
    for mood in [
        Mood::Away,
        Mood::Babbles,
        Mood::Rejects,
        Mood::Forbids,
        Mood::Up,
    ] {
        app.cluster.is(mood);
        app.get_as(ADMIN, PATH).await;
        app.form("/login", &[], &format!("token={ADMIN}")).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(
        text.matches("nobody can say who may ask").count(),
        1,
        "{text}"
    );
    assert!(!text.contains(ADMIN), "{text}");
}
