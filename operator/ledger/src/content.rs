//! Contents and their digest: what counts as a change of a resource, and what does not.
//!
//! SHA-256 over the ordered entries (URI, MIME type, text or decoded blob). Order of entries counts:
//! MCP gives `contents` as an array and says nothing of sets. For JSON text the order of keys and the
//! white space do not count; numbers count as they are written, so that no digit is lost to a float.
//! `_meta`, annotations, `lastModified` and `ttlMs` never reach this module.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// JSON deeper than this is digested as the text that it is: the walk below recurses.
const MAX_JSON_DEPTH: usize = 128;

/// A SHA-256 digest; shown as `sha256:<hex>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is written sha256: and 64 hexadecimal digits")]
pub struct BadDigest;

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let hex = s.strip_prefix("sha256:").ok_or(BadDigest)?;
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(BadDigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadDigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| BadDigest)?;
        }
        Ok(Self(bytes))
    }
}

/// The body of an entry, as sent or decoded from base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Text(String),
    Blob(Vec<u8>),
}

impl Body {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }
}

/// One entry of a read's `contents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: Body,
}

/// Digest of the entries, leaving out what the JSON pointers (RFC 6901) of `ignore` name.
pub fn digest(entries: &[Entry], ignore: &[String]) -> Digest {
    let ignore: Vec<Vec<String>> = ignore.iter().map(|p| pointer_tokens(p)).collect();
    let mut hash = Sha256::new();
    hash.update(b"fencepost.content.v1");
    frame(&mut hash, &(entries.len() as u64).to_be_bytes());
    for entry in entries {
        frame(&mut hash, entry.uri.as_bytes());
        match &entry.mime_type {
            Some(mime) => frame(&mut hash, mime.as_bytes()),
            None => hash.update([0xff; 8]),
        }
        match &entry.body {
            Body::Blob(bytes) => {
                hash.update(b"b");
                frame(&mut hash, bytes);
            }
            Body::Text(text) => {
                if let Some(canonical) = canonical_json(entry, text, &ignore) {
                    hash.update(b"j");
                    frame(&mut hash, &canonical);
                } else {
                    hash.update(b"t");
                    frame(&mut hash, text.as_bytes());
                }
            }
        }
    }
    Digest(hash.finalize().into())
}

/// Length first, so that no two different sequences of fields hash alike.
fn frame(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// Whether a MIME type names JSON: `application/json` or a `+json` suffix, parameters left aside.
pub fn is_json(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("text/json")
        || essence
            .get(essence.len().saturating_sub(5)..)
            .is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
}

fn pointer_tokens(pointer: &str) -> Vec<String> {
    pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}

fn canonical_json(entry: &Entry, text: &str, ignore: &[Vec<String>]) -> Option<Vec<u8>> {
    let declared = entry.mime_type.as_deref().is_some_and(is_json);
    if !declared && ignore.is_empty() {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let mut out = Vec::with_capacity(text.len());
    let ignore: Vec<&[String]> = ignore.iter().map(Vec::as_slice).collect();
    write_canonical(raw, &ignore, MAX_JSON_DEPTH, &mut out)?;
    Some(out)
}

/// Writes `raw` with sorted keys and no white space. `ignore` holds what is left of each pointer
/// that leads into this value. None when the value is too deep.
fn write_canonical(
    raw: &RawValue,
    ignore: &[&[String]],
    depth: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let text = raw.get().trim_ascii();
    match text.as_bytes().first()? {
        b'{' => {
            let Members(mut members) = serde_json::from_str(text).ok()?;
            // A stable sort: repeated keys keep their order, and a change in any of them counts.
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            out.push(b'{');
            for (key, value) in members {
                let Some(rest) = descend(ignore, &key) else {
                    continue;
                };
                serde_json::to_writer(&mut *out, &key).ok()?;
                out.push(b':');
                write_canonical(value, &rest, depth, out)?;
                out.push(b',');
            }
            out.push(b'}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push(b'[');
            for (index, value) in items.into_iter().enumerate() {
                let Some(rest) = descend(ignore, &index.to_string()) else {
                    continue;
                };
                write_canonical(value, &rest, depth, out)?;
                out.push(b',');
            }
            out.push(b']');
        }
        b'"' => {
            let decoded: String = serde_json::from_str(text).ok()?;
            serde_json::to_writer(&mut *out, &decoded).ok()?;
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
    Some(())
}

/// The pointers that lead on through `key`; none of the value is kept when one ends here.
fn descend<'a>(ignore: &[&'a [String]], key: &str) -> Option<Vec<&'a [String]>> {
    let mut rest = Vec::new();
    for pointer in ignore {
        if let Some((first, tail)) = pointer.split_first()
            && first == key
        {
            if tail.is_empty() {
                return None;
            }
            rest.push(tail);
        }
    }
    Some(rest)
}

/// An object's members in the order written, repeated keys included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Vec<Entry> {
        vec![Entry {
            uri: "config://x".into(),
            mime_type: Some("application/json".into()),
            body: Body::Text(text.into()),
        }]
    }

    #[test]
    fn key_order_and_white_space_are_no_change() {
        let a = digest(&json(r#"{"a":1,"b":{"c":[1,2],"d":"x"}}"#), &[]);
        let b = digest(
            &json("{ \"b\": {\"d\":\"\\u0078\",\"c\":[1, 2]},\n\"a\":1 }"),
            &[],
        );
        assert_eq!(a, b);
    }

    #[test]
    fn every_digit_and_every_repeated_key_counts() {
        let digests: std::collections::BTreeSet<_> = [
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":12345678901234567890123}"#,
            r#"{"a":12345678901234567890124}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":3,"a":2}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[12]}"#,
        ]
        .iter()
        .map(|text| digest(&json(text), &[]))
        .collect();
        assert_eq!(digests.len(), 9);
    }

    #[test]
    fn an_ignored_pointer_is_left_out_and_nothing_else() {
        let ignore = vec![
            "/generatedAt".to_owned(),
            "/list/1/at".to_owned(),
            "/a~1b".to_owned(),
        ];
        let base = r#"{"generatedAt":1,"list":[{"at":1},{"at":2,"v":3}],"a/b":4}"#;
        let same = r#"{"generatedAt":9,"list":[{"at":1},{"at":9,"v":3}],"a/b":9}"#;
        let other = r#"{"generatedAt":1,"list":[{"at":9},{"at":2,"v":3}],"a/b":4}"#;
        assert_eq!(digest(&json(base), &ignore), digest(&json(same), &ignore));
        assert_ne!(digest(&json(base), &ignore), digest(&json(other), &ignore));
    }

    #[test]
    fn text_blob_and_broken_json_are_taken_as_they_are() {
        let entry = |mime: Option<&str>, body| {
            vec![Entry {
                uri: "u:x".into(),
                mime_type: mime.map(Into::into),
                body,
            }]
        };
        let text = digest(&entry(None, Body::Text("{}".into())), &[]);
        let spaced = digest(&entry(None, Body::Text("{ }".into())), &[]);
        let blob = digest(&entry(None, Body::Blob(b"{}".to_vec())), &[]);
        let broken = digest(&json("{\"a\":"), &[]);
        let broken_otherwise = digest(&json("{\"b\":"), &[]);
        assert_ne!(text, spaced);
        assert_ne!(text, blob);
        assert_ne!(broken, broken_otherwise);
    }

    #[test]
    fn json_of_any_depth_is_digested() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let deeper = "[".repeat(100_001) + &"]".repeat(100_001);
        assert_ne!(digest(&json(&deep), &[]), digest(&json(&deeper), &[]));
    }

    #[test]
    fn the_order_of_entries_counts() {
        let mut entries = json("1");
        entries.push(Entry {
            uri: "config://y".into(),
            mime_type: None,
            body: Body::Text("2".into()),
        });
        let there = digest(&entries, &[]);
        entries.reverse();
        assert_ne!(there, digest(&entries, &[]));
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = digest(&json("1"), &[]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("sha256:00".parse::<Digest>(), Err(BadDigest));
    }
}
