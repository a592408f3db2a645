//! Manifests from files to findings: the broken ones of `tests/broken`, the examples, and every YAML block of the pages on kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use fencepost::{
    commands::validate::{self, Verdict},
    desired::desired,
    manifest::{LoadOutcome, UidRegistry, load},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "no .{extension} files in {}",
        folder.display()
    );
    files
}

fn validated(paths: &[PathBuf]) -> (Verdict, String) {
    let mut text = Vec::new();
    let verdict = validate::validate(paths, &mut text).unwrap();
    (verdict, String::from_utf8(text).unwrap())
}

/// What `validate` says of each broken manifest, word for word. After a change that is meant:
/// `UPDATE_EXPECTED=1 cargo test -p fencepost --test manifests`, and read the difference.
#[test]
fn broken_manifests_get_errors_that_a_person_can_act_on() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut found = String::new();
    let broken = files(&folder, "yaml");
    assert_eq!(broken.len(), 10);
    for path in broken {
        let (verdict, text) = validated(std::slice::from_ref(&path));
        assert_eq!(verdict.exit_code(), 1, "{}", path.display());
        assert!(!text.contains("hunter2"), "a secret is shown:\n{text}");
        let name = path.file_name().unwrap().display();
        writeln!(
            found,
            "== {name}
{text}"
        )
        .unwrap();
    }
    let found = found.replace(&format!("{}/", folder.display()), "");
    let expected = folder.join("expected.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&expected, &found).unwrap();
    }
    let expected = fs::read_to_string(expected).unwrap_or_default();
    assert!(found == expected, "{}", difference(&expected, &found));
}

fn difference(expected: &str, found: &str) -> String {
    let gone = expected
        .lines()
        .filter(|line| !found.contains(line))
        .map(|line| format!("- {line}\n"));
    let new = found
        .lines()
        .filter(|line| !expected.contains(line))
        .map(|line| format!("+ {line}\n"));
    gone.chain(new).collect()
}

#[test]
fn the_quickstart_is_valid_and_its_load_is_known() {
    let (verdict, text) = validated(&[root().join("examples/quickstart")]);
    assert_eq!(verdict, Verdict::Valid, "{text}");
    assert!(
        text.contains("6 objects read, 0 errors, 0 warnings"),
        "{text}"
    );
    // One polled at 5 s, two audited at 60 s: 720 and 120 reads an hour before jitter.
    assert!(
        text.contains("720 to 800") && text.contains("120 to 133") && text.contains("840 to 933"),
        "{text}"
    );
}

#[test]
fn every_yaml_block_of_the_pages_on_kinds_is_valid() {
    for page in files(&root().join("docs/kinds"), "md") {
        let text = fs::read_to_string(&page).unwrap();
        let blocks: Vec<&str> = text
            .split("```yaml\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap_or_default())
            .collect();
        assert!(!blocks.is_empty(), "{} has no example", page.display());
        for block in blocks {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("block.yaml"), block).unwrap();
            let outcome = load_all(folder.path(), &mut UidRegistry::default());
            assert!(
                outcome.errors.is_empty(),
                "{}: {:#?}\n{block}",
                page.display(),
                outcome.errors
            );
        }
    }
}

fn load_all(folder: &Path, uids: &mut UidRegistry) -> LoadOutcome {
    load(&[folder.to_owned()], uids)
}

const SERVER: &str = "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: docs}\nspec: {url: http://docs.example/mcp}\n";
const WATCH: &str = "apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {name: guide}\nspec: {serverRef: {name: docs}, uris: ['docs:///a.md']}\n";

#[test]
fn a_half_edited_file_deletes_nothing_and_a_deleted_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    let mut uids = UidRegistry::default();
    fs::write(&file, format!("{SERVER}---\n{WATCH}")).unwrap();
    let before = load_all(folder.path(), &mut uids).objects;
    assert_eq!(before.len(), 2);

    fs::write(
        &file,
        format!("{SERVER}---\n{}", WATCH.replace("uris:", "uris: [")),
    )
    .unwrap();
    let broken = load_all(folder.path(), &mut uids);
    assert_eq!((broken.errors.len(), broken.objects.len()), (1, 1));
    let kept = broken.keeping_from_broken_files(&before);
    assert_eq!(kept.ids(), before.ids());
    assert_eq!(desired(&kept), desired(&before), "same objects, same uids");

    fs::write(&file, format!("{SERVER}---\n{WATCH}")).unwrap();
    let mended = load_all(folder.path(), &mut uids);
    assert_eq!(
        desired(&mended.objects),
        desired(&before),
        "mended, it is the same object as before"
    );

    fs::write(&file, SERVER).unwrap();
    let without = load_all(folder.path(), &mut uids);
    assert_eq!(without.keeping_from_broken_files(&mended.objects).len(), 1);
    fs::write(&file, format!("{SERVER}---\n{WATCH}")).unwrap();
    let again = load_all(folder.path(), &mut uids);
    let uid = |objects: &fencepost::manifest::ObjectSet| {
        objects.watches.values().next().unwrap().uid.clone()
    };
    assert_ne!(
        uid(&again.objects),
        uid(&before),
        "it had disappeared: now it is another object"
    );
}

#[test]
fn a_folder_that_is_gone_deletes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("manifests");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("server.yml"), SERVER).unwrap();
    let mut uids = UidRegistry::default();
    let before = load_all(&inner, &mut uids);
    fs::rename(&inner, folder.path().join("elsewhere")).unwrap();
    let gone = load_all(&inner, &mut uids);
    assert_eq!(gone.errors.len(), 1, "{:?}", gone.errors);
    assert_eq!(
        gone.keeping_from_broken_files(&before.objects),
        before.objects
    );
    fs::rename(folder.path().join("elsewhere"), &inner).unwrap();
    assert_eq!(load_all(&inner, &mut uids).objects, before.objects);
}

#[test]
fn json_and_lists_are_read_and_two_files_with_one_object_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "fencepost.dev/v1alpha1", "kind": "MCPServer",
        "metadata": {"name": "docs", "uid": "given", "resourceVersion": "7"}, "spec": {"url": "http://docs.example/mcp"}, "status": {"x": 1}}]}"#;
    fs::write(folder.path().join("a.json"), json).unwrap();
    fs::write(folder.path().join("b.yaml"), SERVER).unwrap();
    fs::write(folder.path().join("notes.txt"), "no manifest").unwrap();
    let outcome = load_all(folder.path(), &mut UidRegistry::default());
    let server = outcome.objects.servers.values().next().unwrap();
    assert_eq!(
        (server.uid.as_str(), server.name.namespace.as_str()),
        ("given", "default")
    );
    assert_eq!(outcome.errors.len(), 1);
    assert!(
        outcome.errors[0].message.contains("already given in")
            && outcome.errors[0].message.contains("a.json:1")
    );
}

#[test]
fn no_path_is_a_usage_error() {
    assert_eq!(validated(&[]).0.exit_code(), 2);
    assert_eq!(
        validated(&[PathBuf::from("does-not-exist.yaml")])
            .0
            .exit_code(),
        1
    );
}
