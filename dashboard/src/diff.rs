//! The difference of two versions, line by line, bounded for a page.

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Lines shown: a reader who needs more takes the two contents; a browser stays quick.
const MOST_LINES: usize = 600;
/// Longest line shown whole: minified JSON is one line of any length.
const MOST_CHARS: usize = 400;

/// What a line of the difference says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tag {
    Same,
    Removed,
    Added,
    /// Lines left out between two changes.
    Skipped,
}

/// A line with its numbers on either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub tag: Tag,
    pub old: Option<usize>,
    pub new: Option<usize>,
    pub text: String,
}

/// The difference, and what was left out of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Difference {
    pub lines: Vec<Line>,
    pub added: usize,
    pub removed: usize,
    pub cut: bool,
}

/// Compares two texts. Compact JSON is laid out first, or its one line would say nothing.
pub fn difference(old: &str, new: &str, json: bool) -> Difference {
    let (old, new) = match (
        json.then(|| laid_out(old)).flatten(),
        json.then(|| laid_out(new)).flatten(),
    ) {
        (Some(old), Some(new)) => (old, new),
        _ => (old.to_owned(), new.to_owned()),
    };
    let diff = TextDiff::from_lines(old.as_str(), new.as_str());
    let mut found = Difference::default();
    for (place, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if place > 0 {
            found.push(Tag::Skipped, None, None, "");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let tag = match change.tag() {
                ChangeTag::Equal => Tag::Same,
                ChangeTag::Delete => Tag::Removed,
                ChangeTag::Insert => Tag::Added,
            };
            found.push(tag, change.old_index(), change.new_index(), change.value());
        }
    }
    found
}

/// Whether a MIME type promises JSON.
pub fn is_json(mime_type: Option<&str>) -> bool {
    let essence = mime_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    essence == "application/json" || essence.ends_with("+json")
}

fn laid_out(text: &str) -> Option<String> {
    if text.lines().nth(1).is_some() {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

impl Difference {
    fn push(&mut self, tag: Tag, old: Option<usize>, new: Option<usize>, text: &str) {
        match tag {
            Tag::Added => self.added += 1,
            Tag::Removed => self.removed += 1,
            Tag::Same | Tag::Skipped => {}
        }
        if self.lines.len() >= MOST_LINES {
            self.cut = true;
            return;
        }
        let text = text.trim_end_matches(['\r', '\n']);
        let mut shown: String = text.chars().take(MOST_CHARS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.lines.push(Line {
            tag,
            old: old.map(|line| line + 1),
            new: new.map(|line| line + 1),
            text: shown,
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::format_collect, clippy::float_cmp)]
    use super::*;

    #[test]
    fn compact_json_is_compared_by_its_fields() {
        let found = difference(
            r#"{"max_batch":500,"region":"eu"}"#,
            r#"{"max_batch":50,"region":"eu"}"#,
            true,
        );
        let changed: Vec<_> = found
            .lines
            .iter()
            .filter(|line| line.tag != Tag::Same)
            .map(|line| (line.tag, line.text.trim()))
            .collect();
        assert_eq!(
            changed,
            [
                (Tag::Removed, r#""max_batch": 500,"#),
                (Tag::Added, r#""max_batch": 50,"#)
            ]
        );
    }

    #[test]
    fn far_changes_leave_out_what_is_between() {
        let old: String = (0..40).map(|line| format!("line {line}\n")).collect();
        let new = old
            .replace("line 2\n", "line two\n")
            .replace("line 35\n", "line thirty-five\n");
        let found = difference(&old, &new, false);
        assert_eq!((found.added, found.removed), (2, 2));
        assert_eq!(
            found
                .lines
                .iter()
                .filter(|line| line.tag == Tag::Skipped)
                .count(),
            1
        );
        assert_eq!(found.lines[0].old, Some(1));
    }

    #[test]
    fn a_large_difference_is_cut_but_counted() {
        let old: String = (0..2_000).map(|line| format!("{line}\n")).collect();
        let found = difference(&old, "", false);
        assert!(found.cut);
        assert_eq!((found.lines.len(), found.removed), (MOST_LINES, 2_000));
    }

    #[test]
    fn a_long_line_is_clipped_on_a_character() {
        let found = difference("", &"é".repeat(MOST_CHARS + 5), false);
        assert_eq!(found.lines[0].text.chars().count(), MOST_CHARS + 1);
    }

    #[test]
    fn json_is_known_by_its_type() {
        assert!(is_json(Some("application/json; charset=utf-8")));
        assert!(is_json(Some("application/vnd.api+json")));
        assert!(!is_json(Some("text/markdown")));
        assert!(!is_json(None));
    }
}
