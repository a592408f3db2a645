//! Ends what a test process leaves behind, however it ended.
//!
//! Statics are never dropped and a killed process drops nothing, but the shared control plane must not outlive its tests. So a shell
//! in a process group of its own reads from a pipe that only the test process holds. At its end it kills every process that carries
//! the mark in its environment and removes the folder.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use std::os::unix::process::CommandExt as _;

/// The mark: this variable, set to the folder.
const MARK: &str = "FENCEPOST_TEST_CLUSTER";

/// Fifty looks, a tenth of a second apart: a killed process is gone within a few, however large it is.
const SCRIPT: &str = r#"
while read -r _; do :; done
marked() { grep -lzsFx "$1" /proc/[0-9]*/environ | cut -d/ -f3; }
looks=0
while left=$(marked "$2=$1") && [ -n "$left" ] && [ "$looks" -lt 50 ]; do
  kill -KILL $left
  looks=$((looks + 1))
  sleep 0.1
done
rm -rf "$1"
"#;

pub struct Reaper {
    folder: PathBuf,
    shell: Child,
}

impl Reaper {
    /// Makes the folder, which it removes at the end.
    pub fn watch() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("fencepost-cluster-")
            .tempdir()
            .expect("a temporary folder can be made")
            .keep();
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(&folder)
            .arg(MARK)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh can be started");
        Self { folder, shell }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Marks what the command starts.
    pub fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.folder);
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // It closes the pipe, and waits for the end.
        drop(self.shell.wait());
    }
}
