//! Lists: keyset pages that neither repeat nor miss, and filters that must all hold.

use fencepost_ledger::Trigger;
use serde_json::Value;
use sqlx::PgPool;

use crate::ledger::Ledger;

fn uris(page: &Value) -> Vec<String> {
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["uri"].as_str().unwrap().to_owned())
        .collect()
}

#[sqlx::test(migrations = "./migrations")]
async fn pages_follow_each_other_without_gap_or_repetition(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    // Upper case sorts before lower case by bytes, whatever the database's locale says.
    let wanted = [
        "docs:///B",
        "docs:///a%20b",
        "docs:///a'b",
        "docs:///ä",
        "docs:///漢",
    ];
    for uri in wanted.iter().rev() {
        ledger.watched(uri).await;
    }
    let (mut seen, mut path, mut pages) = (Vec::new(), "/api/v1/resources?limit=2".to_owned(), 0);
    loop {
        let page = ledger.json(&path).await;
        seen.extend(uris(&page));
        pages += 1;
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/v1/resources?limit=2&after={next}");
    }
    assert_eq!((pages, seen.len()), (3, 5));
    let mut sorted: Vec<_> = wanted.iter().map(ToString::to_string).collect();
    sorted.sort();
    assert_eq!(seen, sorted);
}

#[sqlx::test(migrations = "./migrations")]
async fn histories_are_paged_newest_first(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    for value in 0..5 {
        ledger.read(id, Trigger::Poll, &value.to_string()).await;
    }
    for list in ["versions", "receipts"] {
        let first = ledger
            .json(&format!("/api/v1/resources/{id}/{list}?limit=3"))
            .await;
        let next = first["next"].as_str().unwrap();
        let second = ledger
            .json(&format!(
                "/api/v1/resources/{id}/{list}?limit=3&after={next}"
            ))
            .await;
        let ordinals: Vec<_> = [&first, &second]
            .iter()
            .flat_map(|page| page["items"].as_array().unwrap())
            .map(|item| item["ordinal"].as_i64().unwrap())
            .collect();
        assert_eq!(ordinals, [5, 4, 3, 2, 1], "{list}");
        assert!(second["next"].is_null());
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn every_filter_selects_and_all_must_hold(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let fresh = ledger.watched("docs:///100%/fresh_1").await;
    ledger.read(fresh, Trigger::Baseline, "1").await;
    ledger.watched("docs:///other").await;
    let count =
        async |query: &str| uris(&ledger.json(&format!("/api/v1/resources?{query}")).await).len();
    assert_eq!(count("").await, 2);
    assert_eq!(count("stale=true").await, 1);
    assert_eq!(count("stale=false").await, 1);
    assert_eq!(count("state=ACTIVE&stale=false").await, 1);
    assert_eq!(count("state=CLOSED").await, 0);
    assert_eq!(count("server=agents/config-service").await, 2);
    assert_eq!(count("server=agents/another").await, 0);
    assert_eq!(count("subject=agents/support-agents&q=OTHER").await, 1);
    assert_eq!(count("subject=elsewhere/support-agents").await, 0);
    assert_eq!(count("watch=agents/service-limits").await, 2);
    assert_eq!(count("watch=agents/service").await, 0);
    assert_eq!(count("q=100%25").await, 1);
    assert_eq!(count("q=%25").await, 1, "a percent sign is no wildcard");
    assert_eq!(count("q=fresh_1").await, 1);
    assert_eq!(count("q=freshx1").await, 0, "an underscore is no wildcard");
    assert_eq!(
        count("q=").await,
        2,
        "an empty field of a form is no filter"
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn each_public_state_is_a_filter_that_finds_it(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.watched("docs:///a").await;
    ledger
        .sql("update resource set presence = 'TOMBSTONE_PENDING', tombstone_since = now()")
        .await;
    let found = ledger
        .json("/api/v1/resources?state=TOMBSTONE_PENDING")
        .await;
    assert_eq!(found["items"][0]["state"], "TOMBSTONE_PENDING");
    assert!(uris(&ledger.json("/api/v1/resources?state=ACTIVE").await).is_empty());
    ledger.revoke().await;
    let found = ledger.json("/api/v1/resources?state=REVOKED").await;
    assert_eq!(
        (
            found["items"][0]["state"].as_str(),
            found["items"][0]["reason"].as_str()
        ),
        (Some("REVOKED"), Some("REVOKED"))
    );
    assert!(
        uris(
            &ledger
                .json("/api/v1/resources?state=TOMBSTONE_PENDING")
                .await
        )
        .is_empty()
    );
}
