//! Which namespaces are watched.

/// The whole cluster, or some namespaces of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaces(Vec<String>),
}

impl Scope {
    /// No namespace named means all of them.
    pub fn of(namespaces: &[String]) -> Self {
        let mut named: Vec<String> = namespaces
            .iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        named.sort();
        named.dedup();
        if named.is_empty() {
            Self::Cluster
        } else {
            Self::Namespaces(named)
        }
    }

    /// One entry for each watch of a resource; none stands for all namespaces.
    pub fn parts(&self) -> Vec<Option<String>> {
        match self {
            Self::Cluster => vec![None],
            Self::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_named_is_the_whole_cluster() {
        assert_eq!(Scope::of(&[String::new(), " ".to_owned()]), Scope::Cluster);
        let two = Scope::of(&["b".to_owned(), " a".to_owned(), "b".to_owned()]);
        assert_eq!(
            two.parts(),
            vec![Some("a".to_owned()), Some("b".to_owned())]
        );
    }
}
