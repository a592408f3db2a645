//! A small ledger to ask, and the asking.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode, header::CONTENT_TYPE},
};
use fencepost::{
    api::{self, ApiState, Missing, ReadinessChecks},
    metrics::Metrics,
};
use fencepost_ledger::{
    Body as ContentBody, Digest, Entry, Generation, RequestId, ResourceId, Trigger, Verdict,
    content,
};
use fencepost_store::{
    AnswerBody, IndexRow, IssueRead, IssuedRead, Mode, Published, ReadAnswer, ResourceSpec,
    ServerRow, SessionKey, SessionReceipt, Store, SubjectRow, WatchRow,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tower::ServiceExt as _;
use uuid::Uuid;

pub const SERVER: Uuid = Uuid::from_u128(1);
pub const SUBJECT: Uuid = Uuid::from_u128(2);
const WATCH: Uuid = Uuid::from_u128(3);
const INDEX: Uuid = Uuid::from_u128(4);

/// One server, subject, watch and index, and a session that is up.
pub struct Ledger {
    pub pool: PgPool,
    pub state: ApiState,
    pub objects: Published,
    session: SessionKey,
}

/// What the API answered.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

struct Nothing;

impl ReadinessChecks for Nothing {
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>> {
        Box::pin(async { Vec::new() })
    }
}

impl Ledger {
    pub async fn new(pool: PgPool) -> Self {
        let store = Store::with_pool(pool.clone(), Uuid::from_u128(9));
        let objects = Published {
            servers: vec![ServerRow {
                uid: SERVER,
                namespace: "agents".into(),
                name: "config-service".into(),
                address: "http://config-service:8080/mcp".into(),
                protocol: "Auto".into(),
            }],
            subjects: vec![SubjectRow {
                uid: SUBJECT,
                namespace: "agents".into(),
                name: "support-agents".into(),
                anonymous: false,
                revoked: false,
            }],
            watches: vec![WatchRow {
                uid: WATCH,
                namespace: "agents".into(),
                name: "service-limits".into(),
                server_uid: Some(SERVER),
                subject_uid: Some(SUBJECT),
                shown: json!({
                    "server": {"namespace": "agents", "name": "config-service"},
                    "subject": {"namespace": "agents", "name": "support-agents"},
                    "mode": "Auto", "maxStalenessSeconds": 60.0, "pollIntervalSeconds": 30.0,
                    "stage": "Full", "percent": 100, "suspended": false
                }),
                conditions: Vec::new(),
            }],
            indexes: vec![IndexRow {
                uid: INDEX,
                namespace: "agents".into(),
                name: "rag".into(),
                url: "https://rag.agents.svc/hooks/mcp".into(),
                watches: None,
                events: None,
                include_content: false,
                include_supersede: true,
            }],
        };
        store.publish(&objects).await.unwrap();
        let generation = store
            .acquire_lease(SERVER, SUBJECT, Duration::from_mins(1))
            .await
            .unwrap()
            .unwrap();
        let session = SessionKey {
            server: SERVER,
            subject: SUBJECT,
            generation,
        };
        let receipt = SessionReceipt {
            era: "legacy".into(),
            protocol_version: "2025-06-18".into(),
            server_version: "config-service/1.4.2".into(),
            receipt: json!({}),
            digest: [7; 32],
        };
        assert!(store.session_connected(&session, &receipt).await.unwrap());
        let state = ApiState::new(store, Arc::new(Metrics::new().unwrap()), Arc::new(Nothing));
        Self {
            pool,
            state,
            objects,
            session,
        }
    }

    pub fn store(&self) -> &Store {
        &self.state.store
    }

    pub fn router(&self) -> Router {
        api::router(self.state.clone())
    }

    /// A resource that is watched and ACTIVE.
    pub async fn watched(&self, uri: &str) -> ResourceId {
        self.watched_as(uri, Mode::Subscribe, true).await
    }

    pub async fn watched_as(&self, uri: &str, mode: Mode, store_content: bool) -> ResourceId {
        let spec = ResourceSpec {
            uri: uri.into(),
            uri_normal: Some(uri.into()),
            watches: vec!["agents/service-limits".into()],
            mode,
            cohort: true,
            max_staleness: Duration::from_mins(1),
            read_interval: Duration::from_secs(30),
            store_content,
            keep_versions: 10,
        };
        let row = self
            .store()
            .put_resources(&self.session, &[spec])
            .await
            .unwrap()
            .remove(0);
        let generation = self
            .store()
            .open_generations(&self.session, &[row.id])
            .await
            .unwrap()[0]
            .unwrap();
        assert_eq!(
            self.store()
                .activate(&self.session, &[(row.id, generation, mode)])
                .await
                .unwrap(),
            [true]
        );
        row.id
    }

    pub async fn issue(&self, resource: ResourceId, trigger: Trigger) -> (RequestId, IssuedRead) {
        let request = RequestId::new(Uuid::now_v7());
        let generation: i64 = sqlx::query_scalar("select generation from resource where id = $1")
            .bind(resource.get())
            .fetch_one(&self.pool)
            .await
            .unwrap();
        let read = IssueRead {
            request,
            resource,
            generation: Generation::new(generation.unsigned_abs()),
            session: self.session.generation,
            trigger,
        };
        (request, self.store().issue_read(read).await.unwrap())
    }

    pub async fn settle(
        &self,
        resource: ResourceId,
        (request, issued): (RequestId, IssuedRead),
        body: AnswerBody,
    ) -> Verdict {
        let answer = ReadAnswer {
            request,
            resource,
            ordinal: issued.ordinal,
            body,
            reason: None,
            detail: None,
        };
        self.store()
            .accept_resource_version(answer)
            .await
            .unwrap()
            .verdict
    }

    /// Reads a JSON text and has it settled; the ordinal of the read.
    pub async fn read(&self, resource: ResourceId, trigger: Trigger, text: &str) -> u64 {
        let read = self.issue(resource, trigger).await;
        let ordinal = read.1.ordinal.get();
        self.settle(resource, read, json_text(text)).await;
        ordinal
    }

    /// The subject's permission is withdrawn.
    pub async fn revoke(&mut self) {
        self.objects.subjects[0].revoked = true;
        self.state.store.publish(&self.objects).await.unwrap();
    }

    pub async fn sql(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&self.pool).await.unwrap();
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        ask(self.router(), Method::GET, path, headers).await
    }

    /// The JSON of a 200.
    pub async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "{path}: {}",
            String::from_utf8_lossy(&answer.bytes)
        );
        answer.json()
    }

    /// The document of an error; its own status and the answer's must be one.
    pub async fn problem(&self, path: &str) -> Value {
        self.get(path).await.problem()
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub fn problem(&self) -> Value {
        assert_eq!(
            self.header(CONTENT_TYPE.as_str()),
            "application/problem+json"
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["type"].as_str().unwrap().starts_with("/problems/"));
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        problem
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

pub async fn ask(router: Router, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, 16 * 1024 * 1024).await.unwrap().to_vec();
    Answer {
        status: parts.status,
        headers: parts.headers,
        bytes,
    }
}

pub fn digest_of(text: &str) -> Digest {
    let entry = Entry {
        uri: "config://x".into(),
        mime_type: Some("application/json".into()),
        body: ContentBody::Text(text.into()),
    };
    content::digest(&[entry], &[])
}

pub fn json_text(text: &str) -> AnswerBody {
    bytes_of(
        text.as_bytes().to_vec(),
        Some("application/json"),
        digest_of(text),
    )
}

pub fn bytes_of(bytes: Vec<u8>, mime_type: Option<&str>, digest: Digest) -> AnswerBody {
    AnswerBody::Content {
        digest,
        mime_type: mime_type.map(Into::into),
        size: bytes.len() as u64,
        bytes: Some(bytes),
        server_version: "config-service/1.4.2".into(),
    }
}
