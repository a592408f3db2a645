//! One server, one subject, one session, and short ways to drive and look at them.

use std::time::Duration;

use fencepost_ledger::{Digest, Generation, Ordinal, RequestId, ResourceId, Trigger};
use fencepost_store::{
    AnswerBody, IssueError, IssueRead, IssuedRead, Mode, Published, ReadAnswer, ResourceSpec,
    ServerRow, SessionKey, Settled, Store, SubjectRow,
};
use sqlx::PgPool;
use uuid::Uuid;

pub const TTL: Duration = Duration::from_secs(30);

pub struct World {
    pub store: Store,
    pub objects: Published,
    pub session: SessionKey,
}

/// A resource and the generation that watches it.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    pub id: ResourceId,
    pub generation: Generation,
}

/// A read that was issued.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub request: RequestId,
    pub resource: ResourceId,
    pub ordinal: Ordinal,
}

/// The row of a resource, as far as tests compare it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Facts {
    pub subscription: String,
    pub presence: String,
    pub generation: i64,
    pub last_issued_ordinal: i64,
    pub settled_ordinal: i64,
    pub ordinal: i64,
    pub close_ordinal: Option<i64>,
    pub digest: Option<Vec<u8>>,
    pub version_count: i64,
}

impl World {
    pub async fn new(pool: PgPool) -> Self {
        let store = Store::with_pool(pool, Uuid::new_v4());
        let (server, subject) = (Uuid::new_v4(), Uuid::new_v4());
        let objects = Published {
            servers: vec![ServerRow {
                uid: server,
                namespace: "agents".into(),
                name: "docs".into(),
                address: "http://docs/mcp".into(),
                protocol: "Auto".into(),
            }],
            subjects: vec![SubjectRow {
                uid: subject,
                namespace: "agents".into(),
                name: "support".into(),
                anonymous: false,
                revoked: false,
            }],
            ..Published::default()
        };
        store.publish(&objects).await.unwrap();
        let generation = store
            .acquire_lease(server, subject, TTL)
            .await
            .unwrap()
            .unwrap();
        Self {
            store,
            objects,
            session: SessionKey {
                server,
                subject,
                generation,
            },
        }
    }

    pub async fn put(&self, uri: &str) -> ResourceId {
        self.store
            .put_resources(&self.session, &[spec(uri)])
            .await
            .unwrap()[0]
            .id
    }

    pub async fn open(&self, id: ResourceId) -> Option<Generation> {
        self.store
            .open_generations(&self.session, &[id])
            .await
            .unwrap()[0]
    }

    pub async fn activate(&self, id: ResourceId, generation: Generation) -> bool {
        let items = [(id, generation, Mode::Subscribe)];
        self.store.activate(&self.session, &items).await.unwrap()[0]
    }

    /// An ACTIVE resource.
    pub async fn active(&self, uri: &str) -> Watched {
        let id = self.put(uri).await;
        let generation = self.open(id).await.unwrap();
        assert!(self.activate(id, generation).await);
        Watched { id, generation }
    }

    pub async fn try_issue(&self, watched: Watched) -> Result<Read, IssueError> {
        let request = RequestId::new(Uuid::now_v7());
        let issued: IssuedRead = self
            .store
            .issue_read(IssueRead {
                request,
                resource: watched.id,
                generation: watched.generation,
                session: self.session.generation,
                trigger: Trigger::Poll,
            })
            .await?;
        Ok(Read {
            request,
            resource: watched.id,
            ordinal: issued.ordinal,
        })
    }

    pub async fn issue(&self, watched: Watched) -> Read {
        self.try_issue(watched).await.unwrap()
    }

    pub async fn settle(&self, read: Read, body: AnswerBody) -> Settled {
        self.store
            .accept_resource_version(answer(read, body))
            .await
            .unwrap()
    }

    /// Issues and settles.
    pub async fn read(&self, watched: Watched, body: AnswerBody) -> Settled {
        let read = self.issue(watched).await;
        self.settle(read, body).await
    }

    pub async fn close(&self, watched: Watched) -> Option<Ordinal> {
        let items = [(watched.id, watched.generation)];
        self.store.begin_unsubscribe(&items).await.unwrap()[0]
    }

    pub async fn publish_revoked(&mut self, revoked: bool) {
        self.objects.subjects[0].revoked = revoked;
        self.store.publish(&self.objects).await.unwrap();
    }

    /// Another replica on the same database.
    pub fn other_replica(&self) -> Store {
        Store::with_pool(self.store.pool().clone(), Uuid::new_v4())
    }

    pub async fn expire_lease(&self) {
        self.sql("update session_lease set expires_at = now() - interval '1 second'")
            .await;
    }

    pub async fn facts(&self, id: ResourceId) -> Facts {
        sqlx::query_as(
            "select subscription, presence, generation, last_issued_ordinal, settled_ordinal, ordinal,
                 close_ordinal, digest, version_count
             from resource where id = $1",
        )
        .bind(id.get())
        .fetch_one(self.store.pool())
        .await
        .unwrap()
    }

    /// Outcome and reason in the receipt.
    pub async fn receipt(&self, read: Read) -> (Option<String>, Option<String>) {
        sqlx::query_as("select outcome, reason from read where request_id = $1")
            .bind(read.request.get())
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }

    pub async fn sql(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.store.pool()).await.unwrap();
    }
}

pub fn spec(uri: &str) -> ResourceSpec {
    ResourceSpec {
        uri: uri.into(),
        uri_normal: Some(uri.into()),
        watches: vec!["agents/watch".into()],
        mode: Mode::Subscribe,
        cohort: true,
        max_staleness: Duration::ZERO,
        read_interval: Duration::from_secs(30),
        store_content: true,
        keep_versions: 3,
    }
}

pub fn digest(n: u8) -> Digest {
    Digest::new([n; 32])
}

/// Content number `n`.
pub fn content(n: u8) -> AnswerBody {
    AnswerBody::Content {
        digest: digest(n),
        mime_type: Some("text/plain".into()),
        size: 1,
        bytes: Some(vec![n]),
        server_version: "docs/1.0".into(),
    }
}

pub fn answer(read: Read, body: AnswerBody) -> ReadAnswer {
    ReadAnswer {
        request: read.request,
        resource: read.resource,
        ordinal: read.ordinal,
        body,
        reason: None,
        detail: None,
    }
}
