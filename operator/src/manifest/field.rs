//! The path of a field within an object, as errors name it: `spec.uris[2]`.

use std::fmt;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// Steps from the root of an object to a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        Self(steps)
    }

    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        Self(steps)
    }

    /// This path, then `other`.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// Reads what [`fmt::Display`] writes and what CEL rules report. Keys with dots stand in brackets.
    pub fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((inner, tail)) =
                rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            {
                steps.push(
                    inner
                        .parse()
                        .map_or_else(|_| Step::Key(inner.to_owned()), Step::Index),
                );
                rest = tail;
            } else {
                let plain = rest.trim_start_matches(['.', '[']);
                let (key, tail) = plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()));
                steps.push(Step::Key(key.to_owned()));
                rest = tail;
            }
        }
        steps.retain(|step| *step != Step::Key(String::new()));
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if key.contains(['.', '/', '[']) => write!(f, "[{key}]")?,
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_again() {
        let path = FieldPath::default()
            .key("spec")
            .key("uris")
            .index(2)
            .key("x");
        assert_eq!(path.to_string(), "spec.uris[2].x");
        assert_eq!(FieldPath::parse("spec.uris[2].x"), path);
        let label = FieldPath::default()
            .key("metadata")
            .key("labels")
            .key("a.b/c");
        assert_eq!(label.to_string(), "metadata.labels[a.b/c]");
        assert_eq!(FieldPath::parse("metadata.labels[a.b/c]"), label);
        assert_eq!(FieldPath::parse(""), FieldPath::default());
    }
}
