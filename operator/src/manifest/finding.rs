//! One thing that is wrong with a manifest, with its place and what to do about it.

use std::{fmt, path::PathBuf};

/// An error or a warning. Ordered by place, so that a report reads from the top of a file to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub file: PathBuf,
    /// Line within the file, from 1, where it is known.
    pub line: Option<usize>,
    /// Number of the document within the file, from 1; 0 for the file as a whole.
    pub document: usize,
    /// The object as `Kind namespace/name`, as far as it could be read.
    pub object: Option<String>,
    /// Path of the field, as in `spec.uris[2]`.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": ")?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        write!(f, "{}", self.message)?;
        if !self.fix.is_empty() {
            write!(f, "\n    fix: {}", self.fix)?;
        }
        Ok(())
    }
}
