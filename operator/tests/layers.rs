//! Data goes one way, and each part keeps to its own room: only the store has SQL, only the MCP crates name
//! rmcp, the ledger imports nothing of ours, and modules of the operator import only down the path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn gather(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                into.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    gather(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
        &mut found,
    );
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

/// Files of `folder` that hold one of `words`.
fn holding(folder: &str, words: &[&str]) -> Vec<String> {
    sources(folder)
        .into_iter()
        .filter(|(_, text)| words.iter().any(|word| text.contains(word)))
        .map(|(path, _)| path.display().to_string())
        .collect()
}

#[test]
fn the_ledger_is_pure() {
    let impure = [
        "tokio",
        "sqlx",
        "kube",
        "SystemTime::now",
        "Instant::now",
        "Utc::now",
        "rand::",
        "fencepost_",
    ];
    assert_eq!(holding("ledger/src", &impure), Vec::<String>::new());
}

#[test]
fn only_the_store_has_sql_and_only_the_mcp_crates_name_rmcp() {
    for folder in [
        "src",
        "mcp/src",
        "demo/src",
        "views/src",
        "../dashboard/src",
        "../crds/src",
    ] {
        assert_eq!(
            holding(folder, &["sqlx::query"]),
            Vec::<String>::new(),
            "{folder} has SQL"
        );
    }
    for folder in [
        "src",
        "store/src",
        "ledger/src",
        "views/src",
        "../dashboard/src",
        "../crds/src",
    ] {
        assert_eq!(
            holding(folder, &["rmcp::"]),
            Vec::<String>::new(),
            "{folder} names rmcp"
        );
    }
}

/// Kubernetes is called by the controllers, the lease and access control; commands build the client. Everything else has the
/// types of the custom resources at most.
#[test]
fn only_cluster_and_access_name_kube() {
    let named = holding(
        "src",
        &[
            "kube::Client",
            "kube::Api",
            "kube::client",
            "kube::runtime",
            "use kube::",
        ],
    );
    let elsewhere: Vec<&String> = named
        .iter()
        .filter(|path| {
            !["src/cluster/", "src/access/", "src/commands/"]
                .iter()
                .any(|room| path.contains(room))
        })
        .collect();
    assert_eq!(elsewhere, Vec::<&String>::new());
    for folder in [
        "store/src",
        "mcp/src",
        "demo/src",
        "views/src",
        "../dashboard/src",
    ] {
        assert_eq!(
            holding(folder, &["kube::", "k8s_openapi"]),
            Vec::<String>::new(),
            "{folder} names kube"
        );
    }
}

/// Down: manifest, desired, engine, outbox; up: ledger to api, web. Nobody but the composition root looks back.
#[test]
fn modules_import_only_down_the_path() {
    for (module, never) in [
        (
            "manifest",
            &[
                "desired", "engine", "outbox", "api", "web", "runtime", "metrics", "publish",
                "cluster", "access",
            ][..],
        ),
        (
            "desired",
            &[
                "engine", "outbox", "api", "web", "runtime", "metrics", "publish", "cluster",
                "access",
            ],
        ),
        (
            "engine",
            &[
                "outbox", "api", "web", "runtime", "manifest", "commands", "cluster", "access",
            ],
        ),
        (
            "outbox",
            &[
                "engine", "api", "web", "runtime", "manifest", "commands", "cluster", "access",
            ],
        ),
        (
            "metrics",
            &[
                "engine", "outbox", "api", "web", "runtime", "manifest", "desired", "cluster",
                "access",
            ],
        ),
        (
            "api",
            &[
                "engine", "outbox", "web", "runtime", "manifest", "desired", "commands", "cluster",
                "access",
            ],
        ),
        (
            "web",
            &[
                "engine", "outbox", "runtime", "manifest", "desired", "commands", "metrics",
                "cluster", "access",
            ],
        ),
        (
            "postgres",
            &[
                "engine", "outbox", "api", "web", "runtime", "manifest", "desired", "metrics",
                "cluster", "access",
            ],
        ),
        // What is declared in a cluster comes in beside the manifests of files; `api` only for its readiness.
        (
            "cluster",
            &["engine", "outbox", "web", "runtime", "commands", "access"],
        ),
        // In front of api and web, which do not know of it.
        (
            "access",
            &[
                "engine", "outbox", "runtime", "manifest", "desired", "commands", "metrics",
                "publish", "cluster", "postgres",
            ],
        ),
    ] {
        for (path, text) in sources(&format!("src/{module}")) {
            let imported = imported(&text);
            for other in never {
                assert!(
                    !imported.contains(&(*other).to_owned()),
                    "{} imports {other}, which {module} must not know",
                    path.display()
                );
            }
        }
    }
}

/// The modules of the crate that a file names, by `crate::name` or in a group `crate::{name::..}`.
fn imported(text: &str) -> Vec<String> {
    // Comments may speak of anything.
    let code: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let text = code.join("\n");
    let word = |text: &str| {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    let mut found = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let rest = &text[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && c.is_alphabetic() => {
                    found.push(word(&group[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn grouped_imports_are_seen() {
    let text =
        "use crate::{\n    desired::{Desired, engine},\n    live::Live,\n};\ncrate::metrics::Name";
    assert_eq!(imported(text), ["desired", "live", "metrics"]);
}
