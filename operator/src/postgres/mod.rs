//! The embedded default: a private Postgres cluster from installed binaries, kept between runs.
//!
//! In comes a folder; out goes a database URL over a Unix socket that only this user can open. The
//! folder is held by a file lock for as long as the cluster runs, so that two processes never share
//! one. The postmaster gets a process group of its own: Ctrl-C ends Fencepost first, which then ends
//! the postmaster. If Fencepost is killed so that it cannot, the postmaster stays; the next start
//! finds it by its pid file, ends it cleanly and starts anew. Nothing acknowledged is lost either way:
//! `fsync` stays on.

mod binaries;
mod cluster;
mod folder;
mod left_over;
mod run_as;
mod server;

use std::path::PathBuf;

use thiserror::Error;

pub use binaries::BINARIES_VARIABLE;
use binaries::Binaries;
use folder::Folder;
use run_as::RunAs;
use server::Server;

/// Which cluster to run.
#[derive(Debug, Clone)]
pub struct EmbeddedConfig {
    /// Where the cluster lives. None: `fencepost/<name>` in the user's cache folder.
    pub data_dir: Option<PathBuf>,
    /// Tells clusters in the cache folder apart: letters, digits, `-`, `_` and `.`.
    pub name: String,
}

/// A running cluster. [`stop`](Self::stop) ends it; dropping it asks the postmaster to end without
/// waiting for it.
pub struct Embedded {
    url: String,
    server: Server,
    /// Held until the postmaster is gone.
    _folder: Folder,
}

impl Embedded {
    /// Starts the cluster, creating it the first time. `progress` is told in a sentence what takes
    /// time or is worth knowing.
    pub async fn start(
        config: EmbeddedConfig,
        progress: impl Fn(&str),
    ) -> Result<Self, EmbeddedError> {
        let run_as = RunAs::choose()?;
        let folder = Folder::open(&config, &run_as)?;
        let binaries = Binaries::find(folder.cluster_version()?.as_deref())?;
        if let Some(pid) = left_over::end(&folder).await? {
            progress(&format!(
                "A Postgres (process {pid}) was left by a Fencepost that was killed; it has been stopped and is started again"
            ));
        }
        if folder.cluster_version()?.is_none() {
            progress(&format!(
                "Creating a Postgres cluster in {}",
                folder.root().display()
            ));
            cluster::create(&binaries, &folder, &run_as).await?;
        }
        let server = Server::start(&binaries, &folder, &run_as).await?;
        let url = folder.url()?;
        Ok(Self {
            url,
            server,
            _folder: folder,
        })
    }

    /// The database's URL, with its password: not for logs.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Process id of the postmaster.
    pub fn pid(&self) -> i32 {
        self.server.pid()
    }

    /// Ends the cluster as `pg_ctl stop -m fast` does: clients are disconnected, nothing is lost.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        self.server.stop().await
    }
}

/// Why the embedded Postgres did not start or stop. Each says what to do.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    #[error(
        "no PostgreSQL is installed here (looked for `postgres` and `initdb` in {looked_in}); install it \
         (Debian, Ubuntu: apt install postgresql), name its bin folder in FENCEPOST_PG_BIN, or give --database-url"
    )]
    NoBinaries { looked_in: String },
    #[error("the PostgreSQL in {} does not run; name another bin folder in FENCEPOST_PG_BIN, or give --database-url", bin.display())]
    BadBinaries {
        bin: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{name:?} cannot name a cluster; use letters, digits, - _ and .")]
    BadName { name: String },
    #[error(
        "there is no HOME and no XDG_CACHE_HOME to keep the database in; set one, or give --database-url"
    )]
    NoHome,
    #[error("the folder {} cannot be used for the database; make it writable, choose another, or give --database-url", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the user {user}, which Postgres runs as because root must not, cannot enter {}; allow it (chmod a+x) or \
         choose a folder elsewhere", path.display()
    )]
    NotTraversable { path: PathBuf, user: String },
    #[error("the database in {} belongs to another user (uid {owner}); run as that user, or choose another folder", path.display())]
    WrongOwner { path: PathBuf, owner: u32 },
    #[error(
        "Postgres must not run as root and there is no user `postgres` or `nobody` to run it as; create one, run as \
         another user, or give --database-url"
    )]
    NoUser,
    #[error(
        "the database in {} is in use by process {pid}; stop that Fencepost first, choose another folder, or give \
         --database-url", path.display()
    )]
    InUse { path: PathBuf, pid: String },
    #[error(
        "the database in {} was made by PostgreSQL {folder} and the one in {} is {found}; install PostgreSQL {folder}, \
         name its bin folder in FENCEPOST_PG_BIN, or move the folder away to begin with an empty ledger",
        path.display(), bin.display()
    )]
    VersionMismatch {
        path: PathBuf,
        folder: String,
        bin: PathBuf,
        found: String,
    },
    #[error("the disk that holds {} is full; make room and start again: what was committed is kept", path.display())]
    DiskFull { path: PathBuf },
    #[error("Postgres did not start in {}: {said}; all it said is in {}", path.display(), path.join("postgres.log").display())]
    NotStarted { path: PathBuf, said: String },
    #[error("Postgres (process {pid}) did not become ready within {seconds} s; what it said is in {}", log.display())]
    NotReady {
        pid: i32,
        seconds: u64,
        log: PathBuf,
    },
    #[error(
        "Postgres (process {pid}) did not end within {seconds} s; end it by hand (kill -QUIT {pid})"
    )]
    NotStopped { pid: i32, seconds: u64 },
}
