//! `fencepost demo-server`: a folder as MCP resources, over HTTP or stdio.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use fencepost_demo::{DemoConfig, DemoError};

use super::dev::shutdown_signal;

#[derive(Args)]
pub struct DemoServerArgs {
    /// The folder; each file below it is `docs:///<relative path, percent-encoded>`.
    #[arg(long)]
    root: PathBuf,
    /// Where to serve `/mcp`.
    #[arg(long, default_value = "127.0.0.1:7700")]
    listen: SocketAddr,
    /// Serve over standard input and output instead.
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,
}

/// Why the demo server did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoCommandError {
    #[error(transparent)]
    Demo(#[from] DemoError),
    #[error("the demo server's task broke off")]
    Task(#[from] tokio::task::JoinError),
}

pub async fn run(args: DemoServerArgs) -> Result<(), DemoCommandError> {
    let shutdown = shutdown_signal();
    if args.stdio {
        return Ok(fencepost_demo::serve_stdio(args.root, shutdown).await?);
    }
    let config = DemoConfig {
        root: args.root.clone(),
        listen: args.listen,
    };
    let running = fencepost_demo::serve(config, shutdown).await?;
    println!(
        "serving {} at http://{}/mcp",
        args.root.display(),
        running.addr
    );
    Ok(running.handle.await?)
}
