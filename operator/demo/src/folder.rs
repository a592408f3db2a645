//! The folder itself: which files it holds and what is in them.
//!
//! Every path is resolved through its symbolic links before it is opened, and refused unless it ends at a regular file below the
//! root. Links to folders are not walked, so a walk ends even where links form a ring.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{DemoError, mime, uri};

/// Files in one folder. A walk of that many takes about a second; past it the server is no demonstration any more.
pub const MAX_FILES: usize = 100_000;

/// Bytes of one file. Four times what `MCPServer` accepts by default, so that its bound can be tried.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub size: u64,
    modified: Option<SystemTime>,
}

#[derive(Debug)]
pub struct Content {
    pub mime: &'static str,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    Text(String),
    Blob(Vec<u8>),
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("no such resource")]
    NotFound,
    #[error("the file is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
}

impl Folder {
    pub fn open(root: &Path) -> Result<Self, DemoError> {
        let resolved = root.canonicalize().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => DemoError::RootMissing(root.to_owned()),
            io::ErrorKind::NotADirectory => DemoError::RootNotAFolder(root.to_owned()),
            _ => DemoError::RootUnreadable {
                path: root.to_owned(),
                source,
            },
        })?;
        if !resolved.is_dir() {
            return Err(DemoError::RootNotAFolder(root.to_owned()));
        }
        fs::read_dir(&resolved).map_err(|source| DemoError::RootUnreadable {
            path: root.to_owned(),
            source,
        })?;
        Ok(Self { root: resolved })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All files by relative path, or `None` when there are more than [`MAX_FILES`]. What vanishes or cannot be opened during the
    /// walk is left out: it could not be read either.
    pub fn files(&self) -> Option<BTreeMap<PathBuf, Stamp>> {
        let mut files = BTreeMap::new();
        let mut pending = vec![self.root.clone()];
        while let Some(folder) = pending.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(path);
                } else if let Ok(relative) = path.strip_prefix(&self.root)
                    && let Some(stamp) = self.stamp(relative)
                {
                    files.insert(relative.to_owned(), stamp);
                    if files.len() > MAX_FILES {
                        return None;
                    }
                }
            }
        }
        Some(files)
    }

    pub fn read(&self, uri: &str) -> Result<Content, ReadError> {
        let relative = uri::to_path(uri).ok_or(ReadError::NotFound)?;
        let path = self.resolve(&relative).ok_or(ReadError::NotFound)?;
        let not_found = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ReadError::NotFound,
            _ => ReadError::Unreadable(error),
        };
        if fs::metadata(&path).map_err(not_found)?.len() > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge);
        }
        let bytes = fs::read(&path).map_err(not_found)?;
        let body = String::from_utf8(bytes)
            .map_or_else(|error| Body::Blob(error.into_bytes()), Body::Text);
        let mime = mime::of_path(&relative)
            .unwrap_or_else(|| mime::of_content(matches!(body, Body::Text(_))));
        Ok(Content { mime, body })
    }

    fn stamp(&self, relative: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(self.resolve(relative)?).ok()?;
        Some(Stamp {
            size: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    /// The regular file below the root that `relative` ends at, links followed.
    fn resolve(&self, relative: &Path) -> Option<PathBuf> {
        let path = self.root.join(relative).canonicalize().ok()?;
        (path.starts_with(&self.root) && path.is_file()).then_some(path)
    }
}
