//! The documents of one file, as JSON values.
//!
//! In: the text of a file. Out: one value for each document with the line it begins at; a document that does not parse leaves the
//! others alone. Keys given twice, keys that are no text and numbers that JSON does not have are errors, as they are for an
//! API server.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

/// One document of a file. No `Debug`: it may be a Secret's.
#[derive(Clone)]
pub struct Document {
    /// From 1, counting documents that hold something.
    pub number: usize,
    /// Line of the file, from 1, at which `text` begins.
    pub first_line: usize,
    pub text: Arc<str>,
}

/// Why a document is no value.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line of the file, where the parser knew it.
    pub line: Option<usize>,
    pub message: String,
    pub fix: &'static str,
}

/// Splits at lines that begin with `---`, as kubectl does. A block scalar is indented and cannot hold such a line.
pub fn split(text: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut chunk = String::new();
    let mut first_line = 1;
    let mut close = |chunk: &mut String, first_line: usize| {
        let holds_something = chunk.lines().any(|line| {
            let line = line.trim();
            !(line.is_empty()
                || line.starts_with('#')
                || line == "---"
                || line.starts_with("--- #"))
        });
        if holds_something {
            documents.push(Document {
                number: documents.len() + 1,
                first_line,
                text: Arc::from(chunk.as_str()),
            });
        }
        chunk.clear();
    };
    for (index, line) in text.lines().enumerate() {
        if line == "---" || line.starts_with("--- ") {
            close(&mut chunk, first_line);
            first_line = index + 1;
        }
        chunk.push_str(line);
        chunk.push('\n');
    }
    close(&mut chunk, first_line);
    documents
}

/// The value of a document. YAML is read for JSON files too, since JSON is YAML; only the error text would differ.
pub fn parse(document: &Document) -> Result<Value, SyntaxError> {
    let yaml: serde_norway::Value = serde_norway::from_str(&document.text).map_err(|error| {
        let line = error.location().map(|location| document.first_line + location.line().saturating_sub(1));
        SyntaxError {
            line,
            message: format!("this is not valid YAML: {}", without_position(&error.to_string())),
            fix: "mend the syntax; indentation is by spaces, and a text with `: ` or a leading special character needs quotes",
        }
    })?;
    to_json(yaml).map_err(|message| SyntaxError {
        line: Some(document.first_line),
        message,
        fix: "write keys as text and values as text, numbers, true, false, lists or maps",
    })
}

/// The parser counts from the start of the document; the line of the file stands before the message already.
fn without_position(message: &str) -> &str {
    message
        .find(" at line ")
        .map_or(message, |end| &message[..end])
}

fn to_json(yaml: serde_norway::Value) -> Result<Value, String> {
    Ok(match yaml {
        serde_norway::Value::Null => Value::Null,
        serde_norway::Value::Bool(value) => Value::Bool(value),
        serde_norway::Value::String(value) => Value::String(value),
        serde_norway::Value::Number(number) => Value::Number(
            number
                .as_i64()
                .map(Number::from)
                .or_else(|| number.as_u64().map(Number::from))
                .or_else(|| number.as_f64().and_then(Number::from_f64))
                .ok_or_else(|| format!("`{number}` is a number that JSON does not have"))?,
        ),
        serde_norway::Value::Sequence(items) => {
            Value::Array(items.into_iter().map(to_json).collect::<Result<_, _>>()?)
        }
        serde_norway::Value::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let serde_norway::Value::String(key) = key else {
                    return Err(format!("a key is not text but {}", describe(&key)));
                };
                map.insert(key, to_json(value)?);
            }
            Value::Object(map)
        }
        serde_norway::Value::Tagged(tagged) => {
            return Err(format!("the tag {} means nothing here", tagged.tag));
        }
    })
}

fn describe(value: &serde_norway::Value) -> &'static str {
    match value {
        serde_norway::Value::Null => "empty",
        serde_norway::Value::Bool(_) => "true or false",
        serde_norway::Value::Number(_) => "a number",
        _ => "a list or map",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn documents_know_their_first_line() {
        let documents =
            split("# only a comment\n---\na: 1\n---\n---\nb: |\n  text\n  --- not a separator\n");
        let found: Vec<_> = documents
            .iter()
            .map(|document| (document.number, document.first_line))
            .collect();
        assert_eq!(found, [(1, 2), (2, 5)]);
        assert_eq!(
            parse(&documents[1]).unwrap()["b"],
            "text\n--- not a separator\n"
        );
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let documents = split("a: 1\n---\nb: 1\nc: [1,\n");
        let error = parse(&documents[1]).unwrap_err();
        assert!(error.line.unwrap() >= 4, "{error:?}");
        assert!(!error.message.contains("at line"), "{error:?}");
    }

    #[test]
    fn what_json_does_not_have_is_refused() {
        for (text, part) in [
            ("a: 1\na: 2\n", "duplicate"),
            ("1: x\n", "a number"),
            ("a: .nan\n", "JSON does not have"),
            ("a: !x 1\n", "tag"),
        ] {
            let error = parse(&split(text)[0]).unwrap_err();
            assert!(error.message.contains(part), "{text:?}: {error:?}");
        }
    }
}
