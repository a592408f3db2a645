//! A ledger with one server and one subject, into which tests write versions.

use std::{collections::HashMap, time::Duration};

use fencepost_ledger::{
    Body, Entry, Generation, RequestId, ResourceId, Trigger, Verdict, content::digest,
};
use fencepost_store::{
    AnswerBody, IndexRow, IssueRead, Mode, Published, ReadAnswer, ResourceSpec, ServerRow,
    SessionKey, Store, SubjectRow,
};
use sqlx::PgPool;
use uuid::Uuid;

pub struct Ledger {
    pub store: Store,
    pub objects: Published,
    session: SessionKey,
    resources: HashMap<String, (ResourceId, Generation)>,
}

impl Ledger {
    pub async fn new(pool: PgPool) -> Self {
        let store = Store::with_pool(pool, Uuid::new_v4());
        let (server, subject) = (Uuid::new_v4(), Uuid::new_v4());
        let objects = Published {
            servers: vec![ServerRow {
                uid: server,
                namespace: "agents".into(),
                name: "config-service".into(),
                address: "http://config-service/mcp".into(),
                protocol: "Auto".into(),
            }],
            subjects: vec![SubjectRow {
                uid: subject,
                namespace: "agents".into(),
                name: "support-agents".into(),
                anonymous: false,
                revoked: false,
            }],
            ..Published::default()
        };
        store.publish(&objects).await.unwrap();
        let generation = store
            .acquire_lease(server, subject, Duration::from_mins(10))
            .await
            .unwrap()
            .unwrap();
        let session = SessionKey {
            server,
            subject,
            generation,
        };
        Self {
            store,
            objects,
            session,
            resources: HashMap::new(),
        }
    }

    /// Declares an index and answers its uid.
    pub async fn index(
        &mut self,
        name: &str,
        watches: Option<&[&str]>,
        events: Option<&[&str]>,
    ) -> Uuid {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let uid = Uuid::new_v4();
        self.objects.indexes.push(IndexRow {
            uid,
            namespace: "agents".into(),
            name: name.into(),
            url: "http://index/hook".into(),
            watches: watches.map(owned),
            events: events.map(owned),
            include_content: false,
            include_supersede: true,
        });
        self.store.publish(&self.objects).await.unwrap();
        uid
    }

    pub async fn set_revoked(&mut self, revoked: bool) {
        self.objects.subjects[0].revoked = revoked;
        self.store.publish(&self.objects).await.unwrap();
    }

    /// Watches a URI as `agents/<watch>`, keeping `keep` contents.
    pub async fn watch(&mut self, uri: &str, watch: &str, keep: u32) -> ResourceId {
        let spec = ResourceSpec {
            uri: uri.into(),
            uri_normal: None,
            watches: vec![format!("agents/{watch}")],
            mode: Mode::Poll,
            cohort: true,
            max_staleness: Duration::from_mins(1),
            read_interval: Duration::from_secs(30),
            store_content: true,
            keep_versions: keep,
        };
        let id = self
            .store
            .put_resources(&self.session, &[spec])
            .await
            .unwrap()[0]
            .id;
        let generation = self
            .store
            .open_generations(&self.session, &[id])
            .await
            .unwrap()[0]
            .unwrap();
        assert!(
            self.store
                .activate(&self.session, &[(id, generation, Mode::Poll)])
                .await
                .unwrap()[0]
        );
        self.resources.insert(uri.to_owned(), (id, generation));
        id
    }

    /// Accepts `text` as the next version of `uri` and answers the position of its event.
    pub async fn accept(&mut self, uri: &str, mime: &str, text: &str) -> i64 {
        if !self.resources.contains_key(uri) {
            self.watch(uri, "limits", 10).await;
        }
        let verdict = self.read(uri, mime, text).await;
        assert_eq!(verdict, Verdict::Accepted);
        self.store.outbox_head().await.unwrap()
    }

    pub async fn read(&self, uri: &str, mime: &str, text: &str) -> Verdict {
        let (resource, generation) = self.resources[uri];
        let request = RequestId::new(Uuid::now_v7());
        let read = IssueRead {
            request,
            resource,
            generation,
            session: self.session.generation,
            trigger: Trigger::Poll,
        };
        let issued = self.store.issue_read(read).await.unwrap();
        let entry = Entry {
            uri: uri.into(),
            mime_type: Some(mime.into()),
            body: Body::Text(text.into()),
        };
        let body = AnswerBody::Content {
            digest: digest(&[entry], &[]),
            mime_type: Some(mime.into()),
            size: text.len() as u64,
            bytes: Some(text.as_bytes().to_vec()),
            server_version: "config-service/1.4.2".into(),
        };
        let answer = ReadAnswer {
            request,
            resource,
            ordinal: issued.ordinal,
            body,
            reason: None,
            detail: None,
        };
        self.store
            .accept_resource_version(answer)
            .await
            .unwrap()
            .verdict
    }

    pub async fn sql(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.store.pool()).await.unwrap();
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }
}

pub const JSON: &str = "application/json";
