//! Installing the servers, once for all tests of this checkout.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// Written last, so that an installation that was cut off is done again.
const STAMP: &str = "installed";

/// The folder with `node_modules`.
pub fn node() -> PathBuf {
    let lock_file = "package-lock.json";
    installed("node", lock_file, |folder| {
        for name in ["package.json", lock_file, ".npmrc"] {
            fs::copy(sources().join(name), folder.join(name))
                .expect("the lists of packages can be copied");
        }
        let mut command = Command::new("npm");
        command
            .args([
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ])
            .current_dir(folder);
        vec![command]
    })
}

/// The Python of the virtual environment.
pub fn python() -> PathBuf {
    let requirements = "requirements.txt";
    let folder = installed("python", requirements, |folder| {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "."]).current_dir(folder);
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ]);
        pip.arg(sources().join(requirements));
        vec![venv, pip]
    });
    folder.join("bin/python")
}

/// What the servers are started with: scripts of ours and the lists of packages.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp-servers")
}

/// Test binaries run at once; the first installs, the others wait for it at the lock.
fn installed(name: &str, list: &str, commands: impl FnOnce(&Path) -> Vec<Command>) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache");
    fs::create_dir_all(&cache).expect("tests/.cache can be made");
    let lock = File::create(cache.join(format!("{name}.lock"))).expect("a lock file can be made");
    lock.lock().expect("the lock can be waited for");
    let folder = cache.join(name);
    let wanted = fs::read(sources().join(list)).expect("the list of packages is there");
    if fs::read(folder.join(STAMP)).is_ok_and(|present| present == wanted) {
        return folder;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old installation can be removed");
    }
    fs::create_dir_all(&folder).expect("tests/.cache is writable");
    for mut command in commands(&folder) {
        match command.output() {
            Ok(done) if done.status.success() => {}
            Ok(done) => panic!(
                "{command:?} failed: {}",
                String::from_utf8_lossy(&done.stderr)
            ),
            Err(error) => panic!(
                "{command:?} could not be run: {error}; scripts/install.sh installs what is missing"
            ),
        }
    }
    fs::write(folder.join(STAMP), wanted).expect("the stamp can be written");
    folder
}
