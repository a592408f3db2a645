//! A namespace of a real cluster, a ledger, and any number of operators that watch that namespace with the rights of their roles.

use std::{ops::Deref, path::PathBuf, time::Duration};

use fencepost_tests::{
    api::Api,
    binary::{self, Fencepost},
    cluster::{ApiServer, Namespace},
    ledger,
    postgres::Database,
    wait,
};
use serde_json::Value;

/// What must come true soon does so within this, also on a busy machine.
pub const SOON: Duration = Duration::from_mins(1);

/// A cluster of its own, or the one that tests share.
pub enum Cluster {
    Shared(&'static ApiServer),
    Own(Box<ApiServer>),
}

impl Cluster {
    pub fn get(&self) -> &ApiServer {
        match self {
            Self::Shared(cluster) => cluster,
            Self::Own(cluster) => cluster,
        }
    }

    /// # Panics
    ///
    /// When it is shared.
    pub fn own(&mut self) -> &mut ApiServer {
        match self {
            Self::Shared(_) => panic!("a shared cluster is nobody's to stop"),
            Self::Own(cluster) => cluster,
        }
    }
}

pub struct World {
    pub cluster: Cluster,
    pub namespace: Namespace,
    pub database: Database,
    kubeconfig: PathBuf,
}

/// One replica.
pub struct Operator {
    pub process: Fencepost,
    api: Api,
}

impl Deref for Operator {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl World {
    /// On the shared cluster, with this version's CRDs.
    pub async fn start(prefix: &str) -> Self {
        let cluster = ApiServer::shared().await;
        cluster.install_crds().await;
        Self::on(Cluster::Shared(cluster), prefix).await
    }

    /// On a cluster of its own, without CRDs: for what stops the API server or takes definitions away.
    pub async fn alone(prefix: &str) -> Self {
        Self::on(Cluster::Own(Box::new(ApiServer::start().await)), prefix).await
    }

    async fn on(cluster: Cluster, prefix: &str) -> Self {
        let namespace = cluster.get().namespace(prefix).await;
        let database = Database::fresh().await;
        let migrated = binary::run(["migrate", "--database-url", &database.url]);
        assert!(migrated.status.success(), "{migrated:?}");
        let name = namespace.name();
        namespace
            .kubectl(["create", "serviceaccount", "fencepost"])
            .await
            .ok();
        namespace.apply(&roles(name)).await.ok();
        for role in ["fencepost", "fencepost-leader"] {
            let account = format!("--serviceaccount={name}:fencepost");
            let role_flag = format!("--role={role}");
            namespace
                .kubectl(["create", "rolebinding", role, &role_flag, &account])
                .await
                .ok();
        }
        let kubeconfig = cluster.get().kubeconfig_for(name, "fencepost").await;
        Self {
            cluster,
            namespace,
            database,
            kubeconfig,
        }
    }

    /// A replica that serves, whether or not it is ready.
    pub async fn operator(&self, identity: &str) -> Operator {
        self.operator_with(identity, &[]).await
    }

    pub async fn operator_with(&self, identity: &str, more: &[&str]) -> Operator {
        let name = self.namespace.name();
        let mut args = vec![
            "operator",
            "--database-url",
            &self.database.url,
            "--listen",
            "127.0.0.1:0",
            "--namespace",
            name,
            "--leader-election-namespace",
            name,
            "--identity",
            identity,
            "--allow-loopback",
        ];
        if !more.contains(&"--access") {
            args.extend(["--access", "open"]);
        }
        args.extend(more);
        let mut process = Fencepost::start_with(args, |command| {
            command.env("KUBECONFIG", &self.kubeconfig);
            command.env("RUST_LOG", "info,fencepost=debug");
        });
        let base = process.base_url().await;
        Operator {
            process,
            api: Api::new(base),
        }
    }

    /// Lets the operator ask for reviews, as the chart does; the name of the binding, which is the caller's to delete.
    pub async fn allow_reviews(&self) -> String {
        let name = self.namespace.name();
        let binding = format!("{name}-reviews");
        let cluster = self.cluster.get();
        let printed = binary::run(["rbac", "--namespace", name, "--own-namespace", name]);
        let roles = String::from_utf8(printed.stdout).unwrap();
        cluster.apply(&roles).await.ok();
        let account = format!("--serviceaccount={name}:fencepost");
        cluster
            .kubectl([
                "create",
                "clusterrolebinding",
                &binding,
                "--clusterrole=fencepost",
                &account,
            ])
            .await
            .ok();
        binding
    }

    /// A replica that watches another namespace too, with the same role there.
    pub async fn watching_also(&self, other: &Namespace) -> Operator {
        let (name, there) = (self.namespace.name(), other.name());
        other.apply(&roles(there)).await.ok();
        let account = format!("--serviceaccount={name}:fencepost");
        other
            .kubectl([
                "create",
                "rolebinding",
                "fencepost",
                "--role=fencepost",
                &account,
            ])
            .await
            .ok();
        self.operator_with("a", &["--namespace", there]).await
    }

    /// A replica that is ready.
    pub async fn ready(&self, identity: &str) -> Operator {
        let operator = self.operator(identity).await;
        operator.is_ready().await;
        operator
    }

    pub async fn apply(&self, manifests: &str) {
        self.namespace.apply(manifests).await.ok();
    }

    /// kubectl in the namespace; what it wrote.
    pub async fn kubectl(&self, args: &[&str]) -> String {
        self.namespace.kubectl(args).await.ok()
    }

    /// `kubectl wait`, as the docs tell people to.
    pub async fn wait_for(&self, condition: &str, object: &str) {
        let condition = format!("--for={condition}");
        self.kubectl(&["wait", &condition, object, "--timeout=60s"])
            .await;
    }

    pub async fn object(&self, object: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", object, "-o", "json"]).await).unwrap()
    }

    /// The object's condition, once it is as wanted.
    pub async fn condition(
        &self,
        object: &str,
        kind: &str,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        self.condition_within(SOON, object, kind, wanted).await
    }

    pub async fn condition_within(
        &self,
        limit: Duration,
        object: &str,
        kind: &str,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let what = format!("condition {kind} of {object}");
        wait::until(&what, limit, async || {
            let object = self.object(object).await;
            let found = object["status"]["conditions"]
                .as_array()
                .and_then(|conditions| conditions.iter().find(|c| c["type"] == kind))
                .cloned();
            if wanted(found.as_ref()) {
                Ok(found)
            } else {
                Err(object["status"].clone())
            }
        })
        .await
    }

    /// Waits for `Ready` with that reason.
    pub async fn ready_reason(&self, object: &str, reason: &str) -> Value {
        self.condition(object, "Ready", |ready| {
            ready.is_some_and(|ready| ready["reason"] == reason)
        })
        .await
        .unwrap()
    }

    pub async fn count(&self, query: &'static str) -> i64 {
        ledger::count(&self.database.url, query).await
    }

    /// Waits until the ledger has that number.
    pub async fn counts(&self, what: &str, query: &'static str, wanted: i64) {
        wait::until_value(
            what,
            SOON,
            async || self.count(query).await,
            |seen| *seen == wanted,
        )
        .await;
    }
}

impl Operator {
    pub async fn is_ready(&self) {
        wait::until("ready", SOON, async || {
            let answer = self.answer("/readyz").await;
            if answer.status().is_success() {
                Ok(())
            } else {
                Err(answer.text().await.unwrap_or_default())
            }
        })
        .await;
    }

    /// Waits until `/readyz` names something whose text holds `part`.
    pub async fn misses(&self, part: &str) -> String {
        wait::until(&format!("missing: {part}"), SOON, async || {
            let answer = self.answer("/readyz").await;
            let status = answer.status();
            let body = answer.text().await.unwrap_or_default();
            if status == 503 && body.contains(part) {
                Ok(body)
            } else {
                Err((status, body))
            }
        })
        .await
    }
}

/// What `fencepost rbac` prints for that namespace. `--access open`: nothing cluster-wide.
fn roles(namespace: &str) -> String {
    let printed = binary::run([
        "rbac",
        "--namespace",
        namespace,
        "--own-namespace",
        namespace,
        "--access-open",
    ]);
    assert!(printed.status.success(), "{printed:?}");
    String::from_utf8(printed.stdout).unwrap()
}

/// An `MCPServer` named `server`.
pub fn server(url: &str) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server}}\n\
         spec: {{url: \"{url}\", limits: {{requestTimeout: 2s, requestsPerSecond: 1000}}}}\n---\n"
    )
}

/// A `WatchedResource` of that server; `refresh` as a flow mapping.
pub fn watch(name: &str, uris: &[&str], refresh: &str) -> String {
    let uris: Vec<String> = uris.iter().map(|uri| format!("{uri:?}")).collect();
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: {name}}}\n\
         spec: {{serverRef: {{name: server}}, uris: [{}], refresh: {refresh}}}\n---\n",
        uris.join(", ")
    )
}

/// Bounds that no test waits for: what happens is the notifications' doing.
pub const LAZY: &str = "{mode: Auto, maxStaleness: 10m, pollInterval: 5m}";
