//! The pages: shown to those who may list, with contents to those who may read them.

use axum::http::StatusCode;
use fencepost_ledger::Trigger;
use sqlx::PgPool;

use crate::{
    app::App,
    cluster::{ADMIN, NOBODY},
    ledger::Ledger,
};

const LIST: &str = "list watchedresources.fencepost.dev @*";

fn browser(cookie: &str) -> [(&str, &str); 2] {
    [("accept", "text/html"), ("cookie", cookie)]
}

#[sqlx::test(migrations = "./migrations")]
async fn a_resources_page_shows_contents_only_to_who_may_read_them(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger
        .read(id, Trigger::Baseline, r#"{"limit":71717}"#)
        .await;
    ledger.read(id, Trigger::Poll, r#"{"limit":82828}"#).await;
    let app = App::new(&ledger.state, &[]);
    app.cluster.allow("noel", LIST);
    let path = format!("/resources/{id}");
    let page = async |token: &str| {
        let cookie = format!("fencepost_token={token}");
        let answer = app.get(&path, &browser(&cookie)).await;
        assert_eq!(answer.status, StatusCode::OK);
        String::from_utf8(answer.bytes).unwrap()
    };
    let whole = page(ADMIN).await;
    assert!(
        whole.contains("71717") && whole.contains("82828"),
        "{whole}"
    );
    let narrowed = page(NOBODY).await;
    assert!(!narrowed.contains("71717") && !narrowed.contains("82828"));
    assert!(narrowed.contains("config://a"), "the rest is there");
    assert!(
        narrowed.contains(
            "User noel may not get watchedresources.fencepost.dev/content in namespace agents"
        ),
        "{narrowed}"
    );
    // One caller's page leaves nothing for the next.
    assert!(page(ADMIN).await.contains("82828"));
    assert!(!page(NOBODY).await.contains("82828"));
}

#[tokio::test]
async fn a_browser_reads_the_refusal_as_a_page() {
    let app = App::without_database();
    let cookie = format!("fencepost_token={NOBODY}");
    let answer = app.get("/servers", &browser(&cookie)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let page = String::from_utf8(answer.bytes).unwrap();
    assert!(
        page.contains("may not list watchedresources.fencepost.dev in all namespaces"),
        "{page}"
    );
    assert!(page.contains("kubectl create clusterrolebinding"), "{page}");
    // Without a wish for HTML it is the document.
    let answer = app.get("/servers", &[("cookie", &cookie)]).await;
    assert_eq!(answer.problem()["type"], "/problems/forbidden");
}
