//! Versions, receipts, the picture, texts and notes.

use fencepost_ledger::{Digest, Trigger, Verdict};
use fencepost_store::Mode;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::ledger::{Ledger, bytes_of, digest_of, json_text};

#[sqlx::test(migrations = "./migrations")]
async fn versions_and_receipts_have_the_fields_of_the_contract(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    ledger.read(id, Trigger::Baseline, "500").await;
    let late = ledger.issue(id, Trigger::Poll).await;
    ledger.read(id, Trigger::Notification, "50").await;
    assert!(matches!(
        ledger.settle(id, late, json_text("500")).await,
        Verdict::Stale(_)
    ));
    let in_flight = ledger.issue(id, Trigger::Audit).await;

    let versions = ledger
        .json(&format!("/api/v1/resources/{id}/versions"))
        .await;
    let newest = &versions["items"][0];
    assert_eq!(
        [
            &newest["generation"],
            &newest["ordinal"],
            &newest["size"],
            &newest["contentKept"]
        ],
        [&json!(1), &json!(3), &json!(2), &json!(true)]
    );
    assert_eq!(newest["digest"], digest_of("50").to_string());
    assert_eq!(newest["previousDigest"], digest_of("500").to_string());
    assert_eq!(
        (&newest["trigger"], &newest["subject"]),
        (&json!("Notification"), &json!("support-agents"))
    );
    assert_eq!(
        (&newest["serverVersion"], &newest["mimeType"]),
        (&json!("config-service/1.4.2"), &json!("application/json"))
    );
    assert!(versions["items"][1]["previousDigest"].is_null());

    let receipts = ledger
        .json(&format!("/api/v1/resources/{id}/receipts"))
        .await;
    let told: Vec<_> = receipts["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            (
                r["ordinal"].as_i64().unwrap(),
                r["outcome"].clone(),
                r["reason"].clone(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (4, json!(null), json!(null)),
            (3, json!("accepted"), json!(null)),
            (2, json!("stale"), json!("STALE_ORDINAL")),
            (1, json!("accepted"), json!(null)),
        ]
    );
    assert_eq!(receipts["items"][0]["requestId"], in_flight.0.to_string());
    assert!(receipts["items"][0]["finishedAt"].is_null());
}

#[sqlx::test(migrations = "./migrations")]
async fn the_picture_has_reads_and_marks_of_its_window_and_the_watermark_before(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.sql(
        "alter table read disable trigger user; \
         update read set issued_at = now() - interval '2 hours', finished_at = now() - interval '119 minutes'; \
         alter table read enable trigger user; update mark set at = now() - interval '2 hours'",
    )
    .await;
    ledger.read(id, Trigger::Notification, "2").await;
    let hour = ledger
        .json(&format!("/api/v1/resources/{id}/timeline?range=1h"))
        .await;
    assert_eq!(
        (
            &hour["reads"].as_array().unwrap().len(),
            &hour["watermarkBefore"]
        ),
        (&1, &json!(1))
    );
    assert_eq!(hour["marks"], json!([]));
    assert_eq!(hour["truncated"], false);
    let day = ledger
        .json(&format!("/api/v1/resources/{id}/timeline?range=86400"))
        .await;
    let ordinals: Vec<_> = day["reads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|read| read["ordinal"].clone())
        .collect();
    assert_eq!(ordinals, [json!(1), json!(2)]);
    assert_eq!(
        (&day["marks"][0]["kind"], &day["watermarkBefore"]),
        (&json!("opened"), &json!(0))
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_picture_of_more_reads_than_fit_begins_where_it_is_complete(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.sql(
        "insert into read (request_id, resource_id, generation, session_generation, epoch, ordinal, trigger, issued_at, finished_at, outcome) \
         select gen_random_uuid(), id, 1, 1, 1, n + 1, 'Poll', now() - interval '20 minutes' + n * interval '1 second', \
         now() - interval '20 minutes' + n * interval '1 second', 'unchanged' from resource, generate_series(1, 700) n",
    )
    .await;
    let picture = ledger
        .json(&format!("/api/v1/resources/{id}/timeline?range=1h"))
        .await;
    let reads = picture["reads"].as_array().unwrap();
    assert_eq!((reads.len(), &picture["truncated"]), (500, &json!(true)));
    assert_eq!(
        (&reads[0]["ordinal"], &picture["watermarkBefore"]),
        (&json!(202), &json!(201))
    );
    assert_eq!(picture["from"], reads[0]["issuedAt"]);
}

#[sqlx::test(migrations = "./migrations")]
async fn a_version_is_text_or_says_how_large_the_blob_is(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("docs:///a").await;
    ledger.read(id, Trigger::Baseline, r#"{"a":1}"#).await;
    let blob = ledger.issue(id, Trigger::Poll).await;
    ledger
        .settle(
            id,
            blob,
            bytes_of(vec![0xff, 0xfe, 0], None, Digest::new([1; 32])),
        )
        .await;
    let long = "ä".repeat(200 * 1024);
    let read = ledger.issue(id, Trigger::Poll).await;
    ledger
        .settle(
            id,
            read,
            bytes_of(long.into_bytes(), Some("text/plain"), Digest::new([2; 32])),
        )
        .await;
    let text = async |ordinal: i64| {
        ledger
            .json(&format!("/api/v1/resources/{id}/versions/{ordinal}/text"))
            .await
    };
    let first = text(1).await;
    assert_eq!(
        (&first["text"], &first["size"], &first["truncated"]),
        (&json!(r#"{"a":1}"#), &json!(7), &json!(false))
    );
    let second = text(2).await;
    assert_eq!(
        (&second["text"], &second["size"]),
        (&Value::Null, &json!(3))
    );
    let third = text(3).await;
    assert_eq!(
        (third["text"].as_str().unwrap().len(), &third["truncated"]),
        (256 * 1024, &json!(true))
    );
    assert_eq!(third["size"], 400 * 1024);
}

#[sqlx::test(migrations = "./migrations")]
async fn the_note_between_two_versions_names_old_and_new(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    ledger
        .read(id, Trigger::Baseline, r#"{"max_batch":500}"#)
        .await;
    ledger
        .read(id, Trigger::Notification, r#"{"max_batch":50}"#)
        .await;
    let path = format!("/api/v1/resources/{id}/supersede?from=1&to=2");
    let note = ledger.json(&path).await;
    assert_eq!(
        note["changes"],
        json!([{"path": "/max_batch", "old": 500, "new": 50}])
    );
    assert!(
        note["text"]
            .as_str()
            .unwrap()
            .contains("config://service/limits")
    );
    let back = ledger
        .json(&format!("/api/v1/resources/{id}/supersede?from=2&to=1"))
        .await;
    assert_eq!(
        back["changes"],
        json!([{"path": "/max_batch", "old": 50, "new": 500}])
    );
    assert_eq!(
        ledger
            .problem(&format!("/api/v1/resources/{id}/supersede?from=1&to=7"))
            .await["status"],
        404
    );
    assert_eq!(
        ledger
            .problem(&format!("/api/v1/resources/{id}/supersede?from=1"))
            .await["field"],
        "to"
    );
    ledger.revoke().await;
    assert_eq!(ledger.problem(&path).await["type"], "/problems/revoked");
}

#[sqlx::test(migrations = "./migrations")]
async fn what_is_not_kept_is_a_problem_that_says_so(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched_as("docs:///a", Mode::Poll, false).await;
    ledger.read(id, Trigger::Poll, "1").await;
    ledger.read(id, Trigger::Poll, "2").await;
    for path in ["versions/1/text", "supersede?from=1&to=2", "content"] {
        let problem = ledger
            .problem(&format!("/api/v1/resources/{id}/{path}"))
            .await;
        assert_eq!(
            (&problem["type"], &problem["status"]),
            (&json!("/problems/content-not-stored"), &json!(404)),
            "{path}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("content.store"),
            "{path}"
        );
    }
}
