//! The postmaster: started, waited for until it takes connections, and ended.

use std::{
    env, fs,
    fs::{File, OpenOptions},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use super::{
    EmbeddedError,
    binaries::Binaries,
    folder::Folder,
    left_over::{FAST_STOP, IMMEDIATE_STOP, signal},
    run_as::RunAs,
};

/// After kill -9 the log is replayed first; a ledger's worth of it takes seconds, not minutes.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// Backends of a postmaster that was killed end by themselves, at the latest when their statement does.
const BACKENDS_END_WITHIN: Duration = Duration::from_secs(40);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Lines of Postgres's log in an error.
const SHOWN_LINES: usize = 5;

/// For one developer's ledger, not for a fleet: little memory, few connections, and every commit on
/// the disk, since a ledger that forgets is worth nothing.
const SETTINGS: [&str; 12] = [
    "listen_addresses=",
    "port=5432",
    "max_connections=60",
    "shared_buffers=32MB",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "max_wal_size=256MB",
    "timezone=UTC",
    "log_timezone=UTC",
    "logging_collector=off",
    "log_checkpoints=off",
];

pub(super) struct Server {
    child: Child,
    stopped: bool,
}

impl Server {
    /// Starts Postgres and waits until it takes connections.
    pub async fn start(
        binaries: &Binaries,
        folder: &Folder,
        run_as: &RunAs,
    ) -> Result<Self, EmbeddedError> {
        if let Some(version) = folder.cluster_version()?
            && version != binaries.major
        {
            return Err(EmbeddedError::VersionMismatch {
                path: folder.root().to_path_buf(),
                folder: version,
                bin: binaries.bin.clone(),
                found: binaries.major.clone(),
            });
        }
        let deadline = Instant::now() + BACKENDS_END_WITHIN;
        loop {
            let mut server = Self::spawn(binaries, folder, run_as)?;
            match server.ready(folder).await {
                Err(EmbeddedError::NotStarted { said, .. })
                    if said.contains("is still in use") && Instant::now() < deadline =>
                {
                    sleep(LOOK_AGAIN * 10).await;
                }
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
    }

    fn spawn(binaries: &Binaries, folder: &Folder, run_as: &RunAs) -> Result<Self, EmbeddedError> {
        let log = new_log(folder, run_as)?;
        let mut command = Command::new(binaries.bin.join("postgres"));
        command.arg("-D").arg(folder.data());
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        let mut sockets = std::ffi::OsString::from("unix_socket_directories=");
        sockets.push(folder.socket());
        command.arg("-c").arg(sockets);
        clean_environment(&mut command);
        run_as.apply(&mut command);
        command
            .current_dir(folder.root())
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|e| folder.failed(e))?)
            .stderr(log)
            // Ctrl-C goes to the terminal's foreground group; Postgres must outlive us by a moment.
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|source| EmbeddedError::BadBinaries {
                bin: binaries.bin.clone(),
                source,
            })?;
        Ok(Self {
            child,
            stopped: false,
        })
    }

    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Waits for the word `ready` in the pid file, which the postmaster writes when it is.
    async fn ready(&mut self, folder: &Folder) -> Result<(), EmbeddedError> {
        let pid_file = folder.data().join("postmaster.pid");
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let written = fs::read_to_string(&pid_file).unwrap_or_default();
            let mut lines = written.lines();
            let ours = lines
                .next()
                .is_some_and(|pid| pid.trim() == self.pid().to_string());
            if ours && lines.last().is_some_and(|status| status.trim() == "ready") {
                return Ok(());
            }
            if self
                .child
                .try_wait()
                .map_err(|e| folder.failed(e))?
                .is_some()
            {
                self.stopped = true;
                return Err(complaint(
                    folder,
                    &fs::read_to_string(folder.log()).unwrap_or_default(),
                ));
            }
            if Instant::now() > deadline {
                return Err(EmbeddedError::NotReady {
                    pid: self.pid(),
                    seconds: READY_WITHIN.as_secs(),
                    log: folder.log(),
                });
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    pub async fn stop(&mut self) -> Result<(), EmbeddedError> {
        for (how, limit) in [
            (Signal::SIGINT, FAST_STOP),
            (Signal::SIGQUIT, IMMEDIATE_STOP),
        ] {
            signal(self.pid(), how);
            let deadline = Instant::now() + limit;
            while Instant::now() < deadline {
                // An error means that it is nobody's child any more: gone.
                if !matches!(self.child.try_wait(), Ok(None)) {
                    self.stopped = true;
                    return Ok(());
                }
                sleep(LOOK_AGAIN).await;
            }
        }
        Err(EmbeddedError::NotStopped {
            pid: self.pid(),
            seconds: (FAST_STOP + IMMEDIATE_STOP).as_secs(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.stopped {
            signal(self.pid(), Signal::SIGINT);
        }
    }
}

/// A new log each start: it cannot grow without end, and what it says is about this start.
fn new_log(folder: &Folder, run_as: &RunAs) -> Result<File, EmbeddedError> {
    let log = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(folder.log())
        .map_err(|e| folder.failed(e))?;
    run_as.own(&folder.log()).map_err(|e| folder.failed(e))?;
    Ok(log)
}

/// Leaves out what would steer Postgres elsewhere (`PGDATA`, `PGOPTIONS`, ...).
pub(super) fn clean_environment(command: &mut Command) {
    command.env_clear().env("LC_ALL", "C").env("TZ", "UTC");
    for name in ["PATH", "LD_LIBRARY_PATH"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// What Postgres complained of, as an error that says what to do.
pub(super) fn complaint(folder: &Folder, said: &str) -> EmbeddedError {
    if said.contains("No space left on device") {
        return EmbeddedError::DiskFull {
            path: folder.root().to_path_buf(),
        };
    }
    let telling: Vec<&str> = said
        .lines()
        .filter(|line| {
            ["FATAL", "PANIC", "error:", "HINT"]
                .iter()
                .any(|word| line.contains(word))
        })
        .collect();
    let lines = if telling.is_empty() {
        said.lines().collect()
    } else {
        telling
    };
    let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("; ");
    EmbeddedError::NotStarted {
        path: folder.root().to_path_buf(),
        said: if shown.is_empty() {
            "it ended without a word".to_owned()
        } else {
            shown
        },
    }
}
