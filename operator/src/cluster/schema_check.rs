//! Whether the cluster's custom resource definitions know every field that this version writes or reads.
//!
//! In: the API server's published `OpenAPI`, which every identity may read. Out: the kinds and fields that are missing. A definition
//! that is newer than this version has more, and that is well.

use kube::Client;
use serde_json::Value;

use super::failure::Failure;

/// A definition that is missing or too old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// `plural.group`.
    pub definition: String,
    /// Paths of fields that it does not know; empty: there is no such definition.
    pub fields: Vec<String>,
}

impl Outdated {
    pub fn sentence(&self) -> String {
        let remedy =
            "apply this version's definitions: fencepost crds | kubectl apply --server-side -f -";
        if self.fields.is_empty() {
            format!("the cluster has no {}; {remedy}", self.definition)
        } else {
            format!(
                "{} is too old, it does not know {}; {remedy}",
                self.definition,
                self.fields.join(", ")
            )
        }
    }
}

/// Fields named of one definition: enough to see which version it is.
const MAX_FIELDS: usize = 5;

/// Asks the API server once.
pub async fn outdated(client: &Client) -> Result<Vec<Outdated>, Failure> {
    let path = format!("/openapi/v3/apis/{}", fencepost_crds::API_VERSION);
    let request = http::Request::get(path)
        .body(Vec::new())
        .map_err(|error| Failure::of(&kube::Error::HttpError(error)))?;
    let there = match client.request::<Value>(request).await {
        Ok(document) => document,
        Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
        Err(error) => return Err(Failure::of(&error)),
    };
    Ok(compare(&there))
}

fn compare(there: &Value) -> Vec<Outdated> {
    let mut outdated = Vec::new();
    for definition in fencepost_crds::crds() {
        let text = |pointer| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("/metadata/name").to_owned();
        let kind = text("/spec/names/kind");
        let schemas = there
            .pointer("/components/schemas")
            .and_then(Value::as_object);
        let schema = schemas.into_iter().flatten().find(|(_, schema)| {
            schema["x-kubernetes-group-version-kind"]
                .as_array()
                .is_some_and(|kinds| {
                    kinds.iter().any(|known| {
                        known["kind"] == kind
                            && known["group"] == fencepost_crds::GROUP
                            && known["version"] == fencepost_crds::VERSION
                    })
                })
        });
        let Some((_, schema)) = schema else {
            outdated.push(Outdated {
                definition: name,
                fields: Vec::new(),
            });
            continue;
        };
        let versions = definition
            .pointer("/spec/versions")
            .and_then(Value::as_array);
        let ours = versions
            .into_iter()
            .flatten()
            .find(|version| version["name"] == fencepost_crds::VERSION)
            .map_or(&Value::Null, |version| &version["schema"]);
        let mut fields = Vec::new();
        for part in ["spec", "status"] {
            let pointer = format!("/openAPIV3Schema/properties/{part}");
            missing(
                ours.pointer(&pointer).unwrap_or(&Value::Null),
                &schema["properties"][part],
                part,
                &mut fields,
            );
        }
        if !fields.is_empty() {
            fields.truncate(MAX_FIELDS);
            outdated.push(Outdated {
                definition: name,
                fields,
            });
        }
    }
    outdated
}

/// Adds the paths of the properties that `ours` has and `theirs` has not.
fn missing(ours: &Value, theirs: &Value, path: &str, fields: &mut Vec<String>) {
    for (name, schema) in ours["properties"].as_object().into_iter().flatten() {
        let inner = format!("{path}.{name}");
        match theirs["properties"].get(name) {
            None => fields.push(inner),
            Some(known) => missing(schema, known, &inner, fields),
        }
    }
    if ours["items"].is_object() {
        missing(
            &ours["items"],
            &theirs["items"],
            &format!("{path}[]"),
            fields,
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// A document as an API server publishes it, of our own definitions.
    fn published() -> Value {
        let mut schemas = serde_json::Map::new();
        for definition in fencepost_crds::crds() {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
            let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": "fencepost.dev", "kind": kind, "version": "v1alpha1"}]);
            schemas.insert(format!("dev.fencepost.v1alpha1.{kind}"), schema);
        }
        json!({"components": {"schemas": schemas}})
    }

    #[test]
    fn our_own_definitions_are_new_enough() {
        assert_eq!(compare(&published()), Vec::new());
    }

    #[test]
    fn a_missing_definition_and_a_missing_field_are_named() {
        assert_eq!(compare(&Value::Null).len(), 5);
        let mut old = published();
        let spec = old
            .pointer_mut("/components/schemas/dev.fencepost.v1alpha1.WatchedResource/properties/spec/properties")
            .unwrap()
            .as_object_mut()
            .unwrap();
        spec.remove("rollout");
        let found = compare(&old);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].sentence().contains("spec.rollout"),
            "{}",
            found[0].sentence()
        );
        assert!(
            found[0]
                .sentence()
                .contains("watchedresources.fencepost.dev")
        );
    }
}
