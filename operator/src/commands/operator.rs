//! `fencepost operator`: the manifests of a cluster, any number of replicas.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use fencepost_crds::Duration as WrittenDuration;
use fencepost_mcp::EgressPolicy;
use fencepost_store::{ConnectError, MigrateError, SchemaState, Store, StoreConfig, StoreError};
use kube::{Client, Config};
use url::Url;
use uuid::Uuid;

use super::dev::shutdown_signal;
use crate::{
    access::{Access, KubernetesAccess},
    cluster::{Cluster, ClusterConfig, Election, Scope},
    live::Live,
    metrics::Metrics,
    runtime::{Runtime, RuntimeConfig, RuntimeError},
};

#[derive(Args)]
pub struct OperatorArgs {
    /// The database, as `postgres://user:password@host:5432/name`.
    #[arg(long, env = "FENCEPOST_DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// Where to serve the dashboard, the API, the metrics and the probes.
    #[arg(long, env = "FENCEPOST_LISTEN", default_value = "0.0.0.0:7780")]
    listen: SocketAddr,
    /// Watch this namespace only; may be repeated. Absent: the whole cluster.
    #[arg(
        long = "namespace",
        env = "FENCEPOST_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAMESPACE"
    )]
    namespaces: Vec<String>,
    /// Who may ask: whom the cluster's reviews of tokens and of access allow, or whoever reaches the address.
    #[arg(long, env = "FENCEPOST_ACCESS", value_enum, default_value_t = AccessMode::Kubernetes)]
    access: AccessMode,
    /// Let MCP servers and webhooks on loopback addresses be reached.
    #[arg(long, env = "FENCEPOST_ALLOW_LOOPBACK")]
    allow_loopback: bool,
    /// Let servers be started as child processes (`stdio`). Whoever may write an `MCPServer` may then run programs here.
    #[arg(long, env = "FENCEPOST_ALLOW_STDIO")]
    allow_stdio: bool,
    /// A proxy for connections to MCP servers and webhooks. The environment's proxies are never used.
    #[arg(long, env = "FENCEPOST_PROXY")]
    proxy: Option<Url>,
    /// Namespace of the leader's lease: the one that this process runs in.
    #[arg(long, env = "POD_NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// Name of the leader's lease. Two installations in one namespace need two.
    #[arg(
        long,
        env = "FENCEPOST_LEADER_ELECTION_ID",
        default_value = "fencepost"
    )]
    leader_election_id: String,
    /// How this replica is called in the lease and in Events; default: a random name.
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// How long a deleted object waits for its generations to be closed before it goes all the same.
    #[arg(long, env = "FENCEPOST_FINALIZER_DEADLINE", default_value = "5m", value_parser = written_duration)]
    finalizer_deadline: Duration,
    /// DNS suffix of the cluster's Services.
    #[arg(
        long,
        env = "FENCEPOST_CLUSTER_DOMAIN",
        default_value = "cluster.local"
    )]
    cluster_domain: String,
    /// Bring an older database to this version's schema first. Otherwise `fencepost migrate` must do it; an empty one is set up anyway.
    #[arg(long, env = "FENCEPOST_MIGRATE")]
    migrate: bool,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AccessMode {
    /// Whom the cluster allows.
    Kubernetes,
    /// Whoever reaches the address.
    Open,
}

/// Why the operator did not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(
        "no cluster: neither a ServiceAccount of a pod nor a usable kubeconfig was found; set KUBECONFIG, or run in a pod"
    )]
    NoCluster(#[source] kube::config::InferConfigError),
    #[error("the client of the API server cannot be made from what the kubeconfig says")]
    Client(#[source] kube::Error),
    #[error(
        "the namespace of the leader's lease is not known; give --leader-election-namespace, or set POD_NAMESPACE by the downward API"
    )]
    NoNamespace,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("the ledger's schema cannot be looked at")]
    Store(#[from] StoreError),
    #[error("the metrics could not be registered")]
    Metrics(#[from] prometheus::Error),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// How long a request to the API server may wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may stay silent; watches send bookmarks about every minute.
const READ_TIMEOUT: Duration = Duration::from_secs(150);

/// Runs until SIGTERM or Ctrl-C; then closes sessions and lets leases go.
pub async fn run(args: OperatorArgs) -> Result<(), OperatorError> {
    let shutdown = shutdown_signal();
    let mut config = Config::infer().await.map_err(OperatorError::NoCluster)?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    let own_namespace = args
        .leader_election_namespace
        .clone()
        .or_else(|| Some(config.default_namespace.clone()).filter(|name| !name.is_empty()))
        .ok_or(OperatorError::NoNamespace)?;
    let client = Client::try_from(config).map_err(OperatorError::Client)?;
    let store = Store::connect(StoreConfig {
        database_url: args.database_url.clone(),
        max_connections: 16,
        replica: Uuid::now_v7(),
    })
    .await?;
    // In an empty database there is nothing that a migration could spoil; an older schema is somebody's to bring up.
    if args.migrate || store.schema().await? == SchemaState::Empty {
        tracing::info!("{}", store.migrate().await?);
    }
    let scope = Scope::of(&args.namespaces);
    let namespaces = match &scope {
        Scope::Cluster => Vec::new(),
        Scope::Namespaces(names) => names.clone(),
    };
    let access = match args.access {
        AccessMode::Kubernetes => {
            Access::Kubernetes(KubernetesAccess::new(client.clone(), namespaces))
        }
        AccessMode::Open => {
            tracing::warn!(
                listen = %args.listen,
                "--access open: whoever reaches this address may read everything, content included"
            );
            Access::Open
        }
    };
    let metrics = Arc::new(Metrics::new()?);
    let live = Live::new();
    let cluster = Cluster::start(
        ClusterConfig {
            client,
            store: store.clone(),
            scope,
            domain: args.cluster_domain,
            election: Election {
                namespace: own_namespace,
                lease: args.leader_election_id,
                identity: args
                    .identity
                    .unwrap_or_else(|| format!("fencepost-{}", Uuid::new_v4().simple())),
            },
            metrics: Arc::clone(&metrics),
            live: live.clone(),
            finalizer_deadline: args.finalizer_deadline,
            reviews: args.access == AccessMode::Kubernetes,
        },
        &shutdown,
    );
    let runtime = Runtime::start(
        RuntimeConfig {
            store,
            listen: args.listen,
            egress: EgressPolicy {
                allow_loopback: args.allow_loopback,
                proxy: args.proxy,
            },
            allow_stdio: args.allow_stdio,
            metrics,
            live,
            authority: cluster.authority.clone(),
            source: Some(Arc::clone(&cluster.readiness)),
            access,
        },
        cluster.desired.clone(),
        shutdown.clone(),
    )
    .await?;
    tracing::info!("listening on http://{}", runtime.address());
    cluster.report(runtime.published(), shutdown).await;
    runtime.finished().await;
    Ok(())
}

/// As manifests write durations: `60s`, `5m`.
fn written_duration(text: &str) -> Result<Duration, String> {
    text.parse::<WrittenDuration>()
        .map(WrittenDuration::get)
        .map_err(|error| error.to_string())
}
