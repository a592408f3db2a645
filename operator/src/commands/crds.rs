//! `fencepost crds`: prints the custom resource definitions, for `kubectl apply -f -`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use fencepost_crds::{CrdYamlError, all_crds_yaml};

/// Why the definitions could not be printed.
#[derive(Debug, thiserror::Error)]
enum CrdsError {
    #[error(transparent)]
    Yaml(#[from] CrdYamlError),
    #[error("the definitions could not be written to the output: {0}")]
    Output(#[from] io::Error),
}

/// The command: all five go to stdout.
pub fn run() -> ExitCode {
    match print(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(out: &mut impl Write) -> Result<(), CrdsError> {
    out.write_all(all_crds_yaml()?.as_bytes())?;
    Ok(())
}
