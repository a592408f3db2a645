//! Deliveries from a real ledger to receivers in this process: `DATABASE_URL` names a Postgres whose
//! user may create databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "the store's tests use all of it")]
#[path = "../../store/tests/outbox/ledger.rs"]
mod ledger;
mod receiver;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::StatusCode;
use cloudevents::{AttributesReader, Event};
use fencepost::{
    desired::{Channel, Desired, DesiredIndex, ObjectKey, WatchSelection},
    live::Live,
    manifest::Secret,
    metrics::Metrics,
    outbox::{Deliveries, DeliveryConfig},
};
use fencepost_crds::EventKind;
use fencepost_ledger::backoff::Backoff;
use fencepost_mcp::EgressPolicy;
use fencepost_store::{IndexPosition, Store};
use sqlx::PgPool;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use ledger::{JSON, Ledger};
use receiver::{KEY, Receiver};

struct Running {
    desired: watch::Sender<Arc<Desired>>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Deliveries with short patience.
    fn start(store: Store, indexes: Vec<DesiredIndex>) -> Self {
        let metrics = Arc::new(Metrics::new().unwrap());
        let config = DeliveryConfig {
            timeout: Duration::from_millis(700),
            retry: Backoff {
                first: Duration::from_millis(20),
                cap: Duration::from_millis(200),
            },
        };
        let egress = EgressPolicy {
            allow_loopback: true,
            proxy: None,
        };
        let deliveries =
            Deliveries::with_config(store, egress, Arc::clone(&metrics), Live::new(), config);
        let (desired, receiver) = watch::channel(Arc::new(Desired {
            indexes,
            ..Desired::default()
        }));
        let stop = CancellationToken::new();
        let task = tokio::spawn(deliveries.run(receiver, stop.clone()));
        Self {
            desired,
            metrics,
            stop,
            task,
        }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn desired(uid: Uuid, name: &str, url: &str) -> DesiredIndex {
    DesiredIndex {
        key: ObjectKey {
            namespace: "agents".into(),
            name: name.into(),
            uid: uid.to_string(),
        },
        url: url.into(),
        channel: Ok(Channel {
            ca_pem: None,
            signing_secrets: vec![Secret::new(KEY)],
        }),
        watches: WatchSelection::All,
        events: EventKind::ALL.to_vec(),
        include_content: false,
        include_supersede: true,
    }
}

async fn until(
    store: &Store,
    index: Uuid,
    wanted: impl Fn(&IndexPosition) -> bool,
) -> IndexPosition {
    for _ in 0..1500 {
        let row = store.load_index(index).await.unwrap().unwrap();
        if wanted(&row) {
            return row;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within 15 s: {:?}", store.load_index(index).await);
}

#[sqlx::test(migrations = "./migrations")]
async fn a_change_arrives_as_a_signed_cloud_event_and_is_confirmed(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    let receiver = Receiver::willing().await;
    let mut index = desired(uid, "rag", &receiver.url);
    index.include_content = true;
    // The key before, kept until every receiver has the next.
    let channel = index.channel.as_mut().unwrap();
    channel
        .signing_secrets
        .insert(0, Secret::new(*b"the key that was used until yesterday"));
    let running = Running::start(ledger.store.clone(), vec![index]);
    ledger
        .accept("config://service/limits", JSON, r#"{"max_batch":500}"#)
        .await;
    let position = ledger
        .accept("config://service/limits", JSON, r#"{"max_batch":50}"#)
        .await;
    let got = receiver.until(|got| got.len() == 2).await;
    let last = &got[1];
    assert!(got.iter().all(|got| got.verified));
    assert_eq!(last.signature.split(' ').count(), 2);
    assert_eq!(last.content_type, "application/cloudevents+json");
    assert_eq!(last.id, last.event.id);
    assert_eq!(
        last.event.data.content.as_deref(),
        Some(r#"{"max_batch":50}"#)
    );
    assert_eq!(
        last.event.data.supersede.as_ref().unwrap().changes[0].path,
        "/max_batch"
    );
    let event: Event = serde_json::from_slice(&last.body).unwrap();
    assert_eq!(event.ty(), "dev.fencepost.resource.accepted");
    assert_eq!(event.source().as_str(), "/agents/config-service");
    assert_eq!(event.subject(), Some("config://service/limits"));
    let row = until(&ledger.store, uid, |row| {
        row.acknowledged_position == position
    })
    .await;
    assert_eq!(
        (row.delivered_position, row.attempts, row.last_error),
        (position, 0, None)
    );
    let text = running.metrics.render().unwrap();
    assert!(
        text.contains(
            r#"fencepost_deliveries_total{name="rag",namespace="agents",outcome="acknowledged"} 2"#
        ),
        "{text}"
    );
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn a_failed_try_is_repeated_with_the_same_id_and_body_also_by_another_process(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    let uid = ledger.index("rag", None, None).await;
    let receiver = Receiver::start(|_, before| {
        let status = if before < 2 {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::OK
        };
        (status, Duration::ZERO)
    })
    .await;
    ledger.accept("config://a", JSON, r#"{"a":1}"#).await;
    let first = Running::start(
        ledger.store.clone(),
        vec![desired(uid, "rag", &receiver.url)],
    );
    // Ends after the first try, and another process goes on.
    receiver.until(|got| !got.is_empty()).await;
    first.end().await;
    let after_first = receiver.got().len();
    let failed = ledger.store.load_index(uid).await.unwrap().unwrap();
    assert!(failed.attempts >= 1, "{failed:?}");
    assert_eq!(
        failed.last_error.as_deref(),
        Some("answered 500 Internal Server Error: what the receiver says")
    );
    let other = Store::with_pool(pool, Uuid::new_v4());
    let second = Running::start(other, vec![desired(uid, "rag", &receiver.url)]);
    let row = until(&ledger.store, uid, |row| row.acknowledged_position == 1).await;
    assert_eq!((row.attempts, row.last_error), (0, None));
    let got = receiver.got();
    assert_eq!(got.len(), 3.max(after_first));
    assert!(
        got.iter()
            .all(|try_| try_.id == got[0].id && try_.body == got[0].body && try_.verified)
    );
    second.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn timestamp_and_signature_are_of_the_try(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    // Longer than the patience at first, so that the receiver has it and Fencepost does not know.
    let receiver = Receiver::start(|_, before| {
        (
            StatusCode::OK,
            Duration::from_millis(if before < 2 { 1200 } else { 0 }),
        )
    })
    .await;
    let running = Running::start(
        ledger.store.clone(),
        vec![desired(uid, "rag", &receiver.url)],
    );
    ledger.accept("config://a", JSON, "1").await;
    let row = until(&ledger.store, uid, |row| row.attempts > 0).await;
    assert_eq!(row.last_error.as_deref(), Some("no answer within 0.7 s"));
    until(&ledger.store, uid, |row| row.acknowledged_position == 1).await;
    let got = receiver.got();
    assert_eq!(got.len(), 3);
    assert!(
        got.iter()
            .all(|try_| try_.verified && try_.body == got[0].body)
    );
    assert_ne!(got[0].timestamp, got[2].timestamp);
    assert_ne!(got[0].signature, got[2].signature);
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn events_of_one_resource_come_in_order_and_one_bad_resource_holds_up_no_other(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    let mended = Arc::new(AtomicBool::new(false));
    let willing = Arc::clone(&mended);
    let receiver = Receiver::start(move |event, _| {
        let bad = event.subject == "config://bad" && !willing.load(Ordering::Relaxed);
        // Some answers are slower than the next event.
        let slow = Duration::from_millis(u64::from(event.data.ordinal % 3 == 0) * 30);
        (
            if bad {
                StatusCode::UNPROCESSABLE_ENTITY
            } else {
                StatusCode::OK
            },
            slow,
        )
    })
    .await;
    let running = Running::start(
        ledger.store.clone(),
        vec![desired(uid, "rag", &receiver.url)],
    );
    for n in 0..10 {
        ledger.accept("config://bad", JSON, &n.to_string()).await;
        for good in ["config://a", "config://b", "config://c"] {
            ledger.accept(good, JSON, &n.to_string()).await;
        }
    }
    let of = |got: &[receiver::Got], uri: &str| -> Vec<i64> {
        got.iter()
            .filter(|got| got.event.subject == uri)
            .map(|got| got.event.data.ordinal)
            .collect()
    };
    let good = |got: &[receiver::Got]| {
        ["config://a", "config://b", "config://c"]
            .iter()
            .all(|uri| of(got, uri).len() == 10)
    };
    let got = receiver.until(good).await;
    for uri in ["config://a", "config://b", "config://c"] {
        assert_eq!(of(&got, uri), (1..=10).collect::<Vec<_>>(), "{uri}");
    }
    let row = ledger.store.load_index(uid).await.unwrap().unwrap();
    assert_eq!(
        row.acknowledged_position, 0,
        "the oldest event is not confirmed: {row:?}"
    );
    mended.store(true, Ordering::Relaxed);
    until(&ledger.store, uid, |row| row.acknowledged_position == 40).await;
    let bad = of(&receiver.got(), "config://bad");
    let first = bad.iter().take_while(|ordinal| **ordinal == 1).count();
    assert!(first > 1, "it was refused before: {bad:?}");
    assert_eq!(bad[first - 1..], (1..=10).collect::<Vec<_>>());
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn a_dead_index_delays_no_other_and_is_told_everything_when_it_is_back(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let (dead, well, closed) = (
        ledger.index("dead", None, None).await,
        ledger.index("well", None, None).await,
        ledger.index("closed", None, None).await,
    );
    let revived = Arc::new(AtomicBool::new(false));
    let alive = Arc::clone(&revived);
    let silent = Receiver::start(move |_, _| {
        let wait = if alive.load(Ordering::Relaxed) {
            0
        } else {
            60_000
        };
        (StatusCode::OK, Duration::from_millis(wait))
    })
    .await;
    let receiver = Receiver::willing().await;
    let running = Running::start(
        ledger.store.clone(),
        vec![
            desired(dead, "dead", &silent.url),
            desired(well, "well", &receiver.url),
            desired(closed, "closed", "http://127.0.0.1:9/hook"),
        ],
    );
    for n in 0..50 {
        ledger.accept(&format!("config://{n}"), JSON, "1").await;
    }
    until(&ledger.store, well, |row| row.acknowledged_position == 50).await;
    let row = until(&ledger.store, closed, |row| row.attempts > 0).await;
    assert!(
        row.last_error
            .as_deref()
            .is_some_and(|error| error.starts_with("cannot connect")),
        "{row:?}"
    );
    until(&ledger.store, dead, |row| row.attempts > 1).await;
    // Its breaker is open: one probe at a time, not the whole window.
    let before = silent.got().len();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(
        silent.got().len() - before <= 3,
        "{} tries",
        silent.got().len() - before
    );
    revived.store(true, Ordering::Relaxed);
    until(&ledger.store, dead, |row| row.acknowledged_position == 50).await;
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn a_redirect_is_not_followed_and_a_guarded_address_is_not_connected_to(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let (moved, metadata) = (
        ledger.index("moved", None, None).await,
        ledger.index("metadata", None, None).await,
    );
    let receiver = Receiver::start(|_, _| (StatusCode::TEMPORARY_REDIRECT, Duration::ZERO)).await;
    let running = Running::start(
        ledger.store.clone(),
        vec![
            desired(moved, "moved", &receiver.url),
            desired(metadata, "metadata", "http://2852039166/latest"),
        ],
    );
    ledger.accept("config://a", JSON, "1").await;
    let row = until(&ledger.store, moved, |row| row.attempts > 0).await;
    assert!(
        row.last_error
            .as_deref()
            .is_some_and(|error| error.contains("redirects are not followed")),
        "{row:?}"
    );
    until(&ledger.store, metadata, |row| row.attempts > 0).await;
    let text = running.metrics.render().unwrap();
    assert!(
        text.contains(r#"name="metadata",namespace="agents",outcome="egress_refused""#),
        "{text}"
    );
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn two_replicas_tell_an_index_once_and_the_second_takes_over(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    let uid = ledger.index("rag", None, None).await;
    let receiver = Receiver::willing().await;
    let index = desired(uid, "rag", &receiver.url);
    let one = Running::start(ledger.store.clone(), vec![index.clone()]);
    let two = Running::start(Store::with_pool(pool, Uuid::new_v4()), vec![index]);
    for n in 0..20 {
        ledger.accept(&format!("config://{n}"), JSON, "1").await;
    }
    until(&ledger.store, uid, |row| row.acknowledged_position == 20).await;
    assert_eq!(receiver.got().len(), 20);
    one.end().await;
    ledger.accept("config://0", JSON, "2").await;
    receiver.until(|got| got.len() == 21).await;
    two.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn a_broken_listener_costs_a_second_and_no_event(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    let receiver = Receiver::willing().await;
    let running = Running::start(
        ledger.store.clone(),
        vec![desired(uid, "rag", &receiver.url)],
    );
    ledger.accept("config://a", JSON, "1").await;
    receiver.until(|got| got.len() == 1).await;
    ledger
        .sql("select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%' and datname = current_database()")
        .await;
    ledger.accept("config://a", JSON, "2").await;
    receiver.until(|got| got.len() == 2).await;
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn an_index_that_changes_its_url_goes_on_where_it_was_and_one_that_goes_is_told_no_more(
    pool: PgPool,
) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    let (old, new) = (Receiver::willing().await, Receiver::willing().await);
    let running = Running::start(ledger.store.clone(), vec![desired(uid, "rag", &old.url)]);
    let first = ledger.accept("config://a", JSON, "1").await;
    until(&ledger.store, uid, |row| row.acknowledged_position == first).await;
    let indexes = vec![desired(uid, "rag", &new.url)];
    running.desired.send_replace(Arc::new(Desired {
        indexes,
        ..Desired::default()
    }));
    ledger.accept("config://a", JSON, "2").await;
    let got = new.until(|got| !got.is_empty()).await;
    let ordinals: BTreeMap<i64, usize> =
        got.iter().map(|got| (got.event.data.ordinal, 1)).collect();
    assert_eq!(ordinals, BTreeMap::from([(2, 1)]));
    assert_eq!(old.got().len(), 1);
    running.desired.send_replace(Arc::new(Desired::default()));
    for _ in 0..1500 {
        if !running.metrics.render().unwrap().contains(r#"name="rag""#) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        !running.metrics.render().unwrap().contains(r#"name="rag""#),
        "its series outlive it"
    );
    running.end().await;
}

#[sqlx::test(migrations = "./migrations")]
async fn an_index_without_its_key_is_owed_what_happens_meanwhile(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let uid = ledger.index("rag", None, None).await;
    let receiver = Receiver::willing().await;
    let with_key = desired(uid, "rag", &receiver.url);
    let mut without = with_key.clone();
    without.channel = Err("there is no Secret agents/hook".to_owned());
    let running = Running::start(ledger.store.clone(), vec![without]);
    ledger.accept("config://limits", JSON, "1").await;
    let told = until(&ledger.store, uid, |row| row.last_error.is_some()).await;
    assert_eq!(
        told.last_error.as_deref(),
        Some("there is no Secret agents/hook")
    );
    assert_eq!(told.acknowledged_position, 0);
    running.end().await;
    assert!(receiver.got().is_empty());

    let running = Running::start(ledger.store.clone(), vec![with_key]);
    receiver.until(|got| got.len() == 1).await;
    until(&ledger.store, uid, |row| row.last_error.is_none()).await;
    running.end().await;
}
