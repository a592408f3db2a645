//! `fencepost receiver`: receives webhooks, verifies them and prints what they tell.

use std::{io, net::SocketAddr, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;

use super::{dev::shutdown_signal, receiver};
use crate::manifest::Secret;

#[derive(Args)]
pub struct ReceiverArgs {
    /// Where to receive; any path.
    #[arg(long, default_value = "127.0.0.1:7701")]
    listen: SocketAddr,
    /// A file that holds the signing secret (`whsec_` and base64). A secret on the command line would be
    /// seen by everybody on the machine.
    #[arg(long)]
    secret_file: PathBuf,
}

/// Why the receiver did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverCommandError {
    #[error("the signing secret cannot be read from {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} does not hold whsec_ and base64", path.display())]
    Secret { path: PathBuf },
    #[error(transparent)]
    Receiver(#[from] receiver::ReceiverError),
    #[error("the receiver's task broke off")]
    Task(#[from] tokio::task::JoinError),
}

pub async fn run(args: ReceiverArgs) -> Result<(), ReceiverCommandError> {
    let path = args.secret_file;
    let text = std::fs::read_to_string(&path).map_err(|source| ReceiverCommandError::File {
        path: path.clone(),
        source,
    })?;
    let key = text
        .trim()
        .strip_prefix("whsec_")
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .ok_or(ReceiverCommandError::Secret { path })?;
    let running =
        receiver::serve(args.listen, vec![Secret::new(key)], true, shutdown_signal()).await?;
    println!("receiving on http://{}", running.addr);
    Ok(running.handle.await?)
}
