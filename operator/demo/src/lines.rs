//! The server over a pair of pipes, one message a line: standard input and output, as a rule.
//!
//! The end of the input is the client's goodbye. rmcp would then wait some seconds for requests that are still open, and a listen
//! is always open; so the listens are ended here, at once and gracefully.

use std::{
    io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rmcp::{ServiceExt, service::ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::{DemoError, folder::Folder, session::Session, watch};

/// Serves a folder over standard input and output until either ends or `shutdown`. Nothing else may
/// write to standard output.
pub async fn serve_stdio(root: PathBuf, shutdown: CancellationToken) -> Result<(), DemoError> {
    serve_lines(root, tokio::io::stdin(), tokio::io::stdout(), shutdown).await
}

/// Serves a folder over any pair of pipes.
pub async fn serve_lines(
    root: PathBuf,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), DemoError> {
    let folder = Arc::new(Folder::open(&root)?);
    let ended = shutdown.child_token();
    let _end = ended.clone().drop_guard();
    let changes = watch::start(Arc::clone(&folder), ended.clone())?;
    let session = Session::ending_with(folder, changes, ended.clone());
    let input = UntilEnd { input, ended };
    let service = match session.serve_with_ct((input, output), shutdown).await {
        Ok(service) => service,
        // A client that leaves before its first request is not a fault.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(stdio(&error)),
    };
    service.waiting().await.map_err(|error| stdio(&error))?;
    Ok(())
}

fn stdio(error: &impl ToString) -> DemoError {
    DemoError::Stdio {
        reason: error.to_string(),
    }
}

/// An input that says when it ends.
struct UntilEnd<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.remaining();
        let read = ready!(Pin::new(&mut self.input).poll_read(context, buffer));
        if read.is_err() || (before > 0 && buffer.remaining() == before) {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}
