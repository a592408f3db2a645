//! A postmaster that a killed Fencepost left behind: found by its pid file, ended, never orphaned.
//!
//! The folder's lock is ours here, so no living Fencepost runs it.

use std::{fs, io, path::Path, process::Command, time::Duration};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::time::{Instant, sleep};

use super::{
    EmbeddedError,
    folder::{Folder, SOCKET_LOCK},
};

/// A fast stop writes a checkpoint, which takes seconds on a slow disk.
pub(super) const FAST_STOP: Duration = Duration::from_secs(20);
/// An immediate stop writes nothing; the next start recovers from the log.
pub(super) const IMMEDIATE_STOP: Duration = Duration::from_secs(5);
/// Short enough not to be felt, long enough not to spin.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Ends the postmaster that the folder's pid file names, if it runs this very folder, and answers its
/// process id. What says that one still runs is then stale and removed: Postgres would take any process
/// with that number for its own. Backends that outlive their postmaster it finds without those files,
/// by their shared memory.
pub(super) async fn end(folder: &Folder) -> Result<Option<i32>, EmbeddedError> {
    let pid_file = folder.data().join("postmaster.pid");
    let named = fs::read_to_string(&pid_file)
        .ok()
        .and_then(|text| text.lines().next()?.trim().parse::<i32>().ok())
        .filter(|pid| *pid > 1);
    let running = named.filter(|pid| is_alive(*pid) && runs_folder(*pid, &folder.data()));
    if let Some(pid) = running {
        signal(pid, Signal::SIGINT);
        if !gone(pid, FAST_STOP).await {
            signal(pid, Signal::SIGQUIT);
            if !gone(pid, IMMEDIATE_STOP).await {
                return Err(EmbeddedError::NotStopped {
                    pid,
                    seconds: (FAST_STOP + IMMEDIATE_STOP).as_secs(),
                });
            }
        }
    }
    for stale in [pid_file, folder.socket().join(SOCKET_LOCK)] {
        match fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(folder.failed(error));
            }
            _ => {}
        }
    }
    Ok(running)
}

pub(super) fn signal(pid: i32, signal: Signal) {
    // A process that is gone already needs no signal.
    let _ = kill(Pid::from_raw(pid), signal);
}

/// A process that has ended and that its parent has not waited for is not alive: in a container
/// nobody may ever wait for it.
fn is_alive(pid: i32) -> bool {
    let ended = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    });
    !ended && kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

async fn gone(pid: i32, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while is_alive(pid) {
        if Instant::now() > deadline {
            return false;
        }
        sleep(LOOK_AGAIN).await;
    }
    true
}

/// Whether the process is a Postgres on `data`: process ids come round again.
fn runs_folder(pid: i32, data: &Path) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_else(|_| {
        // No /proc: ask ps.
        Command::new("ps")
            .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
            .output()
            .map(|output| output.stdout)
            .unwrap_or_default()
    });
    let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
    arguments.contains("postgres") && arguments.contains(&*data.to_string_lossy())
}
