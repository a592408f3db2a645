//! The child process behind a stdio session, with everything it starts: one process group that always ends with us.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use crate::error::ConnectError;

/// The variables of ours that a child sees. Not the others: they may hold the database's password.
const INHERITED: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// How long a child may take to end by itself when nobody said how long.
const GRACE: Duration = Duration::from_secs(2);

/// How long the output of a child that has gone is still read. Normally it ends at once; a process that left the group
/// may hold it open for ever.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running child. Dropping it kills the group.
pub(crate) struct ChildProcess {
    grace: Arc<Mutex<Duration>>,
    /// Cancelled when the whole group is gone.
    gone: CancellationToken,
}

impl ChildProcess {
    /// Starts the command; `over` ends it, in three steps: end of input (by whoever holds it), SIGTERM, SIGKILL.
    pub(crate) fn start(
        command: &str,
        args: &[String],
        env: &[(String, String)],
        over: CancellationToken,
    ) -> Result<(Self, ChildStdin, ChildStdout), ConnectError> {
        let spawn_error = |source| ConnectError::Spawn {
            command: command.to_owned(),
            source,
        };
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut child = Command::new(command)
            .args(args)
            .env_clear()
            .envs(inherited)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Servers write what they like there, tokens included.
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(spawn_error)?;
        let broken = || spawn_error(std::io::Error::other("the child has no pipes"));
        let (Some(stdin), Some(stdout), Some(id)) =
            (child.stdin.take(), child.stdout.take(), child.id())
        else {
            return Err(broken());
        };
        let group = Group(Pid::from_raw(id.cast_signed()));
        let grace = Arc::new(Mutex::new(GRACE));
        let gone = CancellationToken::new();
        tokio::spawn(supervise(
            child,
            group,
            over,
            Arc::clone(&grace),
            gone.clone().drop_guard(),
        ));
        Ok((Self { grace, gone }, stdin, stdout))
    }

    /// Sets how long the child may take once its session is over.
    pub(crate) fn allow(&self, grace: Duration) {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
    }

    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

/// A process group that does not outlive this value, also when the runtime drops its tasks.
struct Group(Pid);

impl Group {
    fn signal(&self, signal: Signal) {
        // A group without members any more answers ESRCH, which is what is wanted.
        let _ = killpg(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

async fn supervise(
    mut child: Child,
    group: Group,
    over: CancellationToken,
    grace: Arc<Mutex<Duration>>,
    _gone: tokio_util::sync::DropGuard,
) {
    let by_itself = tokio::select! {
        _ = child.wait() => true,
        () = over.cancelled() => false,
    };
    if !by_itself {
        let half = *grace.lock().unwrap_or_else(PoisonError::into_inner) / 2;
        if tokio::time::timeout(half, child.wait()).await.is_err() {
            group.signal(Signal::SIGTERM);
            let _ = tokio::time::timeout(half, child.wait()).await;
        }
    }
    // What the child started may still be there, and hold its output open.
    drop(group);
    let _ = child.wait().await;
    let _ = tokio::time::timeout(LAST_WORDS, over.cancelled()).await;
    over.cancel();
}
