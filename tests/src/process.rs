//! A child process with its own group and a mark by which its descendants are found.
//!
//! Out: the lines it writes, from both streams, as they come; its end; whether anything that it started outlived it. On drop the
//! group is killed and waited for, so that no test leaves a process behind.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use uuid::Uuid;

use crate::wait;

/// The mark in the environment. A descendant inherits it even when it leaves the process group.
const MARK: &str = "FENCEPOST_TEST_RUN";

/// Lines kept of a process. A chatty one loses its oldest, never the test's memory.
const MOST_LINES: usize = 20_000;

pub struct Process {
    name: String,
    mark: String,
    child: Child,
    output: Arc<Mutex<Vec<String>>>,
    ended: Option<ExitStatus>,
}

impl Process {
    /// # Panics
    ///
    /// When the program cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Self {
        let mark = Uuid::new_v4().simple().to_string();
        let child = command
            .env(MARK, &mark)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => panic!(
                "{name} could not be started ({}): {error}",
                command.get_program().display()
            ),
        };
        let output = Arc::new(Mutex::new(Vec::new()));
        follow(child.stdout.take(), &output);
        follow(child.stderr.take(), &output);
        Self {
            name: name.to_owned(),
            mark,
            child,
            output,
            ended: None,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote so far, both streams together.
    pub fn output(&self) -> Vec<String> {
        self.output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits for a line for which `find` gives something, among those written so far too.
    ///
    /// # Panics
    ///
    /// When the limit passes or the process ends first, with all that it wrote.
    pub async fn line<T>(
        &mut self,
        what: &str,
        limit: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> T {
        let name = self.name.clone();
        wait::until(&format!("{name}: {what}"), limit, async || {
            let ended = self.status();
            if let Some(found) = self.output().iter().find_map(|line| find(line)) {
                return Ok(found);
            }
            if let Some(status) = ended {
                panic!(
                    "{name} ended ({status}) before {what}; it wrote:\n{}",
                    self.output().join("\n")
                );
            }
            Err(self.output())
        })
        .await
    }

    /// The exit status once it ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .expect("a child of ours can be waited for");
        }
        self.ended
    }

    /// Signals the process itself, as Ctrl-C in another terminal or a supervisor does.
    pub fn signal(&mut self, signal: Signal) {
        if self.status().is_none() {
            kill(pid(self.child.id()), signal).expect("a live child of ours can be signalled");
        }
    }

    /// As [`Process::signal`], for a process that is known to be alive.
    pub fn signal_now(&self, signal: Signal) {
        kill(pid(self.child.id()), signal).expect("a live child of ours can be signalled");
    }

    /// Signals its whole group, as Ctrl-C in a terminal does.
    pub fn signal_group(&mut self, signal: Signal) {
        if self.status().is_none() {
            killpg(pid(self.child.id()), signal).expect("a live group of ours can be signalled");
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When the limit passes, with all that it wrote.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let name = self.name.clone();
        wait::until(&format!("{name} ends"), limit, async || {
            self.status().ok_or_else(|| self.output())
        })
        .await
    }

    /// Processes alive that it or its descendants started, as "pid command line". The process itself is one while it lives.
    pub fn descendants(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        processes()
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|entry| entry == mark.as_bytes())
            })
            .filter(|pid| !is_zombie(*pid))
            .map(|pid| format!("{pid} {}", command_line(pid)))
            .collect()
    }

    /// Waits until nothing is left that it started.
    ///
    /// # Panics
    ///
    /// When the limit passes, naming what is left.
    pub async fn no_orphans(&self, limit: Duration) {
        wait::until_value(
            &format!("{}: no process left behind", self.name),
            limit,
            async || self.descendants(),
            Vec::is_empty,
        )
        .await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Failures mean that it is gone, which is the aim.
        let _ = killpg(pid(self.child.id()), Signal::SIGKILL);
        drop(self.child.wait());
        for left in self.descendants() {
            if let Some(number) = left
                .split(' ')
                .next()
                .and_then(|number| number.parse().ok())
            {
                let _ = kill(pid(number), Signal::SIGKILL);
            }
        }
    }
}

/// How a process ended, in the words of a shell.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed())
}

fn follow(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<Vec<String>>>) {
    let Some(stream) = stream else { return };
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            if output.len() >= MOST_LINES {
                output.drain(..MOST_LINES / 2);
            }
            output.push(text);
        }
    });
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn is_zombie(pid: u32) -> bool {
    // The state follows the command in parentheses, which may hold anything.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn command_line(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&raw)
        .replace('\0', " ")
        .trim()
        .to_owned()
}
