//! The one-to-one map between a file's relative path and its `docs:///` URI.
//!
//! A path has exactly one URI: a spelling that encodes other than [`of_path`] does is not the name of anything, so a client can never
//! meet one file under two names.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

const SCHEME: &str = "docs:///";

/// The URI of a path relative to the root: RFC 3986 unreserved characters and `/` stand for themselves, every other byte is encoded.
pub fn of_path(relative: &Path) -> String {
    let mut uri = String::from(SCHEME);
    for byte in relative.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            // Writing to a String cannot fail.
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri
}

/// The relative path a URI names, or `None` when it names nothing below a root: another scheme, another spelling, `.`, `..`, an
/// empty segment, a NUL.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let encoded = uri.strip_prefix(SCHEME)?;
    let bytes = decode(encoded.as_bytes())?;
    if bytes.is_empty() || bytes.contains(&0) {
        return None;
    }
    let path = PathBuf::from(OsStr::from_bytes(&bytes));
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    // `Path` drops `.` and doubled slashes silently; the comparison refuses them along with every other spelling.
    let rebuilt: PathBuf = path.components().collect();
    (plain && of_path(&rebuilt) == uri).then_some(path)
}

fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail.get(2..)?;
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_its_uri_name_each_other() {
        for (path, uri) in [
            ("limits.json", "docs:///limits.json"),
            ("team/on call.md", "docs:///team/on%20call.md"),
            ("größe?#%.txt", "docs:///gr%C3%B6%C3%9Fe%3F%23%25.txt"),
        ] {
            assert_eq!(of_path(Path::new(path)), uri);
            assert_eq!(to_path(uri).as_deref(), Some(Path::new(path)));
        }
    }

    #[test]
    fn what_is_not_the_one_spelling_names_nothing() {
        for uri in [
            "docs:///",
            "docs:///../etc/passwd",
            "docs:///a/../../b",
            "docs:///%2e%2e/b",
            "docs:///./a",
            "docs:///a//b",
            "docs:////etc/passwd",
            "docs:///a/",
            "docs:///%61",
            "docs:///a%2Fb",
            "docs:///a%00",
            "docs:///a%2",
            "docs:///a%zz",
            "docs:///a b",
            "file:///a",
            "docs://a",
        ] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }
}
