//! The line at which a field stands, for block-style YAML.
//!
//! In: the text of a document and a path. Out: the line of the deepest step that could be found, counted from 0. Where the text is
//! flow style (`{a: 1}`) or JSON, that is the line of the enclosing block: near enough to find it by eye. Never an error.

use super::field::{FieldPath, Step};

struct Line<'a> {
    number: usize,
    /// Column at which `text` begins.
    indent: usize,
    text: &'a str,
}

/// Line of `path` within `text`, from 0; `None` where not even its first step stands on a line of its own.
pub fn line_of(text: &str, path: &FieldPath) -> Option<usize> {
    let mut block: Vec<Line<'_>> = text
        .lines()
        .enumerate()
        .filter_map(|(number, line)| {
            let content = line.trim_start();
            let skipped = content.is_empty() || content.starts_with('#') || line.starts_with("---");
            (!skipped).then(|| Line {
                number,
                indent: line.len() - content.len(),
                text: content,
            })
        })
        .collect();
    let mut found = None;
    for step in path.steps() {
        let Some((start, end)) = entry(&block, step) else {
            break;
        };
        found = Some(block[start].number);
        block = inside(block, start, end, step);
    }
    found
}

/// The range of lines of one entry of the block: its first line, up to the next entry's.
fn entry(block: &[Line<'_>], step: &Step) -> Option<(usize, usize)> {
    let indent = block.first()?.indent;
    let is_entry = |line: &Line<'_>| {
        line.indent <= indent && (matches!(step, Step::Key(_)) || is_item(line.text))
    };
    let start = match step {
        Step::Key(key) => block
            .iter()
            .position(|line| line.indent == indent && key_of(line.text) == Some(key))?,
        Step::Index(index) => {
            block
                .iter()
                .enumerate()
                .filter(|(_, line)| line.indent == indent && is_item(line.text))
                .nth(*index)?
                .0
        }
    };
    let key_with_list = |line: &Line<'_>| {
        matches!(step, Step::Key(_)) && line.indent == indent && is_item(line.text)
    };
    let end = block[start + 1..]
        .iter()
        .position(|line| is_entry(line) && !key_with_list(line))
        .map_or(block.len(), |offset| start + 1 + offset);
    Some((start, end))
}

/// The lines inside an entry: below a key; for a list item, also what follows the dash.
fn inside<'a>(mut block: Vec<Line<'a>>, start: usize, end: usize, step: &Step) -> Vec<Line<'a>> {
    block.truncate(end);
    let mut lines = block.split_off(start);
    if matches!(step, Step::Key(_)) {
        lines.remove(0);
    } else if let Some(first) = lines.first_mut() {
        let content = first.text[1..].trim_start();
        first.indent += first.text.len() - content.len();
        first.text = content;
    }
    lines
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

fn key_of(text: &str) -> Option<&str> {
    let (key, rest) = text.split_once(':')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| key.trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\nkind: A\nmetadata: {name: a}\nspec:\n  uris:\n  - a:b\n  - c:d\n  text: |\n    uris:\n  list:\n    - name: x\n      port: 1\n\n    - port: 2\n";

    #[test]
    fn finds_blocks_lists_and_what_is_nearest() {
        for (path, line) in [
            ("kind", Some(1)),
            ("metadata.name", Some(2)),
            ("spec.uris[1]", Some(6)),
            ("spec.list[0].port", Some(11)),
            ("spec.list[1].port", Some(13)),
            ("spec.missing", Some(3)),
            ("other", None),
        ] {
            assert_eq!(line_of(TEXT, &FieldPath::parse(path)), line, "{path}");
        }
    }
}
