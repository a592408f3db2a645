//! What was real in a test, in one line: printed by `make test` after the tests have passed.

use std::{fs::OpenOptions, io::Write as _};

/// The file that lines are added to, if there is one.
const FILE: &str = "FENCEPOST_TEST_REPORT";

/// Says what the running test stands on. A test says it once for each thing that it starts.
///
/// # Panics
///
/// When the file is named and cannot be written.
pub fn real(what: &str) {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .expect("the report can be written");
    // One write a line: tests run side by side.
    file.write_all(format!("{test}: {what}\n").as_bytes())
        .expect("the report can be written");
}
