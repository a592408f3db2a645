//! One question to RBAC: a right in a place, and how it is said to people.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use k8s_openapi::api::authorization::v1::{NonResourceAttributes, ResourceAttributes};
use sha2::{Digest as _, Sha256};

use super::rule::Right;

/// The API group of the resources that rights speak of.
const GROUP: &str = "fencepost.dev";

/// What is asked of the API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// A right in a namespace, or in all of them.
    Resource {
        right: Right,
        namespace: Option<Arc<str>>,
    },
    /// `get` on a path of this server.
    Path(&'static str),
}

impl Question {
    pub fn resource_attributes(&self) -> Option<ResourceAttributes> {
        let Self::Resource { right, namespace } = self else {
            return None;
        };
        Some(ResourceAttributes {
            group: Some(GROUP.to_owned()),
            resource: Some(right.resource.to_owned()),
            subresource: right.subresource.map(ToOwned::to_owned),
            verb: Some(right.verb.to_owned()),
            namespace: namespace.as_deref().map(ToOwned::to_owned),
            ..ResourceAttributes::default()
        })
    }

    pub fn path_attributes(&self) -> Option<NonResourceAttributes> {
        let Self::Path(path) = self else { return None };
        Some(NonResourceAttributes {
            path: Some((*path).to_owned()),
            verb: Some("get".to_owned()),
        })
    }

    /// What the right is on: `watchedresources.fencepost.dev/content`, or the path.
    pub fn object(&self) -> String {
        match self {
            Self::Resource { right, .. } => {
                let resource = format!("{}.{GROUP}", right.resource);
                match right.subresource {
                    Some(subresource) => format!("{resource}/{subresource}"),
                    None => resource,
                }
            }
            Self::Path(path) => (*path).to_owned(),
        }
    }

    /// The kubectl line that grants it to `user`. The role may be there already for somebody else, so the binding has a
    /// name of its own and is made all the same.
    pub fn grant(&self, user: &str) -> String {
        let object = self.object();
        let (role, what) = match self {
            Self::Resource { right, .. } => (
                role_name(right),
                format!("--verb={} --resource={object}", right.verb),
            ),
            Self::Path(_) => (
                "fencepost-metrics".to_owned(),
                format!("--verb=get --non-resource-url={object}"),
            ),
        };
        let binding = format!("{role}-{}", short_digest(user));
        let user = quoted(user);
        match self {
            Self::Resource {
                namespace: Some(namespace),
                ..
            } => format!(
                "kubectl -n {namespace} create role {role} {what}; \
                 kubectl -n {namespace} create rolebinding {binding} --role={role} --user={user}"
            ),
            _ => format!(
                "kubectl create clusterrole {role} {what}; \
                 kubectl create clusterrolebinding {binding} --clusterrole={role} --user={user}"
            ),
        }
    }
}

/// `get watchedresources.fencepost.dev/content in namespace agents`.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource { right, namespace } => {
                write!(f, "{} {}", right.verb, self.object())?;
                match namespace {
                    Some(namespace) => write!(f, " in namespace {namespace}"),
                    None => f.write_str(" in all namespaces"),
                }
            }
            Self::Path(path) => write!(f, "get {path}"),
        }
    }
}

fn role_name(right: &Right) -> String {
    let mut name = format!("fencepost-{}-{}", right.verb, right.resource);
    if let Some(subresource) = right.subresource {
        name.push('-');
        name.push_str(subresource);
    }
    name
}

/// Tells users apart in the name of an object, which could not hold theirs.
fn short_digest(user: &str) -> String {
    let digest = Sha256::digest(user.as_bytes());
    digest[..4].iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A word of a shell, whatever the identity provider calls people.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::rule::CONTENT;

    #[test]
    fn the_line_grants_what_was_asked() {
        let question = Question::Resource {
            right: CONTENT,
            namespace: Some("agents".into()),
        };
        assert_eq!(
            question.grant("o'brien"),
            r"kubectl -n agents create role fencepost-get-watchedresources-content --verb=get --resource=watchedresources.fencepost.dev/content; kubectl -n agents create rolebinding fencepost-get-watchedresources-content-65b87174 --role=fencepost-get-watchedresources-content --user='o'\''brien'"
        );
        let everywhere = Question::Resource {
            right: CONTENT,
            namespace: None,
        };
        assert_eq!(
            Question::Path("/metrics").grant("prometheus"),
            "kubectl create clusterrole fencepost-metrics --verb=get --non-resource-url=/metrics; kubectl create clusterrolebinding fencepost-metrics-1809f7cd --clusterrole=fencepost-metrics --user='prometheus'"
        );
        assert_eq!(
            everywhere.to_string(),
            "get watchedresources.fencepost.dev/content in all namespaces"
        );
    }
}
