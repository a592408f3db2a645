//! The life of one (server, subject): lease, connect, run, end, and again after a backoff.
//!
//! Each turn is a session generation of its own. A session that ends closes its generations in the
//! ledger before the next one begins; nothing is re-initialized in silence.

use std::{sync::Arc, time::Duration};

use fencepost_ledger::{SessionGeneration, backoff::Backoff};
use fencepost_mcp::{
    ClientLimits, ConnectConfig, ConnectError, Events, Protocol, RequestError, Session, Transport,
};
use fencepost_store::{ServerStatus, SessionKey, SessionReceipt};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use super::{
    Context,
    connected::{Connected, EndCause},
    credentials::SubjectCredential,
    lease::LEASE_TTL,
    supervisor::{ServerRuntime, SessionSpec},
    untrusted,
};
use crate::desired::{Endpoint, ObjectKey};

/// Between tries to connect, and between sessions that do not last.
const CONNECT_AGAIN: Backoff = Backoff {
    first: Duration::from_millis(250),
    cap: Duration::from_secs(15),
};
/// A session that lasted so long starts the backoff anew.
const LASTED: Duration = Duration::from_mins(1);
/// How long a client may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
/// How long an answer to "later" is believed.
const LONGEST_LATER: Duration = Duration::from_mins(10);

/// One (server, subject) and what it is to watch.
pub struct SessionTask {
    pub context: Context,
    pub server: Arc<ServerRuntime>,
    pub subject: ObjectKey,
    pub subject_uid: Uuid,
    pub credential: Arc<SubjectCredential>,
    pub spec: watch::Receiver<Arc<SessionSpec>>,
    /// Cancelled when the manifests no longer want it, or the process ends.
    pub stop: CancellationToken,
}

impl SessionTask {
    pub async fn run(self) {
        let mut attempt = 0;
        while !self.stop.is_cancelled() {
            let began = Instant::now();
            let Some(generation) = self.acquire().await else {
                continue;
            };
            let key = SessionKey {
                server: self.server.uid,
                subject: self.subject_uid,
                generation,
            };
            let cause = self.one_session(key, &mut attempt).await;
            self.end(key, cause).await;
            if cause == EndCause::Stopped {
                return;
            }
            if began.elapsed() > LASTED {
                attempt = 0;
            }
            attempt += 1;
            let pause = CONNECT_AGAIN.delay(attempt, rand::random());
            tracing::info!(
                server = %self.server.name,
                subject = %self.subject.name,
                generation = generation.get(),
                cause = cause.as_str(),
                again_in_ms = pause.as_millis(),
                "a session ended"
            );
            self.rest(pause).await;
        }
    }

    /// Waits, unless the session is no longer wanted.
    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// The next session generation, or none for now: another replica has the lease, or no database.
    async fn acquire(&self) -> Option<SessionGeneration> {
        let store = &self.context.store;
        match store
            .acquire_lease(self.server.uid, self.subject_uid, LEASE_TTL)
            .await
        {
            Ok(Some(generation)) => Some(generation),
            Ok(None) => {
                self.rest(LEASE_TTL / 3).await;
                None
            }
            Err(error) => {
                tracing::warn!(
                    server = %self.server.name,
                    category = error.category(),
                    "no lease: the database cannot be asked"
                );
                self.rest(CONNECT_AGAIN.delay(4, rand::random())).await;
                None
            }
        }
    }

    /// Connects, however often that takes, and serves until the session is over.
    async fn one_session(&self, key: SessionKey, attempt: &mut u32) -> EndCause {
        let lease = self.context.leases.hold(key);
        let (client, events) = loop {
            let connecting = tokio::select! {
                connected = self.connect() => connected,
                () = self.stop.cancelled() => return EndCause::Stopped,
                () = lease.lost.cancelled() => return EndCause::LeaseLost,
            };
            match connecting {
                Ok(connected) => break connected,
                Err(error) => {
                    *attempt += 1;
                    let pause = self.failed(&error, *attempt).await;
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.stop.cancelled() => return EndCause::Stopped,
                        () = lease.lost.cancelled() => return EndCause::LeaseLost,
                    }
                }
            }
        };
        self.server.remember_era(Some(client.receipt().era));
        match self.record(key, &client).await {
            Some(cause) => {
                client.close(GOODBYE).await;
                return cause;
            }
            None => self
                .context
                .metrics
                .session_opened(client.receipt().era.as_str()),
        }
        let connected = Connected::new(
            self.context.clone(),
            key,
            Arc::clone(&self.server),
            client.clone(),
        );
        let lost = lease.lost.clone();
        let cause = connected
            .run(events, self.spec.clone(), lost, self.stop.clone())
            .await;
        self.context
            .metrics
            .session_closed(client.receipt().era.as_str());
        client.close(GOODBYE).await;
        cause
    }

    async fn connect(&self) -> Result<(Session, Events), ConnectError> {
        let desired = &self.server.desired;
        let (transport, allow_stdio) = match &desired.endpoint {
            Endpoint::Http { url, ca_pem } => (
                Transport::Http {
                    url: Url::parse(url).map_err(|error| ConnectError::Unreachable {
                        detail: format!("its url: {error}"),
                    })?,
                    ca_pem: ca_pem.clone(),
                },
                false,
            ),
            Endpoint::Stdio { command, args, env } => (
                Transport::Stdio {
                    command: command.clone(),
                    args: args.clone(),
                    env: env
                        .iter()
                        .map(|(name, value)| {
                            (
                                name.clone(),
                                String::from_utf8_lossy(value.expose()).into_owned(),
                            )
                        })
                        .collect(),
                },
                self.context.allow_stdio,
            ),
        };
        let defaults = ClientLimits::default();
        let max_content_bytes =
            usize::try_from(desired.limits.max_content_bytes).unwrap_or(usize::MAX);
        let limits = ClientLimits {
            request_timeout: desired.limits.request_timeout.get(),
            max_content_bytes,
            // Base64 and JSON escapes may double the content, as the default allows for.
            max_message_bytes: defaults
                .max_message_bytes
                .max(max_content_bytes.saturating_mul(2)),
            ..defaults
        };
        fencepost_mcp::connect(ConnectConfig {
            transport,
            protocol: match desired.protocol {
                fencepost_crds::Protocol::Auto => Protocol::Auto,
                fencepost_crds::Protocol::Legacy => Protocol::Legacy,
                fencepost_crds::Protocol::Modern => Protocol::Modern,
            },
            remembered_era: self.server.remembered_era(),
            credentials: Arc::clone(&self.credential) as Arc<_>,
            egress: self.context.egress.clone(),
            limits,
            allow_stdio,
        })
        .await
    }

    /// Says why there is no session; returns the pause before the next try.
    async fn failed(&self, error: &ConnectError, attempt: u32) -> Duration {
        // What it spoke last time may be what is wrong: the next try finds out anew.
        self.server.remember_era(None);
        let asked = match error.request_error() {
            Some(RequestError::RateLimited { retry_after }) => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        // A zero, or a date that has passed, is no leave to come back at once.
        let pause = CONNECT_AGAIN
            .delay(attempt, rand::random())
            .max(asked.min(LONGEST_LATER));
        let message = untrusted::text(&crate::sentence::chain(error), untrusted::MAX_DETAIL_CHARS);
        tracing::warn!(
            server = %self.server.name,
            subject = %self.subject.name,
            reason = error.reason(),
            %message,
            again_in_ms = pause.as_millis(),
            "no session"
        );
        self.publish(ServerStatus::Unwell {
            reason: error.reason().to_owned(),
            message,
        })
        .await;
        pause
    }

    async fn publish(&self, status: ServerStatus) {
        let uid = self.server.uid;
        if let Err(error) = self.context.store.set_server_status(uid, status).await {
            tracing::warn!(
                category = error.category(),
                "a server's status was not written"
            );
        }
        self.context
            .live
            .server(&self.server.name.namespace, &self.server.name.name);
    }

    /// Writes the capability receipt. A cause when the session must not begin.
    async fn record(&self, key: SessionKey, client: &Session) -> Option<EndCause> {
        let receipt = client.receipt();
        let word = |said: &str| untrusted::text(said, untrusted::MAX_WORD_CHARS);
        let (name, version) = (word(&receipt.server_name), word(&receipt.server_version));
        let protocol_version = word(&receipt.protocol_version);
        let capabilities = untrusted::declaration(&receipt.capabilities);
        let row = SessionReceipt {
            era: receipt.era.as_str().to_owned(),
            protocol_version: protocol_version.clone(),
            server_version: format!("{name}/{version}"),
            receipt: serde_json::json!({
                "era": receipt.era.as_str(),
                "protocolVersion": protocol_version,
                "serverName": name,
                "serverVersion": version,
                "capabilities": capabilities,
                "extensions": untrusted::declaration(&receipt.extensions),
            }),
            digest: receipt.digest,
        };
        match self.context.store.session_connected(&key, &row).await {
            Ok(true) => {}
            Ok(false) => return Some(EndCause::LeaseLost),
            Err(_) => return Some(EndCause::DatabaseAway),
        }
        self.publish(ServerStatus::Well {
            era: row.era,
            protocol_version: row.protocol_version,
            server_name: name,
            server_version: version,
            capabilities,
            subscribe: receipt.subscribe,
        })
        .await;
        None
    }

    /// Ends the session in the ledger; a database that is away is asked again until the lease is
    /// gone anyway, after which whoever takes the lease ends it.
    async fn end(&self, key: SessionKey, cause: EndCause) {
        let deadline = Instant::now() + LEASE_TTL;
        loop {
            match self.context.store.end_session(&key, cause.as_str()).await {
                Ok(end) => {
                    tracing::debug!(
                        closed = end.closed,
                        given_up = end.given_up,
                        "session ended"
                    );
                    break;
                }
                Err(error) if Instant::now() < deadline => {
                    tracing::warn!(
                        category = error.category(),
                        "a session's end was not written"
                    );
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Err(_) => break,
            }
        }
        if let EndCause::Server(_) | EndCause::Unauthorized = cause {
            self.publish(ServerStatus::Unwell {
                reason: cause.as_str().to_owned(),
                message: "the session ended; another is being opened".to_owned(),
            })
            .await;
        }
    }
}
