//! The CRDs as YAML, generated from the types.
//!
//! In: the derived CRDs. Out: the text that `crds/yaml` holds and `fencepost crds` prints. Two things of the derived schemas
//! are mended: number formats that Kubernetes does not know are taken out, and `nullable` too, since absence is the one way
//! to leave a field out (CEL's `has()` would count a null as given).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{DerivedIndex, MCPServer, MCPSubject, ResourceCatalog, WatchedResource};

/// Why the YAML could not be written. It names the CRD; the types and not the user are at fault.
#[derive(Debug, thiserror::Error)]
#[error("the CRD {name} could not be written as YAML")]
pub struct CrdYamlError {
    name: String,
    #[source]
    source: serde_norway::Error,
}

/// The five CRDs as JSON values, in the order in which they are best read.
pub fn crds() -> Vec<Value> {
    [
        MCPServer::crd(),
        MCPSubject::crd(),
        WatchedResource::crd(),
        ResourceCatalog::crd(),
        DerivedIndex::crd(),
    ]
    .into_iter()
    .map(mended)
    .collect()
}

/// File name and YAML of each CRD.
pub fn crd_files() -> Result<Vec<(String, String)>, CrdYamlError> {
    crds()
        .into_iter()
        .map(|crd| {
            let name = crd
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let yaml = serde_norway::to_string(&crd).map_err(|source| CrdYamlError {
                name: name.clone(),
                source,
            })?;
            Ok((format!("{name}.yaml"), yaml))
        })
        .collect()
}

/// All CRDs in one text, several documents, as `kubectl apply -f -` takes it.
pub fn all_crds_yaml() -> Result<String, CrdYamlError> {
    let documents: Vec<String> = crd_files()?.into_iter().map(|(_, yaml)| yaml).collect();
    Ok(format!("---\n{}", documents.join("---\n")))
}

fn mended(crd: CustomResourceDefinition) -> Value {
    // A CRD holds strings, numbers, lists and string-keyed maps only, all of which JSON has; null would fail the drift test.
    let mut value = serde_json::to_value(crd).unwrap_or_default();
    mend(&mut value);
    // By name, also where another crate switches serde_json's preserve_order on.
    value.sort_all_objects();
    value
}

fn mend(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let unknown_format = map
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| {
                    format.starts_with("uint") || format == "int8" || format == "int16"
                });
            if unknown_format && map.contains_key("type") {
                map.remove("format");
            }
            if map.get("nullable").is_some_and(Value::is_boolean) {
                map.remove("nullable");
            }
            map.values_mut().for_each(mend);
        }
        Value::Array(items) => items.iter_mut().for_each(mend),
        _ => {}
    }
}
