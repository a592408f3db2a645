//! The committed YAML is what the types say, and the schemas keep what the docs promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

const MEND: &str = "cargo run -p fencepost-crds --example generate";

#[test]
fn committed_yaml_is_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml");
    let mut expected = BTreeSet::new();
    for (name, yaml) in fencepost_crds::crd_files().unwrap() {
        let committed = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            committed == yaml,
            "crds/yaml/{name} is not what the types say; run: {MEND}"
        );
        expected.insert(name);
    }
    let found: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        found, expected,
        "crds/yaml holds other files than the five CRDs; remove them, then run: {MEND}"
    );
}

#[test]
fn every_field_is_described_and_every_bound_of_cel_is_there() {
    for crd in fencepost_crds::crds() {
        let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            walk(&format!("{name} {part}"), &schema["properties"][part]);
        }
    }
}

/// A field without a description, or a string or list under a CEL rule without a bound (an API server would refuse the rule).
fn walk(path: &str, schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(
            field["description"].is_string(),
            "{path} has no description"
        );
        walk(&path, field);
    }
    if schema["items"].is_object() {
        walk(&format!("{path}[]"), &schema["items"]);
    }
    assert!(schema["nullable"].is_null(), "{path} is nullable");
    if schema["x-kubernetes-validations"].is_array() {
        match schema["type"].as_str() {
            Some("string") => assert!(
                schema["maxLength"].is_u64(),
                "{path} has a rule and no maxLength"
            ),
            Some("array") => assert!(
                schema["maxItems"].is_u64(),
                "{path} has a rule and no maxItems"
            ),
            _ => {}
        }
    }
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{path}: a rule without a message"));
        assert!(
            message.contains("; "),
            "{path}: `{message}` does not say what to do"
        );
    }
}

#[test]
fn conventions_of_every_kind() {
    for crd in fencepost_crds::crds() {
        let name = &crd["metadata"]["name"];
        let spec = &crd["spec"];
        assert_eq!(spec["group"], fencepost_crds::GROUP);
        assert_eq!(spec["scope"], "Namespaced", "{name}");
        assert_eq!(spec["names"]["categories"][0], "fencepost", "{name}");
        assert!(spec["names"]["shortNames"][0].is_string(), "{name}");
        let version = &spec["versions"][0];
        assert_eq!(version["name"], fencepost_crds::VERSION);
        assert!(version["subresources"]["status"].is_object(), "{name}");
        let columns = version["additionalPrinterColumns"].as_array().unwrap();
        assert_eq!(columns[0]["name"], "Ready", "{name}");
        assert!(
            columns.iter().any(|column| column["priority"] == 1),
            "{name} has no wide column"
        );
        let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        for field in ["conditions", "observedGeneration", "lastHandledReconcileAt"] {
            assert!(status[field].is_object(), "{name}: status.{field}");
        }
    }
}
