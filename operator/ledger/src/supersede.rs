//! The supersede note: what was true, what is true now, in words for a running conversation.
//!
//! For JSON the changes are by pointer (RFC 6901), for other text by line of the new version.
//! Bounded: a note is read by a model with a context window, not by a machine that wants all.

use std::fmt::Write as _;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Changes listed at most; the text says how many more there are.
pub const MAX_CHANGES: usize = 20;
/// Characters of one value in the text.
const MAX_VALUE_CHARS: usize = 120;
/// Text beyond this is not compared line by line: the comparison is quadratic at worst.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// One difference; `None` where there was nothing, or is nothing now.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub path: String,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

/// The note for one accepted change.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub text: String,
    pub changes: Vec<Change>,
}

/// The note for a change of `uri` from `old` to `new`, accepted at `since` (RFC 3339).
/// None when the two are too large to compare.
pub fn note(uri: &str, json: bool, old: &str, new: &str, since: &str) -> Option<Note> {
    if old.len() > MAX_TEXT_BYTES || new.len() > MAX_TEXT_BYTES {
        return None;
    }
    let parsed = if json {
        serde_json::from_str::<Value>(old)
            .ok()
            .zip(serde_json::from_str::<Value>(new).ok())
    } else {
        None
    };
    let mut found = Found::default();
    match parsed {
        Some((old, new)) => compare(&mut String::new(), Some(&old), Some(&new), &mut found),
        None => compare_lines(old, new, &mut found),
    }
    Some(Note {
        text: sentence(uri, since, &found.changes, found.total),
        changes: found.changes,
    })
}

/// The first changes, and how many there are: what is not listed is counted and never copied, since a
/// long key above many values would be copied for each of them.
#[derive(Default)]
struct Found {
    changes: Vec<Change>,
    total: usize,
}

impl Found {
    fn add(&mut self, change: impl FnOnce() -> Change) {
        self.total += 1;
        if self.changes.len() < MAX_CHANGES {
            self.changes.push(change());
        }
    }
}

/// `path` is the pointer to both values; it is given back as it was.
fn compare(path: &mut String, old: Option<&Value>, new: Option<&Value>, found: &mut Found) {
    let above = path.len();
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                compare(path, a.get(key), b.get(key), found);
                path.truncate(above);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                // Writing to a String does not fail.
                let _ = write!(path, "/{index}");
                compare(path, a.get(index), b.get(index), found);
                path.truncate(above);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.add(|| Change {
            path: path.clone(),
            old: a.cloned(),
            new: b.cloned(),
        }),
    }
}

fn compare_lines(old: &str, new: &str, found: &mut Found) {
    let diff = TextDiff::from_lines(old, new);
    for op in diff.ops() {
        let mut removed = Vec::new();
        let mut added = Vec::new();
        for change in diff.iter_changes(op) {
            let line = Value::String(change.value().trim_end_matches(['\r', '\n']).to_owned());
            match change.tag() {
                ChangeTag::Delete => removed.push(line),
                ChangeTag::Insert => added.push(line),
                ChangeTag::Equal => {}
            }
        }
        let first = op.new_range().start;
        for offset in 0..removed.len().max(added.len()) {
            found.add(|| Change {
                path: format!("line {}", first + offset + 1),
                old: removed.get(offset).cloned(),
                new: added.get(offset).cloned(),
            });
        }
    }
}

fn sentence(uri: &str, since: &str, changes: &[Change], total: usize) -> String {
    let mut text = format!("The resource {uri} has changed (accepted {since}).");
    for change in changes {
        let place = if change.path.is_empty() {
            "The whole value"
        } else {
            &change.path
        };
        let told = match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                format!("{place} was {}, and is {} now.", shown(old), shown(new))
            }
            (None, Some(new)) => format!("{place} is new: {}.", shown(new)),
            (Some(old), None) => format!("{place} is gone; it was {}.", shown(old)),
            (None, None) => continue,
        };
        text.push(' ');
        text.push_str(&told);
    }
    if total > changes.len() {
        let more = total - changes.len();
        // Writing to a String does not fail.
        let _ = write!(text, " And {more} more differences.");
    }
    text.push_str(" What was said or planned on the old value needs another look.");
    text
}

fn shown(value: &Value) -> String {
    let full = value.to_string();
    if full.chars().count() <= MAX_VALUE_CHARS {
        return full;
    }
    let clipped: String = full.chars().take(MAX_VALUE_CHARS).collect();
    format!("{clipped}… (clipped)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_changes_are_named_by_pointer() {
        let note = note(
            "config://limits",
            true,
            r#"{"max_batch":500,"a/b":[1,2],"gone":true}"#,
            r#"{"max_batch":50,"a/b":[1,3],"new":null}"#,
            "2026-01-01T00:00:00Z",
        )
        .unwrap();
        let paths: Vec<_> = note.changes.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(paths, ["/a~1b/1", "/gone", "/max_batch", "/new"]);
        assert!(
            note.text.contains("/max_batch was 500, and is 50 now."),
            "{}",
            note.text
        );
        assert!(
            note.text.contains("/gone is gone; it was true."),
            "{}",
            note.text
        );
        assert!(note.text.contains("needs another look"), "{}", note.text);
    }

    #[test]
    fn text_changes_are_named_by_line() {
        let note = note("docs://a", false, "a\nb\nc\n", "a\nB\nc\nd\n", "t").unwrap();
        assert_eq!(
            note.changes,
            [
                Change {
                    path: "line 2".into(),
                    old: Some("b".into()),
                    new: Some("B".into())
                },
                Change {
                    path: "line 4".into(),
                    old: None,
                    new: Some("d".into())
                }
            ]
        );
    }

    #[test]
    fn a_long_key_above_many_values_is_not_copied_for_each_of_them() {
        let text = |value: &str| {
            let values = vec![value; 60_000].join(",");
            format!("{{\"{}\":[{values}]}}", "k".repeat(128 * 1024))
        };
        // Copied for each it would be 7.8 GB.
        let note = note("docs://a", true, &text("1"), &text("2"), "t").unwrap();
        assert_eq!(note.changes.len(), MAX_CHANGES);
        assert!(note.text.contains("And 59980 more differences."));
    }

    #[test]
    fn a_long_list_of_changes_is_bounded_and_says_so() {
        let old = (0..100)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        let note = note("docs://a", false, &old, "", "t").unwrap();
        assert_eq!(note.changes.len(), MAX_CHANGES);
        assert!(note.text.contains("And 80 more differences."));
    }
}
