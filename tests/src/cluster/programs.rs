//! Where the programs are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// A program that `KUBEBUILDER_ASSETS` has, where it is set, and as built otherwise.
///
/// # Panics
///
/// When that folder does not have it, or it is not built.
pub fn server(name: &str) -> PathBuf {
    let Some(folder) = set("KUBEBUILDER_ASSETS") else {
        return built(name);
    };
    let program = Path::new(&folder).join(name);
    assert!(
        program.exists(),
        "KUBEBUILDER_ASSETS={folder} has no {name}"
    );
    program
}

/// As [`server`], but most such folders do not have this one: it is as built then.
pub fn controller_manager() -> PathBuf {
    let name = "kube-controller-manager";
    set("KUBEBUILDER_ASSETS")
        .map(|folder| PathBuf::from(folder).join(name))
        .filter(|program| program.exists())
        .unwrap_or_else(|| built(name))
}

/// `FENCEPOST_APISERVER`, or where `scripts/build-apiserver.sh` puts them.
///
/// # Panics
///
/// When it is not there, saying how to build it.
pub fn built(name: &str) -> PathBuf {
    let folder = set("FENCEPOST_APISERVER").map_or_else(
        || {
            // As Makefile and script see it: relative to the workspace.
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            workspace
                .join(set("CARGO_TARGET_DIR").unwrap_or_else(|| "target".to_owned()))
                .join("apiserver")
        },
        PathBuf::from,
    );
    let program = folder.join(name);
    assert!(
        program.exists(),
        "{} is missing; build it with: scripts/build-apiserver.sh",
        program.display()
    );
    program
}

/// The value of a variable that is set to something.
pub fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
