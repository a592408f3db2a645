//! What can stop the demo server from starting, each with what to do about it.

use std::{io, net::SocketAddr, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("the folder {} does not exist; create it or name another with --root", .0.display())]
    RootMissing(PathBuf),
    #[error("{} is not a folder; name the folder that holds the file with --root", .0.display())]
    RootNotAFolder(PathBuf),
    #[error("the folder {} cannot be opened; check that this user may read it", .path.display())]
    RootUnreadable { path: PathBuf, source: io::Error },
    #[error("the folder {} holds more than {limit} files; name a smaller one with --root", .path.display())]
    TooManyFiles { path: PathBuf, limit: usize },
    #[error(
        "the folder {} cannot be watched for changes; if the system's limit of watches is reached, raise fs.inotify.max_user_watches",
        .path.display()
    )]
    Watch {
        path: PathBuf,
        source: notify::Error,
    },
    #[error(
        "the address {0} is in use; end the process that holds it or choose another with --listen (port 0 takes a free one)"
    )]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {addr}; choose an address of this machine with --listen")]
    Listen { addr: SocketAddr, source: io::Error },
    #[error("the MCP exchange over standard input and output could not begin: {reason}")]
    Stdio { reason: String },
}
