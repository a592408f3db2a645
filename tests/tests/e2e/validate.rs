//! `fencepost validate` and bad flags, as a user meets them.

use fencepost_tests::binary;

const BROKEN: &str = "../operator/tests/broken";

#[test]
fn ten_broken_manifests_give_ten_useful_errors() {
    let mut seen = 0;
    for entry in std::fs::read_dir(BROKEN).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        seen += 1;
        let output = binary::run(["validate".as_ref(), path.as_os_str()]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {text}", path.display());
        assert!(
            text.contains(path.file_name().unwrap().to_str().unwrap()) && text.contains("fix: "),
            "{text}"
        );
    }
    assert!(seen >= 10, "{seen} broken manifests");
}

#[test]
fn the_quickstart_is_valid_and_its_read_load_is_shown() {
    let output = binary::run(["validate", "../examples/quickstart"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("an hour"), "{text}");
}

#[test]
fn bad_usage_exits_with_2_and_bad_flags_are_named() {
    for args in [
        &["validate"][..],
        &["dev", "x", "--listen", "nowhere"],
        &["dev"],
        &["frobnicate"],
    ] {
        let output = binary::run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let output = binary::run(["dev", "../examples/quickstart", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-open"));
    let url = "postgres://somebody:hunter2@127.0.0.1:1/nowhere";
    let output = binary::run(["migrate", "--database-url", url]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("127.0.0.1:1") && !text.contains("hunter2"),
        "{text}"
    );
}
