//! Content: who gets the bytes, who does not, and what is said with them.

use axum::http::StatusCode;
use fencepost_ledger::{Digest, Trigger};
use fencepost_store::AnswerBody;
use sqlx::PgPool;

use crate::ledger::{Ledger, bytes_of, digest_of};

#[sqlx::test(migrations = "./migrations")]
async fn the_bytes_come_with_what_qualifies_them(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    let text = r#"{ "max_batch": 500 }"#;
    ledger.read(id, Trigger::Baseline, text).await;
    let answer = ledger.get(&format!("/api/v1/resources/{id}/content")).await;
    assert_eq!(
        (answer.status, answer.bytes.as_slice()),
        (StatusCode::OK, text.as_bytes())
    );
    assert_eq!(answer.header("etag"), format!("\"{}\"", digest_of(text)));
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(
        answer.header("content-security-policy"),
        "default-src 'none'; sandbox"
    );
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
    assert_eq!(answer.header("fencepost-generation"), "1");
    assert_eq!(answer.header("fencepost-ordinal"), "1");
    assert_eq!(answer.header("fencepost-state"), "ACTIVE");
    let time = |name| {
        answer
            .header(name)
            .parse::<chrono::DateTime<chrono::Utc>>()
            .unwrap()
    };
    assert_eq!(
        (time("fencepost-stale-after") - time("fencepost-as-of")).num_seconds(),
        60
    );
    assert!(
        answer
            .headers
            .keys()
            .all(|name| !name.as_str().starts_with("access-control-"))
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn who_has_it_is_told_so(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    let path = format!("/api/v1/resources/{id}/content");
    let tag = format!("\"{}\"", digest_of("1"));
    for condition in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"x\", {tag}"),
        "*".to_owned(),
    ] {
        let answer = ledger
            .get_with(&path, &[("if-none-match", &condition)])
            .await;
        assert_eq!(
            (answer.status, answer.bytes.len()),
            (StatusCode::NOT_MODIFIED, 0),
            "{condition}"
        );
        assert_eq!(answer.header("etag"), tag);
        assert_eq!(answer.header("fencepost-ordinal"), "1");
    }
    let other = format!("\"{}\"", digest_of("2"));
    assert_eq!(
        ledger
            .get_with(&path, &[("if-none-match", &other)])
            .await
            .status,
        StatusCode::OK
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn nobody_gets_content_of_a_withdrawn_permission_whatever_they_have(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "secret-one").await;
    ledger.read(id, Trigger::Poll, "secret-two").await;
    ledger.revoke().await;
    let tag = format!("\"{}\"", digest_of("secret-two"));
    for condition in ["\"none\"", tag.as_str(), "*"] {
        let answer = ledger
            .get_with(
                &format!("/api/v1/resources/{id}/content"),
                &[("if-none-match", condition)],
            )
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{condition}");
        assert_eq!(answer.problem()["type"], "/problems/revoked");
        assert_eq!(
            (answer.header("etag"), answer.header("fencepost-state")),
            ("", "REVOKED")
        );
    }
    for path in [
        "",
        "/content",
        "/versions",
        "/receipts",
        "/timeline",
        "/versions/1/text",
        "/supersede?from=1&to=2",
    ] {
        let answer = ledger.get(&format!("/api/v1/resources/{id}{path}")).await;
        assert!(
            !String::from_utf8_lossy(&answer.bytes).contains("secret"),
            "{path}"
        );
    }
    let events = ledger.get("/api/v1/outbox").await;
    assert!(!String::from_utf8_lossy(&events.bytes).contains("secret"));
    let history = ledger
        .json(&format!("/api/v1/resources/{id}/versions"))
        .await;
    assert_eq!(
        history["items"].as_array().unwrap().len(),
        2,
        "what was told can still be traced"
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_deleted_subject_gives_no_permission(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.objects.subjects.clear();
    ledger.state.store.publish(&ledger.objects).await.unwrap();
    assert_eq!(
        ledger
            .get(&format!("/api/v1/resources/{id}/content"))
            .await
            .status,
        StatusCode::FORBIDDEN
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn what_is_gone_is_gone_and_what_never_came_is_not_found(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    let path = format!("/api/v1/resources/{id}/content");
    let empty = ledger.get(&path).await;
    assert_eq!(
        (empty.status, empty.problem()["type"].as_str()),
        (StatusCode::NOT_FOUND, Some("/problems/nothing-accepted"))
    );
    ledger.read(id, Trigger::Baseline, "1").await;
    let read = ledger.issue(id, Trigger::Poll).await;
    ledger.settle(id, read, AnswerBody::NotFound).await;
    let pending = ledger.get(&path).await;
    assert_eq!(
        (pending.status, pending.header("fencepost-state")),
        (StatusCode::OK, "TOMBSTONE_PENDING")
    );
    ledger
        .sql("update resource set presence = 'TOMBSTONED', digest = null")
        .await;
    let gone = ledger.get(&path).await;
    assert_eq!(
        (gone.status, gone.problem()["type"].as_str()),
        (StatusCode::GONE, Some("/problems/tombstoned"))
    );
    assert_eq!(gone.header("fencepost-state"), "TOMBSTONED");
}

#[sqlx::test(migrations = "./migrations")]
async fn fresh_content_is_refused_past_its_bound(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    let path = format!("/api/v1/resources/{id}/content?fresh=required");
    assert_eq!(ledger.get(&path).await.status, StatusCode::OK);
    ledger
        .sql("update resource set confirmed_at = now() - interval '61 seconds'")
        .await;
    let tag = format!("\"{}\"", digest_of("1"));
    for condition in ["\"none\"", tag.as_str()] {
        let late = ledger
            .get_with(&path, &[("if-none-match", condition)])
            .await;
        assert_eq!(late.status, StatusCode::PRECONDITION_FAILED);
        assert_eq!(late.problem()["type"], "/problems/past-bound");
        assert_ne!(late.header("fencepost-stale-after"), "");
    }
    assert_eq!(
        ledger
            .get(&format!("/api/v1/resources/{id}/content"))
            .await
            .status,
        StatusCode::OK
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_mime_type_that_is_none_does_not_reach_the_header(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    let read = ledger.issue(id, Trigger::Baseline).await;
    ledger
        .settle(
            id,
            read,
            bytes_of(
                b"<script>".to_vec(),
                Some("text/html\r\nx: y"),
                Digest::new([1; 32]),
            ),
        )
        .await;
    let answer = ledger.get(&format!("/api/v1/resources/{id}/content")).await;
    assert_eq!(
        (answer.header("content-type"), answer.header("x")),
        ("application/octet-stream", "")
    );
}
