//! `fencepost rbac`: the roles that the operator needs, for installations without the chart.

use std::process::ExitCode;

use clap::Args;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::ObjectMeta;
use serde::Serialize;

use crate::cluster::{Scope, Where, rules};

#[derive(Args)]
pub struct RbacArgs {
    /// Watch this namespace only; may be repeated. Absent: the whole cluster.
    #[arg(long = "namespace", value_delimiter = ',', value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Namespace that the operator runs in.
    #[arg(long, default_value = "fencepost")]
    own_namespace: String,
    /// As `operator --access open`: no reviews, and so no rights for them.
    #[arg(long)]
    access_open: bool,
}

/// Prints YAML. Bind each role to the operator's `ServiceAccount`.
pub fn run(args: &RbacArgs) -> ExitCode {
    let reviews = !args.access_open;
    let mut documents = Vec::new();
    let mut cluster_rules = rules(Where::Cluster, reviews);
    match Scope::of(&args.namespaces) {
        Scope::Cluster => cluster_rules.extend(rules(Where::Watched, reviews)),
        Scope::Namespaces(names) => {
            documents.extend(names.iter().map(|namespace| {
                yaml(&Role {
                    metadata: named("fencepost", Some(namespace)),
                    rules: Some(rules(Where::Watched, reviews)),
                })
            }));
        }
    }
    if !cluster_rules.is_empty() {
        documents.push(yaml(&ClusterRole {
            metadata: named("fencepost", None),
            rules: Some(cluster_rules),
            ..ClusterRole::default()
        }));
    }
    documents.push(yaml(&Role {
        metadata: named("fencepost-leader", Some(&args.own_namespace)),
        rules: Some(rules(Where::Own, reviews)),
    }));
    match documents.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(documents) => {
            print!("{}", documents.join("---\n"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: the roles cannot be written as YAML: {error}");
            ExitCode::FAILURE
        }
    }
}

fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(ToOwned::to_owned),
        ..ObjectMeta::default()
    }
}

fn yaml(object: &impl Serialize) -> Result<String, serde_norway::Error> {
    serde_norway::to_string(object)
}
