//! Each route asks for its right, and no route asks for none.

use axum::http::{Method, StatusCode};
use fencepost::{access, api};
use fencepost_dashboard::shell::ROUTES;
use fencepost_ledger::Trigger;
use sqlx::PgPool;

use crate::{
    app::App,
    cluster::{ADMIN, NOBODY},
    ledger::Ledger,
};

const LIST: &str = "list watchedresources.fencepost.dev";
const CONTENT: &str = "get watchedresources.fencepost.dev/content";

/// What a route must ask for, said here again and not taken from the table.
fn expected(route: &str, scope: &[&str]) -> Vec<String> {
    let everywhere = |right: &str| {
        scope
            .iter()
            .map(|place| format!("{right} @{place}"))
            .collect()
    };
    match route {
        "/healthz" | "/readyz" => Vec::new(),
        "/metrics" => vec!["get /metrics".to_owned()],
        "/api/v1/resources/{id}/content"
        | "/api/v1/resources/{id}/versions/{ordinal}/text"
        | "/api/v1/resources/{id}/supersede" => vec![format!("{CONTENT} @agents")],
        "/api/v1/outbox" => everywhere(CONTENT),
        _ => everywhere(LIST),
    }
}

fn address(route: &str, id: &str) -> String {
    let query = if route.ends_with("/supersede") {
        "?from=1&to=2"
    } else {
        ""
    };
    format!(
        "{}{query}",
        route.replace("{id}", id).replace("{ordinal}", "1")
    )
}

#[test]
fn every_route_has_a_rule_and_the_docs_name_it() {
    let docs = include_str!("../../../docs/access.md");
    for route in api::paths().into_iter().chain(ROUTES) {
        assert!(
            access::need(&Method::GET, route).is_some(),
            "{route} has no rule: add a line to operator/src/access/rule.rs and to docs/access.md"
        );
        assert!(
            docs.contains(&format!("`{route}`")),
            "docs/access.md does not name {route}"
        );
    }
}

async fn asks_exactly(pool: PgPool, namespaces: &[&str], scope: &[&str]) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.read(id, Trigger::Poll, "2").await;
    ledger.state.shutdown.cancel();
    let id = id.to_string();
    for route in api::paths().into_iter().chain(ROUTES) {
        // A new gate for each: what it asks is not what it remembers.
        let app = App::new(&ledger.state, namespaces);
        let (path, wanted) = (address(route, &id), expected(route, scope));
        let answer = app.get_as(ADMIN, &path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        let mut asked = app.cluster.asked();
        if route == "/resources/{id}" {
            // The page shows a difference of contents too.
            assert_eq!(asked.pop(), Some(format!("{CONTENT} @agents")));
        }
        assert_eq!(asked, wanted, "{path}");
        assert_eq!(app.cluster.token_reviews(), usize::from(!wanted.is_empty()));

        let refused = app.get_as(NOBODY, &path).await;
        let nobody = app.get(&path, &[]).await;
        if wanted.is_empty() {
            assert_eq!(
                (refused.status, nobody.status),
                (StatusCode::OK, StatusCode::OK)
            );
            continue;
        }
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        let problem = refused.problem();
        let detail = problem["detail"].as_str().unwrap();
        let (right, place) = wanted[0].split_once(" @").unwrap_or((&wanted[0], ""));
        assert!(
            detail.contains(&format!("User noel may not {right}")),
            "{detail}"
        );
        if !matches!(place, "" | "*") {
            assert!(
                detail.contains(&format!("in namespace {place}")),
                "{detail}"
            );
        }
        assert!(detail.contains("kubectl "), "{detail}");
        assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(nobody.header("www-authenticate"), "Bearer");
        assert_eq!(nobody.problem()["type"], "/problems/unauthenticated");
        for answer in [&answer, &refused, &nobody] {
            assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        }
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn in_the_whole_cluster(pool: PgPool) {
    asks_exactly(pool, &[], &["*"]).await;
}

#[sqlx::test(migrations = "./migrations")]
async fn in_each_watched_namespace(pool: PgPool) {
    asks_exactly(pool, &["agents", "billing"], &["agents", "billing"]).await;
}

#[sqlx::test(migrations = "./migrations")]
async fn a_right_in_some_of_the_namespaces_is_not_enough_for_lists(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let app = App::new(&ledger.state, &["agents", "billing"]);
    app.cluster.allow("noel", &format!("{LIST} @agents"));
    let problem = app.get_as(NOBODY, "/api/v1/resources").await.problem();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("in namespace billing"), "{detail}");
    assert_eq!(problem["object"], "watchedresources.fencepost.dev");
}

#[sqlx::test(migrations = "./migrations")]
async fn content_is_of_its_subjects_namespace(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    let app = App::new(&ledger.state, &["agents", "billing"]);
    let path = format!("/api/v1/resources/{id}/content");
    app.cluster.allow("noel", &format!("{CONTENT} @billing"));
    assert_eq!(
        app.get_as(NOBODY, &path).await.status,
        StatusCode::FORBIDDEN
    );
    // Spelled otherwise it is the same resource, and the same right.
    let spelled = format!("/api/v1/resources/%7B{id}%7D/content");
    let refused = app.get_as(NOBODY, &spelled).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let app = App::new(&ledger.state, &["agents", "billing"]);
    app.cluster.allow("noel", &format!("{CONTENT} @agents"));
    for path in [path, spelled] {
        let answer = app.get_as(NOBODY, &path).await;
        assert_eq!(
            (answer.status, answer.bytes),
            (StatusCode::OK, b"1".to_vec()),
            "{path}"
        );
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn whether_a_resource_exists_is_for_those_who_may_list(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    for id in ["00000000-0000-7000-8000-000000000000", "no-id"] {
        let app = App::new(&ledger.state, &[]);
        let path = format!("/api/v1/resources/{id}/content");
        app.cluster.allow("noel", &format!("{CONTENT} @*"));
        assert_eq!(
            app.get_as(NOBODY, &path).await.status,
            StatusCode::FORBIDDEN
        );
        assert_eq!(app.get_as(ADMIN, &path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(
            app.cluster.asked(),
            [format!("{LIST} @*"), format!("{LIST} @*")]
        );
    }
}

#[tokio::test]
async fn what_no_rule_names_is_denied_to_everybody() {
    let app = App::without_database();
    for (method, path) in [
        (Method::GET, "/api"),
        (Method::GET, "/api/v2/servers"),
        (Method::GET, "/api/v1/resources/1/content/"),
        (Method::GET, "/api/v1//servers"),
        (Method::GET, "/api/v1/%73ervers"),
        (Method::GET, "/nonsense"),
        (Method::GET, "/metrics/"),
        (Method::POST, "/api/v1/servers"),
        (Method::OPTIONS, "/api/v1/servers"),
        (Method::DELETE, "/"),
    ] {
        let header = format!("Bearer {ADMIN}");
        let headers = [("authorization", header.as_str())];
        let answer = app
            .send(method.clone(), path, &headers, String::new())
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path}");
        assert_eq!(answer.problem()["type"], "/problems/forbidden");
        let stranger = app.send(method, path, &[], String::new()).await;
        assert_eq!(stranger.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert!(app.cluster.asked().is_empty());
}

#[test]
fn withdrawing_permissions_has_its_rule_before_its_route() {
    let need = access::need(&Method::POST, "/api/v1/revocations").unwrap();
    let wanted = access::Need::AtScope(access::Right {
        verb: "create",
        resource: "mcpsubjects",
        subresource: Some("revocations"),
    });
    assert_eq!(need, wanted);
}
