//! What neither schema nor CEL can say of a value: whether an address parses and whether a regular expression compiles.

use regex::Regex;
use serde_json::Value;
use url::Url;

use super::{field::FieldPath, kind::Kind, schema::Violation};

/// What is wrong with a text, and what to do.
type Check = fn(&str) -> Option<(String, &'static str)>;

/// Violations of an object whose schema and rules hold.
pub fn violations(kind: Kind, object: &Value) -> Vec<Violation> {
    let (path, check): (&str, Check) = match kind {
        Kind::MCPServer => ("spec.url", address),
        Kind::DerivedIndex => ("spec.webhook.url", address),
        Kind::WatchedResource => ("spec.select.matches", expression),
        _ => return Vec::new(),
    };
    let mut found = uris(object);
    let field = FieldPath::parse(path);
    let pointer = format!("/{}", path.replace('.', "/"));
    let violation = object
        .pointer(&pointer)
        .and_then(Value::as_str)
        .and_then(check)
        .map(|(message, fix)| Violation::new(field, message, fix));
    found.extend(violation);
    found
}

/// Names that begin with no scheme (RFC 3986, 3.1). The rule in the schema sees only that there is a colon.
fn uris(object: &Value) -> Vec<Violation> {
    let listed = object.pointer("/spec/uris").and_then(Value::as_array);
    listed
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, uri)| uri.as_str().is_some_and(|uri| !has_scheme(uri)))
        .map(|(index, _)| {
            Violation::new(
                FieldPath::parse("spec.uris").index(index),
                "the URI is not absolute",
                "write the scheme too, as in docs:///guide.md",
            )
        })
        .collect()
}

fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        !rest.is_empty()
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
    })
}

fn address(text: &str) -> Option<(String, &'static str)> {
    match Url::parse(text) {
        Ok(url) if url.has_host() => None,
        Ok(_) => Some((
            "the url names no host".to_owned(),
            "write it as https://HOST/PATH",
        )),
        Err(error) => Some((
            format!("the url cannot be read: {error}"),
            "write it as https://HOST/PATH",
        )),
    }
}

fn expression(text: &str) -> Option<(String, &'static str)> {
    let error = Regex::new(text).err()?;
    // The crate draws the place of the error over several lines; its last line says what it is.
    let reason = error
        .to_string()
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    Some((
        format!("the regular expression cannot be read: {reason}"),
        "use RE2 syntax, without look-around and back-references",
    ))
}
