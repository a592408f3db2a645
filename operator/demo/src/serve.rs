//! Starting the server over HTTP, at `/mcp`.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{DemoError, folder::Folder, session::Session, watch};

/// A legacy session without any message is forgotten after this long. rmcp's five minutes would cut a client that only waits for a
/// quiet folder to change.
const SESSION_IDLE: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
pub struct DemoConfig {
    pub root: PathBuf,
    /// Port 0 takes a free one; [`Running::addr`] says which.
    pub listen: SocketAddr,
}

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    pub addr: SocketAddr,
    /// Ends once the shutdown token is cancelled and open requests are done.
    pub handle: JoinHandle<()>,
}

/// Serves a folder over HTTP until `shutdown`.
pub async fn serve(config: DemoConfig, shutdown: CancellationToken) -> Result<Running, DemoError> {
    let folder = Arc::new(Folder::open(&config.root)?);
    let listener =
        TcpListener::bind(config.listen)
            .await
            .map_err(|source| match source.kind() {
                io::ErrorKind::AddrInUse => DemoError::AddressInUse(config.listen),
                _ => DemoError::Listen {
                    addr: config.listen,
                    source,
                },
            })?;
    let addr = listener.local_addr().map_err(|source| DemoError::Listen {
        addr: config.listen,
        source,
    })?;
    let changes = watch::start(Arc::clone(&folder), shutdown.clone())?;

    let mut sessions = LocalSessionManager::default();
    let mut session_config = SessionConfig::default();
    session_config.keep_alive = Some(SESSION_IDLE);
    sessions.session_config = session_config;

    // The check of the Host header keeps web pages from reaching a server on loopback by DNS rebinding. A listener on another
    // address was opened to the network on purpose, under names that are not known here.
    let mut http =
        StreamableHttpServerConfig::default().with_cancellation_token(shutdown.child_token());
    if !addr.ip().is_loopback() {
        http = http.disable_allowed_hosts();
    }
    let service = StreamableHttpService::new(
        move || Ok(Session::new(Arc::clone(&folder), changes.clone())),
        Arc::new(sessions),
        http,
    );
    let router = axum::Router::new().route_service("/mcp", service);
    let handle = tokio::spawn(async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(shutdown.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the demo server ended");
        }
    });
    Ok(Running { addr, handle })
}
