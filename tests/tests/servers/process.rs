//! A process is watched to its end, and so is what it started.

use std::{process::Command, time::Duration};

use fencepost_tests::process::{Process, describe};
use nix::sys::signal::Signal;

const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn lines_end_and_orphans_are_seen() {
    let mut command = Command::new("sh");
    // The sleeper leaves the group, as a daemon does.
    command.args(["-c", "setsid sleep 600 & echo ready; echo aside >&2; wait"]);
    let mut process = Process::start("shell", &mut command);
    process
        .line("ready", LIMIT, |line| (line == "ready").then_some(()))
        .await;
    process
        .line("aside", LIMIT, |line| (line == "aside").then_some(()))
        .await;
    process.signal(Signal::SIGKILL);
    assert_eq!(describe(process.ended(LIMIT).await), "signal 9");
    let left = process.descendants();
    assert!(
        left.len() == 1 && left[0].ends_with("sleep 600"),
        "{left:?}"
    );
    let pid = left[0].split(' ').next().unwrap().to_owned();
    drop(process);
    let gone = || {
        !std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("sleep"))
    };
    fencepost_tests::wait::until_value("the orphan is gone", LIMIT, async || gone(), |gone| *gone)
        .await;
}

#[tokio::test]
#[should_panic(expected = "ended (exit status: 3) before never; it wrote:\nlast words")]
async fn an_early_end_is_told_with_what_was_written() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo last words; sleep 0.3; exit 3"]);
    let mut process = Process::start("shell", &mut command);
    process
        .line("never", LIMIT, |line| (line == "never").then_some(()))
        .await;
}
