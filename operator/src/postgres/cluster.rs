//! Creates a cluster: all of it, or nothing that a later start would take for one.

use std::{
    fs,
    io::{self, Write},
    process::{Command, Output, Stdio},
};

use super::{
    EmbeddedError,
    binaries::Binaries,
    folder::{DATABASE, Folder},
    run_as::RunAs,
    server::{clean_environment, complaint},
};

/// The version that brought a Unicode locale of its own, the same on every system.
const BUILTIN_LOCALE_SINCE: u32 = 17;

/// Creates the cluster and the database in it, beside its place, and moves it there when it is whole:
/// a process that is killed in between leaves nothing but a folder that the next start clears.
pub(super) async fn create(
    binaries: &Binaries,
    folder: &Folder,
    run_as: &RunAs,
) -> Result<(), EmbeddedError> {
    let unfinished = folder.unfinished();
    for path in [&unfinished, &folder.data()] {
        // A data folder without PG_VERSION is not a cluster; one with anything in it is not ours to clear.
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if path == &unfinished => {
                fs::remove_dir_all(path).map_err(|e| folder.failed(e))?;
            }
            Err(error) => return Err(folder.failed(error)),
            Ok(()) => {}
        }
    }
    folder.new_password(run_as).map_err(|e| folder.failed(e))?;

    let mut initdb = Command::new(binaries.bin.join("initdb"));
    initdb
        .arg("-D")
        .arg(&unfinished)
        .arg("--pwfile")
        .arg(folder.password_file());
    initdb.args([
        "-U",
        DATABASE,
        "-A",
        "scram-sha-256",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-instructions",
    ]);
    if binaries
        .major
        .parse::<u32>()
        .is_ok_and(|major| major >= BUILTIN_LOCALE_SINCE)
    {
        initdb.args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]);
    }
    run(initdb, String::new(), folder, run_as).await?;

    let mut single = Command::new(binaries.bin.join("postgres"));
    single
        .arg("--single")
        .arg("-D")
        .arg(&unfinished)
        .arg("postgres");
    run(
        single,
        format!("create database {DATABASE}\n"),
        folder,
        run_as,
    )
    .await?;

    fs::rename(&unfinished, folder.data()).map_err(|e| folder.failed(e))
}

/// Runs a tool to its end, off the runtime's threads: creating a cluster takes seconds.
async fn run(
    mut command: Command,
    input: String,
    folder: &Folder,
    run_as: &RunAs,
) -> Result<(), EmbeddedError> {
    clean_environment(&mut command);
    run_as.apply(&mut command);
    command
        .current_dir(folder.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let finish = move || -> io::Result<Output> {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    };
    let output = tokio::task::spawn_blocking(finish)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|e| folder.failed(e))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(complaint(folder, &String::from_utf8_lossy(&output.stderr)))
    }
}
