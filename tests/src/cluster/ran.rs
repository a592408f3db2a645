//! What a command that has ended wrote, and how it ended.

use std::process::{ExitStatus, Output};

use crate::process::describe;

#[derive(Debug)]
pub struct Ran {
    /// As a person would have typed it.
    pub command: String,
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

impl Ran {
    pub(super) fn new(command: String, output: &Output) -> Self {
        Self {
            command,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status,
        }
    }

    pub fn succeeded(&self) -> bool {
        self.status.success()
    }

    /// What it wrote to stdout.
    ///
    /// # Panics
    ///
    /// When it failed, with all that it wrote.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.succeeded(), "{}", self.told());
        self.stdout
    }

    /// What it wrote to stderr.
    ///
    /// # Panics
    ///
    /// When it succeeded, with all that it wrote.
    #[track_caller]
    pub fn refused(self) -> String {
        assert!(!self.succeeded(), "should have failed: {}", self.told());
        self.stderr
    }

    fn told(&self) -> String {
        format!(
            "{}: {}\n{}{}",
            self.command,
            describe(self.status),
            self.stderr,
            self.stdout
        )
    }
}
