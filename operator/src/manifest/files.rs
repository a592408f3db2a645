//! Which files a path means, and their text.
//!
//! In: the paths of a command line. Out: texts, in the order of their names, and what could not be read. Of a
//! folder its own files count, up to a bound; hidden ones (editor swap files) do not.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A manifest is written by hand or by a generator: past this it is some other file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Files in one run: ten times the objects of a large installation.
const MAX_FILES: usize = 10_000;

/// Why a path could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file or folder")]
    Missing,
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the file is larger than 16 MiB")]
    TooLarge,
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("the file ends neither in .yaml nor .yml nor .json")]
    OtherKindOfFile,
    #[error("there are more than 10000 files in the paths given")]
    TooMany,
}

impl FileError {
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::Missing => "check the path",
            Self::Unreadable(_) => "check the permissions of the file and its folder",
            Self::TooLarge => "split the file",
            Self::NotText => "save the file as UTF-8",
            Self::OtherKindOfFile => "rename it, or name the manifest instead",
            Self::TooMany => "name a smaller folder",
        }
    }
}

pub type Read = (PathBuf, Result<String, FileError>);

/// The texts of all manifests that `paths` mean, each file once.
pub fn read_all(paths: &[PathBuf]) -> Vec<Read> {
    let mut found = Vec::new();
    for path in paths {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                found.push((path.clone(), Err(FileError::Missing)));
            }
            Err(error) => found.push((path.clone(), Err(FileError::Unreadable(error)))),
            Ok(metadata) if metadata.is_dir() => list(path, &mut found),
            Ok(_) if is_manifest(path) => found.push((path.clone(), read(path))),
            Ok(_) => found.push((path.clone(), Err(FileError::OtherKindOfFile))),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// The manifests of a folder. Folders within it are left out, as `kubectl apply -f` leaves them out: they hold other things, such as
/// the documents that a demo serves.
fn list(folder: &Path, found: &mut Vec<Read>) {
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return found.push((folder.to_owned(), Err(FileError::Unreadable(error)))),
    };
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_hidden || !is_manifest(&path) || path.is_dir() {
            continue;
        }
        if found.len() >= MAX_FILES {
            return found.push((folder.to_owned(), Err(FileError::TooMany)));
        }
        let text = read(&path);
        found.push((path, text));
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

fn read(path: &Path) -> Result<String, FileError> {
    let metadata = fs::metadata(path).map_err(FileError::Unreadable)?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLarge);
    }
    String::from_utf8(fs::read(path).map_err(FileError::Unreadable)?)
        .map_err(|_| FileError::NotText)
}
