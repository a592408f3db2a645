//! The labels of an object.

use std::fmt;

/// Namespace and name of the object that a series is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub namespace: String,
    pub name: String,
}

impl Name {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The values of `namespace` and `name`.
    pub(super) fn labels(&self) -> [&str; 2] {
        [&self.namespace, &self.name]
    }

    /// Those, and the values of the labels after them.
    pub(super) fn and<'a, const N: usize>(&'a self, more: [&'a str; N]) -> Vec<&'a str> {
        self.labels().into_iter().chain(more).collect()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
