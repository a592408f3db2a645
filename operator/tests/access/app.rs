//! The whole surface behind the gate, and asking it.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Method, Request},
};
use fencepost::{
    access::{Access, KubernetesAccess, controlled},
    api::{self, ApiState, Missing, ReadinessChecks},
    metrics::Metrics,
    web,
};
use fencepost_store::Store;
use sqlx::postgres::PgPoolOptions;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;
use tracing::instrument::WithSubscriber as _;
use uuid::Uuid;

use crate::{
    cluster::{ADMIN, Cluster, NOBODY},
    ledger::Answer,
};

pub struct App {
    router: Router,
    pub cluster: Cluster,
}

/// Where requests are answered. A page of an unoptimised build needs more stack than a test's thread has; the binary's
/// threads have the same.
static SERVER: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(16 * 1024 * 1024)
        .enable_all()
        .build()
        .unwrap()
});

struct Ready;

impl ReadinessChecks for Ready {
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>> {
        Box::pin(async { Vec::new() })
    }
}

fn surface(state: &ApiState) -> Router {
    api::router(state.clone()).merge(web::router(state.source()))
}

/// State whose database is never there; metrics, `OpenAPI` and probes need none.
fn state_without_database() -> ApiState {
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy("postgres://nobody@127.0.0.1:1/none")
        .unwrap();
    let store = Store::with_pool(pool, Uuid::from_u128(9));
    ApiState::new(store, Arc::new(Metrics::new().unwrap()), Arc::new(Ready))
}

impl App {
    pub fn new(state: &ApiState, namespaces: &[&str]) -> Self {
        let cluster = Cluster::new();
        let namespaces = namespaces.iter().map(ToString::to_string).collect();
        let access = Access::Kubernetes(KubernetesAccess::new(cluster.client(), namespaces));
        Self {
            router: controlled(surface(state), access, &state.queries),
            cluster,
        }
    }

    pub fn without_database() -> Self {
        Self::new(&state_without_database(), &[])
    }

    pub fn open() -> Self {
        let state = state_without_database();
        Self {
            router: controlled(surface(&state), Access::Open, &state.queries),
            cluster: Cluster::new(),
        }
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, headers, String::new()).await
    }

    /// With the token in the header, as programs ask.
    pub async fn get_as(&self, token: &str, path: &str) -> Answer {
        self.get(path, &[("authorization", &format!("Bearer {token}"))])
            .await
    }

    pub async fn form(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let headers: Vec<_> = headers.iter().copied().chain([kind]).collect();
        self.send(Method::POST, path, &headers, form.to_owned())
            .await
    }

    /// Whatever is answered, no token is in it; a cookie that a login sets is for [`Answer`]'s reader to look at.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let answer = self.router.clone().oneshot(request);
        let response = SERVER.spawn(answer.with_current_subscriber()).await;
        let (parts, body) = response.unwrap().unwrap().into_parts();
        let bytes = to_bytes(body, 16 << 20).await.unwrap().to_vec();
        let text = String::from_utf8_lossy(&bytes);
        for token in [ADMIN, NOBODY] {
            assert!(!text.contains(token), "{path} answers a token");
            for (name, value) in &parts.headers {
                let shown = value.to_str().unwrap().contains(token);
                assert!(!shown || name == "set-cookie", "{path}: {name}");
            }
        }
        Answer {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    }
}
