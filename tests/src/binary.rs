//! The program under test, started as a user starts it.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output},
    time::Duration,
};

use nix::sys::signal::Signal;

use crate::{process::Process, report};

/// How long a start may take: the embedded Postgres is created on the first.
pub const START_LIMIT: Duration = Duration::from_mins(1);

/// How long an orderly end may take.
pub const STOP_LIMIT: Duration = Duration::from_secs(20);

/// The line that `dev` prints once it serves.
const LISTENING: &str = "listening on ";

pub struct Fencepost {
    process: Process,
    base: Option<String>,
}

impl Fencepost {
    /// Starts `fencepost` with these arguments, and returns without waiting for anything.
    pub fn start<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::start_with(args, |_| {})
    }

    /// As [`Fencepost::start`], with a say in the environment and the folder.
    pub fn start_with<S: AsRef<std::ffi::OsStr>>(
        args: impl IntoIterator<Item = S>,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = command(args);
        change(&mut command);
        Self::through(&mut command)
    }

    /// Starts a command that ends in an exec of the binary.
    pub fn through(command: &mut Command) -> Self {
        report::real(&format!("the binary {}", path().display()));
        Self {
            process: Process::start("fencepost", command),
            base: None,
        }
    }

    /// Starts it and waits until it prints where it listens.
    pub async fn serving<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let mut started = Self::start(args);
        started.base_url().await;
        started
    }

    /// `http://127.0.0.1:PORT`, once it is printed.
    pub async fn base_url(&mut self) -> String {
        if let Some(base) = &self.base {
            return base.clone();
        }
        let base = self.line("its address", START_LIMIT, |line| {
            let start = line.find(LISTENING)? + LISTENING.len();
            let url = line
                .get(start..)?
                .split(|end: char| end.is_whitespace() || end == '"')
                .next()?;
            url.starts_with("http://")
                .then(|| url.trim_end_matches(['/', '.']).to_owned())
        });
        let base = base.await;
        self.base = Some(base.clone());
        base
    }

    /// See [`Process::line`].
    pub async fn line<T>(
        &mut self,
        what: &str,
        limit: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> T {
        self.process.line(what, limit, find).await
    }

    /// Waits for a line that holds `text`, and returns it.
    pub async fn line_with(&mut self, text: &str, limit: Duration) -> String {
        let what = format!("a line with {text:?}");
        self.line(&what, limit, |line| {
            line.contains(text).then(|| line.to_owned())
        })
        .await
    }

    pub fn output(&self) -> Vec<String> {
        self.process.output()
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ctrl-C in a terminal reaches the whole group; this does too.
    pub async fn interrupt(&mut self) -> ExitStatus {
        self.process.signal_group(Signal::SIGINT);
        self.process.ended(STOP_LIMIT).await
    }

    /// A supervisor's SIGTERM, to the process alone.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.process.signal(Signal::SIGTERM);
        self.process.ended(STOP_LIMIT).await
    }

    /// kill -9, to the process alone: what it started must find its own end or be found by the next start.
    pub async fn kill(&mut self) -> ExitStatus {
        self.process.signal(Signal::SIGKILL);
        self.process.ended(STOP_LIMIT).await
    }

    /// SIGSTOP: it stands still and holds on to what it has, as on a machine that is suspended.
    pub fn freeze(&self) {
        self.process.signal_now(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.process.signal_now(Signal::SIGCONT);
    }

    /// Waits for an end that it comes to by itself.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        self.process.ended(limit).await
    }

    /// See [`Process::no_orphans`].
    pub async fn no_orphans(&self) {
        self.process.no_orphans(STOP_LIMIT).await;
    }

    /// See [`Process::descendants`].
    pub fn descendants(&self) -> Vec<String> {
        self.process.descendants()
    }
}

/// Runs a command of `fencepost` that ends by itself, and returns what it wrote.
pub fn run<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    command(args)
        .output()
        .expect("the fencepost binary can be run")
}

fn command<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(path());
    command.args(args);
    command
}

/// `FENCEPOST_BIN`, or the debug binary of this workspace.
///
/// # Panics
///
/// When there is none, saying how to build it.
pub fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("FENCEPOST_BIN") {
        return PathBuf::from(path);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), PathBuf::from);
    let path = target.join("debug/fencepost");
    assert!(
        path.exists(),
        "{} is missing; build it with: cargo build -p fencepost",
        path.display()
    );
    path
}
