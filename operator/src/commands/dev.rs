//! `fencepost dev PATH...`: the manifests of files, watched for edits, on one machine, no cluster.

use std::{io::Write, net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args;
use fencepost_mcp::EgressPolicy;
use fencepost_store::{ConnectError, MigrateError, Store, StoreConfig, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use super::{
    dev_companions::{self, CompanionError},
    dev_files::{Edits, Files, Looked},
};
use crate::{
    access::Access,
    desired::Desired,
    live::Live,
    metrics::Metrics,
    postgres::{Embedded, EmbeddedConfig, EmbeddedError},
    publish::Authority,
    runtime::{Runtime, RuntimeConfig, RuntimeError},
};

#[derive(Args)]
pub struct DevArgs {
    /// Files or folders of `.yaml`, `.yml` and `.json` manifests.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// A database to use instead of the embedded Postgres, as `postgres://user@host:5432/name`.
    #[arg(long, env = "FENCEPOST_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where to serve the dashboard, the API and the metrics.
    #[arg(long, default_value = "127.0.0.1:7780")]
    listen: SocketAddr,
    /// Where the embedded Postgres keeps its data; default: `fencepost/dev` in the user's cache folder.
    #[arg(long, conflicts_with = "database_url")]
    data_dir: Option<PathBuf>,
    /// A proxy for connections to MCP servers and webhooks. The environment's proxies are never used.
    #[arg(long)]
    proxy: Option<Url>,
    /// Serve without authentication on an address that is not loopback.
    #[arg(long)]
    allow_open: bool,
}

/// Why `dev` did not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    #[error(
        "--listen {0} is not a loopback address, and `dev` asks nobody who they are; \
         listen on 127.0.0.1, or add --allow-open if everybody who reaches it may read everything"
    )]
    Open(SocketAddr),
    #[error(
        "{0} of the manifests' errors are listed above; mend them, or check with `fencepost validate`"
    )]
    Manifests(usize),
    #[error("the embedded Postgres is not available")]
    Postgres(#[from] EmbeddedError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("the ledger cannot be used")]
    Store(#[from] StoreError),
    #[error("the example cannot be shown")]
    Companion(#[from] CompanionError),
    #[error("the metrics could not be registered")]
    Metrics(#[from] prometheus::Error),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Runs until Ctrl-C or SIGTERM; then ends everything that it started.
pub async fn run(args: DevArgs) -> Result<(), DevError> {
    if !args.listen.ip().is_loopback() && !args.allow_open {
        return Err(DevError::Open(args.listen));
    }
    let shutdown = shutdown_signal();
    let (url, embedded) = if let Some(url) = args.database_url.clone() {
        (url, None)
    } else {
        say("starting the embedded Postgres");
        let config = EmbeddedConfig {
            data_dir: args.data_dir.clone(),
            name: "dev".to_owned(),
        };
        let embedded = Embedded::start(config, say).await?;
        (embedded.url().to_owned(), Some(embedded))
    };
    let ran = with_database(&args, url, embedded.is_some(), shutdown).await;
    if let Some(embedded) = embedded {
        say("stopping the embedded Postgres");
        if let Err(error) = embedded.stop().await {
            tracing::warn!(error = %crate::sentence::chain(&error), "the embedded Postgres");
        }
    }
    ran
}

async fn with_database(
    args: &DevArgs,
    url: String,
    ours_alone: bool,
    shutdown: CancellationToken,
) -> Result<(), DevError> {
    let store = Store::connect(StoreConfig {
        database_url: url,
        max_connections: 16,
        replica: Uuid::now_v7(),
    })
    .await?;
    let migrated = store.migrate().await?;
    say(&migrated.to_string());
    if ours_alone {
        // The folder's lock says that no other process uses this ledger.
        store.release_all_leases().await?;
        store.release_all_deliveries().await?;
    }
    let mut files = Files::open(args.paths.clone(), store.clone()).await?;
    let looked = files.look().await?;
    if !looked.errors.is_empty() {
        print_errors(&looked);
        return Err(DevError::Manifests(looked.errors.len()));
    }
    print_problems(&looked.desired);
    // Ends after the sessions have: closing them still speaks to the companions.
    let companions_end = CancellationToken::new();
    let companions =
        dev_companions::start(files.objects(), &looked.desired, &companions_end).await?;
    let (desired, receiver) = watch::channel(Arc::new(looked.desired));
    let (_sole, authority) = watch::channel(Authority::Sole);
    let runtime = Runtime::start(
        RuntimeConfig {
            store,
            listen: args.listen,
            egress: EgressPolicy {
                allow_loopback: true,
                proxy: args.proxy.clone(),
            },
            allow_stdio: true,
            metrics: Arc::new(Metrics::new()?),
            live: Live::new(),
            authority,
            source: None,
            access: Access::Open,
        },
        receiver,
        shutdown.clone(),
    )
    .await?;
    say(&format!("listening on http://{}", runtime.address()));
    for told in &companions.told {
        say(told);
    }
    if let Some(edit) = &companions.edit {
        say(&format!("edit {} and watch the dashboard", edit.display()));
    }
    say("Ctrl-C ends everything");
    follow(&mut files, &args.paths, &desired, &shutdown).await;
    say("closing sessions");
    runtime.finished().await;
    companions_end.cancel();
    futures::future::join_all(companions.tasks).await;
    Ok(())
}

/// Publishes each change of the files until `shutdown`.
async fn follow(
    files: &mut Files,
    paths: &[PathBuf],
    desired: &watch::Sender<Arc<Desired>>,
    shutdown: &CancellationToken,
) {
    let mut edits = Edits::watch(paths);
    let mut told = Vec::new();
    loop {
        tokio::select! {
            () = edits.next() => {}
            () = shutdown.cancelled() => return,
        }
        let looked = match files.look().await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::warn!(
                    category = error.category(),
                    "the files wait for the database"
                );
                continue;
            }
        };
        if looked.errors != told {
            print_errors(&looked);
            if !looked.errors.is_empty() {
                say("what those files held before stays in force");
            }
            told.clone_from(&looked.errors);
        }
        if looked.changed {
            print_problems(&looked.desired);
            say("the manifests changed");
            desired.send_replace(Arc::new(looked.desired));
        }
    }
}

fn print_errors(looked: &Looked) {
    for error in &looked.errors {
        eprintln!("error: {error}");
    }
}

fn print_problems(desired: &Desired) {
    for problem in &desired.problems {
        eprintln!("warning: {problem}");
    }
}

/// A line of progress. Flushed at once: it may go into a pipe.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe must not end the process.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Cancelled by Ctrl-C, SIGTERM or SIGHUP.
pub fn shutdown_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut term), Ok(mut hangup)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) else {
            tracing::warn!("signals cannot be waited for");
            return;
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = term.recv() => {}
            _ = hangup.recv() => {}
        }
        cancelled.cancel();
    });
    token
}
