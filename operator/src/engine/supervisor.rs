//! Keeps one session task for each (server, subject) that the manifests want, and no other.
//!
//! Desired state comes in; it is published to the ledger before any session acts on it. A server's
//! address or a subject's credential that changes means a new session generation.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fencepost_ledger::backoff::Backoff;
use fencepost_mcp::Era;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Context, credentials::SubjectCredential, limits::ServerLimits, session::SessionTask};
use crate::{
    desired::{Credential, Desired, DesiredResource, DesiredServer, DesiredSubject},
    metrics::Name,
    publish::{self, Authority, ledger_uid},
};

/// Between tries to publish while the database is away.
const PUBLISH_AGAIN: Backoff = Backoff {
    first: Duration::from_millis(250),
    cap: Duration::from_secs(10),
};
/// How long sessions may take to close when the process ends.
const DRAIN: Duration = Duration::from_secs(15);

/// What one session watches now.
#[derive(Default)]
pub struct SessionSpec {
    pub resources: Vec<DesiredResource>,
}

/// What the sessions of one server share.
pub struct ServerRuntime {
    pub uid: Uuid,
    /// `namespace/name`, for labels and logs.
    pub name: Name,
    pub limits: ServerLimits,
    pub desired: DesiredServer,
    era: Mutex<Option<Era>>,
}

impl ServerRuntime {
    fn new(desired: DesiredServer) -> Self {
        Self {
            uid: ledger_uid(&desired.key.uid),
            name: Name::new(&desired.key.namespace, &desired.key.name),
            limits: ServerLimits::new(
                desired.limits.max_in_flight,
                desired.limits.requests_per_second,
            ),
            desired,
            era: Mutex::new(None),
        }
    }

    pub fn remembered_era(&self) -> Option<Era> {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember_era(&self, era: Option<Era>) {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = era;
    }
}

struct Running {
    spec: watch::Sender<Arc<SessionSpec>>,
    stop: CancellationToken,
    server: Arc<ServerRuntime>,
    credential: Option<Credential>,
    task: JoinHandle<()>,
}

/// What ends a publication that cannot be done yet.
struct Waits<'a> {
    desired: &'a mut watch::Receiver<Arc<Desired>>,
    authority: &'a mut watch::Receiver<Authority>,
    shutdown: &'a CancellationToken,
}

/// Runs the session tasks.
pub struct Supervisor {
    context: Context,
    servers: HashMap<Uuid, Arc<ServerRuntime>>,
    sessions: HashMap<(Uuid, Uuid), Running>,
    /// Sessions that are closing; the next of the same (server, subject) waits for its end.
    closing: HashMap<(Uuid, Uuid), JoinHandle<()>>,
}

impl Supervisor {
    pub fn new(context: Context) -> Self {
        Self {
            context,
            servers: HashMap::new(),
            sessions: HashMap::new(),
            closing: HashMap::new(),
        }
    }

    /// Follows `desired` until `shutdown`, then closes every session in order. `published` says what was
    /// acted on last: published by this replica, or left to the one that publishes.
    pub async fn run(
        mut self,
        mut desired: watch::Receiver<Arc<Desired>>,
        mut authority: watch::Receiver<Authority>,
        published: watch::Sender<Option<Arc<Desired>>>,
        shutdown: CancellationToken,
    ) {
        loop {
            // The authority first: what is desired is then at least as new as what it was given for.
            let right = *authority.borrow_and_update();
            let now = Arc::clone(&desired.borrow_and_update());
            let waits = Waits {
                desired: &mut desired,
                authority: &mut authority,
                shutdown: &shutdown,
            };
            if self.publish(&now, right, waits).await {
                self.reconcile(&now);
                published.send_replace(Some(now));
            }
            tokio::select! {
                changed = desired.changed() => if changed.is_err() { break },
                changed = authority.changed() => if changed.is_err() { break },
                () = shutdown.cancelled() => break,
            }
        }
        self.drain().await;
    }

    /// Publishes to the ledger, if that is this replica's to do, however long the database is away. False:
    /// something newer is wanted.
    async fn publish(&self, now: &Desired, right: Authority, waits: Waits<'_>) -> bool {
        let rows = publish::rows(now);
        let mut attempt = 0;
        loop {
            let done = match right {
                Authority::Standby => return true,
                Authority::Sole => self.context.store.publish(&rows).await,
                Authority::Claimed(epoch) => {
                    self.context
                        .store
                        .publish_as(epoch, &rows)
                        .await
                        .map(|ours| {
                            if !ours {
                                tracing::warn!(
                                    "another replica publishes by now; this one leaves it to that"
                                );
                            }
                        })
                }
            };
            let Err(error) = done else {
                return true;
            };
            attempt += 1;
            tracing::warn!(
                category = error.category(),
                error = %crate::sentence::chain(&error),
                attempt,
                "the manifests were not published to the ledger"
            );
            tokio::select! {
                () = tokio::time::sleep(PUBLISH_AGAIN.delay(attempt, rand::random())) => {}
                _ = waits.desired.changed() => {
                    waits.desired.mark_changed();
                    return false;
                }
                _ = waits.authority.changed() => {
                    waits.authority.mark_changed();
                    return false;
                }
                () = waits.shutdown.cancelled() => return false,
            }
        }
    }

    fn reconcile(&mut self, now: &Desired) {
        let subjects: HashMap<Uuid, &DesiredSubject> = now
            .subjects
            .iter()
            .map(|s| (ledger_uid(&s.key.uid), s))
            .collect();
        self.servers
            .retain(|uid, _| now.servers.iter().any(|s| ledger_uid(&s.key.uid) == *uid));
        for server in &now.servers {
            let uid = ledger_uid(&server.key.uid);
            let same = self
                .servers
                .get(&uid)
                .is_some_and(|s| s.desired.digest == server.digest);
            if !same {
                let runtime = Arc::new(ServerRuntime::new(server.clone()));
                self.servers.insert(uid, runtime);
            }
        }
        let mut wanted = HashMap::new();
        for session in &now.sessions {
            let key = (
                ledger_uid(&session.server.uid),
                ledger_uid(&session.subject.uid),
            );
            if let (Some(server), Some(subject)) = (self.servers.get(&key.0), subjects.get(&key.1))
            {
                wanted.insert(key, (Arc::clone(server), *subject, session));
            }
        }
        let outdated: Vec<_> = self
            .sessions
            .iter()
            .filter(|(key, running)| {
                wanted.get(*key).is_none_or(|(server, subject, _)| {
                    !Arc::ptr_eq(server, &running.server)
                        || subject.credential != running.credential
                })
            })
            .map(|(key, _)| *key)
            .collect();
        for key in outdated {
            if !wanted.contains_key(&key)
                && let Some(running) = self.sessions.get(&key)
            {
                running.spec.send_replace(Arc::default());
            }
            self.stop(key);
        }
        for (key, (server, subject, session)) in wanted {
            let spec = Arc::new(SessionSpec {
                resources: session.resources.clone(),
            });
            match self.sessions.get(&key) {
                Some(running) => {
                    running.spec.send_replace(spec);
                }
                None => self.start(key, server, subject, spec),
            }
        }
        self.closing.retain(|_, task| !task.is_finished());
        let names: Vec<_> = self.servers.values().map(|s| s.name.clone()).collect();
        self.context.metrics.retain_servers(&names);
    }

    fn start(
        &mut self,
        key: (Uuid, Uuid),
        server: Arc<ServerRuntime>,
        subject: &DesiredSubject,
        spec: Arc<SessionSpec>,
    ) {
        let (sender, receiver) = watch::channel(spec);
        let stop = CancellationToken::new();
        let credential = Arc::new(SubjectCredential::default());
        credential.set(subject.credential.as_ref());
        let task = SessionTask {
            context: self.context.clone(),
            server: Arc::clone(&server),
            subject: subject.key.clone(),
            subject_uid: key.1,
            credential,
            spec: receiver,
            stop: stop.clone(),
        };
        let before = self.closing.remove(&key);
        let run = async move {
            if let Some(before) = before {
                // Its generations are closed in order before the next ones open.
                let _ = before.await;
            }
            task.run().await;
        };
        let running = Running {
            spec: sender,
            stop,
            server,
            credential: subject.credential.clone(),
            task: tokio::spawn(run),
        };
        self.sessions.insert(key, running);
    }

    fn stop(&mut self, key: (Uuid, Uuid)) {
        if let Some(running) = self.sessions.remove(&key) {
            running.stop.cancel();
            self.closing.insert(key, running.task);
        }
    }

    async fn drain(mut self) {
        let keys: Vec<_> = self.sessions.keys().copied().collect();
        for key in keys {
            self.stop(key);
        }
        let closing = futures::future::join_all(self.closing.into_values());
        if tokio::time::timeout(DRAIN, closing).await.is_err() {
            tracing::warn!(
                "some sessions did not close in time; the next owner of their lease closes them"
            );
        }
    }
}
