//! A server process, whatever it is written in, that says which port it took.

use std::{process::Command, time::Duration};

use nix::sys::signal::Signal;

use crate::process::Process;

/// Node and Python need a second or two; a machine busy with a build needs many.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a server may take to end on SIGTERM before it is killed: some never do while a client listens.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// What the preload of the Node servers and our Python script write once they listen.
const LISTENING: &str = "fencepost-test: listening on ";

/// The environment variable with the port to take; 0 is any.
const PORT: &str = "FENCEPOST_TEST_PORT";

pub struct RealServer {
    name: &'static str,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    process: Option<Process>,
    port: u16,
}

impl RealServer {
    pub(super) async fn start(
        name: &'static str,
        command: impl Fn() -> Command + Send + Sync + 'static,
    ) -> Self {
        let mut server = Self {
            name,
            command: Box::new(command),
            process: None,
            port: 0,
        };
        server.start_again().await;
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn output(&self) -> Vec<String> {
        self.process
            .as_ref()
            .map(Process::output)
            .unwrap_or_default()
    }

    /// Ends it with SIGTERM, then by force.
    pub async fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        process.signal_group(Signal::SIGTERM);
        let start = std::time::Instant::now();
        while process.status().is_none() && start.elapsed() < STOP_LIMIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it on the port that it had.
    pub async fn start_again(&mut self) {
        assert!(self.process.is_none(), "{} is running", self.name);
        let mut command = (self.command)();
        command.env(PORT, self.port.to_string());
        let mut process = Process::start(self.name, &mut command);
        let port = process.line("its port", START_LIMIT, |line| {
            line.strip_prefix(LISTENING)?.parse().ok()
        });
        self.port = port.await;
        self.process = Some(process);
    }
}

/// A Node program with the preload that keeps it on loopback.
pub(super) fn node(program: &str) -> Command {
    let mut command = Command::new("node");
    command
        .arg("--require")
        .arg(super::install::sources().join("preload-loopback.cjs"));
    command.arg(super::install::node().join("node_modules").join(program));
    command
}
